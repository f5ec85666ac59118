package get

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/get/signing"
	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

// addSettings are the flags of add.
type addSettings struct {
	settings
	ref, under                         string
	signer, issuer, key                string
	accept                             []string
	list, attach, all, unsigned, older bool
}

func (a *app) addCommand() *cobra.Command {
	var s addSettings
	cmd := &cobra.Command{
		Use:   "add SOURCE [PACK...]",
		Short: "Add packs from a repository, an archive or a folder",
		Long: `Add packs from elsewhere. What comes in is shown first: its files, what its tools would run, and
who signed it. It is kept with its digest in packs.lock.json, models see it when you attach it, and
nothing of it runs without a question.

SOURCE is
  owner/repo[/path][@ref]                  a repository at GitHub
  https://host/x.git[@ref][#path]          a repository; also ssh://, file:// and user@host:x
  oci://registry/repository[:tag]          an artifact of a registry; also @sha256:…
  https://host[/path]                      a site's index of skills, an archive or a SKILL.md; #sha256=… pins it
  stakpak:[URI]                            a rulebook, or the list of them
  ./folder  x.tar.gz  x.zip  x.skill       what is here`,
		Example: `  packs-mcp add anthropics/skills --list
  packs-mcp add anthropics/skills pdf xlsx --attach
  packs-mcp add ./my-pack`,
		Args: cli.Needs(1, -1, "the address of packs"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.add(cmd.Context(), args[0], args[1:], s) },
	}
	a.addFlags(cmd, &s)
	cmd.Flags().StringVar(&s.ref, "ref", "", "the branch, tag or commit of the repository")
	_ = cmd.RegisterFlagCompletionFunc("ref", cobra.NoFileCompletions)
	return cmd
}

// addFlags adds the flags that add and apply share.
func (a *app) addFlags(cmd *cobra.Command, s *addSettings) {
	a.flags(cmd, &s.settings, true)
	cli.JSONFlag[changedPacks](a.Env, cmd, &s.json)
	cli.AlsoJSON[foundPacks](a.Env, cmd, "--list")
	f := cmd.Flags()
	f.StringVar(&s.under, "as", "", "what goes before the packs' names in their ids (default: whose the source is)")
	f.BoolVar(&s.list, "list", false, "show the packs of the source, and add none")
	f.BoolVar(&s.all, "all", false, "add all packs of the source")
	f.BoolVar(&s.attach, "attach", false, "attach them: models see them from now on")
	f.StringVar(&s.signer, "signer", "", "who must have signed it: the fingerprint of a key, SHA256:…, or with --issuer the identity in a certificate")
	f.StringVar(&s.issuer, "issuer", "", "who identified the signer, as `URL`: https://token.actions.githubusercontent.com for a workflow at GitHub")
	f.StringVar(&s.key, "key", "", "the `FILE` of the public key that must have signed it, such as cosign.pub")
	f.StringArrayVar(&s.accept, "accept", nil, "the `HASH` of a finding of the scan that you accept (repeatable)")
	_ = cmd.RegisterFlagCompletionFunc("accept", cobra.NoFileCompletions)
	f.BoolVar(&s.unsigned, "allow-unsigned", false, "add it although nobody signed it; that is recorded")
	f.BoolVar(&s.older, "allow-older", false, "replace what is here also by what is older, or no longer says that it is not")
	_ = cmd.MarkFlagFilename("key")
	for _, flag := range []string{"as", "signer", "issuer"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
}

func (a *app) applyCommand() *cobra.Command {
	var s addSettings
	cmd := &cobra.Command{
		Use:   "apply PATH [PACK...]",
		Short: "Add packs from a folder or an archive on this machine",
		Long: `Add packs from a folder or an archive on this machine, as add does: what comes in is shown first, and
kept with its digest. PATH needs no ./ before it.`,
		Example: `  packs-mcp apply my-skills/triage
  packs-mcp apply triage.tar.gz --attach`,
		Args: cli.Needs(1, -1, "a folder or an archive"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return completePacksOf(args[0], args[1:])
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			info, err := os.Stat(args[0])
			if err != nil {
				return fmt.Errorf("there is no folder or file %q", args[0])
			}
			at, err := filepath.Abs(args[0])
			if err != nil {
				return err
			}
			if r, err := address.Parse(at); err != nil || !info.IsDir() && r.Kind != address.Archive {
				return &cli.UsageError{Err: fmt.Errorf("%q is neither a folder nor an archive", args[0]), Hint: "an archive ends in .tar.gz, .tgz, .tar, .zip or .skill"}
			}
			return a.add(cmd.Context(), at, args[1:], s)
		},
	}
	a.addFlags(cmd, &s)
	return cmd
}

func (a *app) add(ctx context.Context, source string, names []string, s addSettings) error {
	p, err := a.place(ctx, s.settings)
	if err != nil {
		return err
	}
	if p.signatures.Demand, err = signing.NewDemand(s.signer, s.issuer, s.key); err != nil {
		return err
	}
	if s.ref != "" {
		if strings.Contains(source, "@") {
			return &cli.UsageError{Err: errors.New("the source names a ref, and so does --ref"), Hint: "leave out one of them"}
		}
		at, inside, _ := strings.Cut(source, "#")
		source = strings.TrimSuffix(at+"@"+s.ref+"#"+inside, "#")
	}
	named := source
	source, err = p.local(source)
	if err != nil {
		return &cli.UsageError{Err: err, Hint: "see: packs-mcp add --help"}
	}
	snap, r, err := p.open(ctx, source)
	if (r.Kind == address.Folder || r.Kind == address.Archive) && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("there is no folder or file %q", named)
	}
	if err != nil {
		return refusal(err)
	}
	defer snap.Close()
	found, err := sources.Survey(ctx, snap, r.Path)
	if err != nil {
		return err
	}
	if s.list {
		return a.listFound(found, s.json)
	}
	chosen, err := choose(found, names, s.all)
	if err != nil {
		return err
	}
	past, ordered := snap.(sources.Past)
	asked := map[string]error{} // :: previous pin → what the source's history says
	items, err := p.stageAll(ctx, snap, source, chosen, func(pack sources.Pack) string { return idOf(r, pack, s.under) }, func(it *item) error {
		if err := trust.Check(it.before, it.entry.Signature); err != nil {
			return cli.WithHint(refusal(err), "update --allow-signer-change takes it, or remove %s first", it.id)
		}
		if ordered && it.before != nil && !it.moved() && it.before.Pin != it.entry.Pin {
			pin := it.before.Pin
			if _, ok := asked[pin]; !ok {
				asked[pin] = unrelated(ctx, past, look{ID: it.id, Pin: pin, Now: it.entry.Pin})
			}
			if err := asked[pin]; err != nil {
				return err
			}
		}
		return p.signatures.Demand.Check(it.id, it.entry.Signature, it.unchecked)
	})
	if err != nil {
		return refusal(err)
	}
	defer func() {
		for _, it := range items {
			err = errors.Join(err, it.close())
		}
	}()
	for _, it := range items {
		if err := it.age(ordered && !it.moved(), s.older); err != nil {
			return refusal(fmt.Errorf("%s: %w", it.id, err))
		}
	}
	return a.carryOut(ctx, p, items, how{settings: s.settings, unsigned: s.unsigned, accept: s.accept, attach: s.attach, verb: "Add"})
}

// local turns a local path into one that means the same from the lock file's folder.
func (p *place) local(source string) (string, error) {
	r, err := address.Parse(source)
	if err != nil {
		return source, err
	}
	if r.Kind != address.Folder && r.Kind != address.Archive {
		if info, err := os.Stat(filepath.FromSlash(source)); err == nil && info.IsDir() {
			return "", cli.WithHint(fmt.Errorf("%q means %s, and there is a folder of that name here", source, r.At),
				"write ./%s for the folder, or %s for the repository", source, r.At)
		}
		return source, nil
	}
	at := r.At
	if rest, ok := strings.CutPrefix(at, "~"); ok && (rest == "" || rest[0] == '/' || rest[0] == '\\') {
		at = filepath.Join(p.cfg.Paths.Home, rest)
	}
	if at, err = filepath.Abs(at); err != nil {
		return "", err
	}
	base := filepath.Dir(p.LockFile)
	if rel, err := filepath.Rel(base, at); err == nil && filepath.IsLocal(rel) { // in the same project
		return "./" + filepath.ToSlash(rel), nil
	}
	return at, nil
}

// idOf returns the id of a new pack: a prefix, and its name.
func idOf(r address.Reference, p sources.Pack, under string) string {
	if under == "" {
		under = r.Owner()
	}
	if under == "" {
		return p.Name
	}
	return strings.Trim(under, "/") + "/" + p.Name
}

// choose returns the packs that are named, or the only one.
func choose(found []sources.Pack, names []string, all bool) ([]sources.Pack, error) {
	var chosen []sources.Pack
	for _, name := range names {
		i := slices.IndexFunc(found, func(p sources.Pack) bool { return p.Name == name || p.Path == name })
		if i < 0 {
			var known []string
			for _, p := range found {
				known = append(known, p.Name)
			}
			err := fmt.Errorf("the source has no pack %q", safetext.Line(name))
			if n := near.Names(name, known, 3); len(n) > 0 {
				return nil, cli.WithHint(err, "did you mean %s?", strings.Join(n, " or "))
			}
			return nil, cli.WithHint(err, "add --list shows those that it has")
		}
		chosen = append(chosen, found[i])
	}
	found = slices.DeleteFunc(slices.Clone(found), func(p sources.Pack) bool { return p.Elsewhere })
	switch {
	case len(names) > 0:
	case len(found) == 0:
		return nil, cli.WithHint(errors.New("there is no pack in it"), "a pack is a folder with a SKILL.md, or another document that says its name and description")
	case all || len(found) == 1:
		chosen = found
	default:
		return nil, cli.WithHint(fmt.Errorf("it has %d packs", len(found)), "name those that you want, or add --all; --list shows them")
	}
	for _, p := range chosen {
		if !p.Valid {
			return nil, fmt.Errorf("the pack %q is not valid: %s", safetext.Line(p.Name), safetext.Line(strings.Join(p.Problems, "; ")))
		}
	}
	return chosen, nil
}

// listed is a pack of a source, for --json.
type listed struct {
	Path        string   `json:"path"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags,omitempty"`
	Valid       bool     `json:"valid"`
	Problems    []string `json:"problems,omitempty"`
	Plugin      string   `json:"plugin,omitempty"`
	Elsewhere   bool     `json:"elsewhere,omitempty"`
}

func (a *app) listFound(found []sources.Pack, asJSON bool) error {
	if asJSON {
		all := make([]listed, 0, len(found))
		for _, p := range found {
			all = append(all, listed(p))
		}
		return cli.PrintJSON(a.Stdout, foundPacks{all})
	}
	for _, p := range found {
		text := p.Description
		if !p.Valid {
			text = "cannot be added: " + strings.Join(p.Problems, "; ")
		}
		fmt.Fprintf(a.Stdout, "%s  %s\n", safetext.Line(p.Name), cli.OneLine(text, 100))
	}
	return nil
}

// refusal gives an error status 4 if a policy refused, and not some other failure.
func refusal(err error) error {
	if isRefusal(err) {
		return &cli.StatusError{Err: err, Status: cli.StatusRefused}
	}
	return err
}

func isRefusal(err error) bool {
	if e, ok := errors.AsType[*cli.StatusError](err); ok && e.Status == cli.StatusRefused {
		return true
	}
	return errors.As(err, new(*sources.PinError)) || errors.As(err, new(*trust.Refusal)) || errors.As(err, new(*signing.UncheckedError))
}
