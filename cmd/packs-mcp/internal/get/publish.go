package get

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/get/own"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/get/signing"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/archive"
	"github.com/packs-mcp/packs-mcp/internal/sources/oci"
	"github.com/packs-mcp/packs-mcp/internal/sources/site"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

// publishSettings are the flags of publish and index.
type publishSettings struct {
	yes, json bool
	accept    []string
	sign      string // the file with a key
	out       string // for index: the site's folder
}

func (a *app) publishFlags(cmd *cobra.Command, s *publishSettings) {
	a.ConfigFlag(cmd)
	f := cmd.Flags()
	f.BoolVarP(&s.yes, "yes", "y", false, "do what is shown without asking")
	f.StringArrayVar(&s.accept, "accept", nil, "the `HASH` of a finding of the scan that you accept (repeatable)")
	_ = cmd.RegisterFlagCompletionFunc("accept", cobra.NoFileCompletions)
	f.StringVar(&s.sign, "sign", "", "sign it with the key in a `FILE`")
	_ = cmd.MarkFlagFilename("sign")
}

func (a *app) publishCommand() *cobra.Command {
	var s publishSettings
	cmd := &cobra.Command{
		Use:   "publish PATH oci://REGISTRY/REPOSITORY[:TAG]",
		Short: "Publish a pack to a registry",
		Long: `Publish a pack of yours, a folder or an archive, to an OCI registry, from where add gets it to the
byte. What would be published is shown first. What add refuses is refused here. The tag is latest
unless you name one; it is set last, so it never names half a pack.

With --sign, a signature goes with it, made before the tag is set: with an SSH key (a private key
without a passphrase, or a public key whose private one your agent has), or with a key of cosign or
openssl, whose password is in COSIGN_PASSWORD. For the latter, packs-mcp-sigstore has to be beside
packs-mcp.

The logins of Docker and Podman count, as for add.`,
		Example: `  packs-mcp publish ./triage oci://ghcr.io/acme/triage:1.2.0
  packs-mcp publish ./triage oci://ghcr.io/acme/triage:1.2.0 --sign ~/.ssh/id_ed25519
  packs-mcp publish --yes --json triage.tar.gz oci://localhost:5000/triage`,
		Args: cli.Needs(2, 2, "a pack's folder or archive, and oci://REGISTRY/REPOSITORY"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveDefault // a folder or an archive
			}
			return []string{"oci://"}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.publish(cmd.Context(), args[0], args[1], s) },
	}
	a.publishFlags(cmd, &s)
	cli.JSONFlag[publishedPack](a.Env, cmd, &s.json)
	return cmd
}

// publishedPack is what publish --json prints.
type publishedPack struct {
	Name     string             `json:"name"`
	To       string             `json:"to"`
	Resolved string             `json:"resolved"`         // the address of exactly this version
	Before   string             `json:"before,omitempty"` // the digest that the tag stood for before
	Digest   string             `json:"digest"`           // of the pack, as add computes it
	Signer   string             `json:"signer,omitempty"` // who signs it with --sign
	Files    int                `json:"files"`
	Bytes    int64              `json:"bytes"`
	Findings []findings.Finding `json:"findings"`
	Done     bool               `json:"done"`
}

func (a *app) publish(ctx context.Context, from, to string, s publishSettings) error {
	r, err := address.Parse(to)
	if err != nil || r.Kind != address.OCI {
		return &cli.UsageError{Err: fmt.Errorf("%q is not an address to publish to", safetext.Line(to)), Hint: "it is oci://REGISTRY/REPOSITORY[:TAG]; for a site of your own, see: packs-mcp index --help"}
	}
	cfg, _, err := a.Load()
	if err != nil {
		return err
	}
	snap, err := own.Open(from)
	if err != nil {
		return err
	}
	defer snap.Close()
	found, err := sources.Survey(ctx, snap, "")
	if err != nil {
		return err
	}
	chosen, err := choose(found, nil, false)
	if err != nil {
		if len(found) > 1 {
			err = cli.WithHint(fmt.Errorf("%d packs are in it, and one is published at a time", len(found)), "name the folder of one")
		}
		return err
	}
	o, err := own.Read(ctx, snap, chosen[0], s.accept)
	if err != nil {
		return err
	}
	defer o.Close()
	p, err := oci.Prepare(ctx, a.web(cfg), o.Bundle, r)
	if err != nil {
		return err
	}
	defer p.Close()

	resolved := "oci://" + r.At + "@" + p.Digest
	fmt.Fprintf(a.Stderr, "%s\n  to       oci://%s:%s\n  as       %s\n", safetext.Line(o.Pack.Name), safetext.Line(r.At), safetext.Line(p.Tag), safetext.Line(p.Digest))
	if p.Before != "" && p.Before != p.Digest {
		fmt.Fprintf(a.Stderr, "  instead  of %s, which the tag names now\n", safetext.Line(p.Before))
	}
	signature, there := &signing.Own{}, true
	if s.sign == "" {
		fmt.Fprintln(a.Stderr, "  signed   by nobody; --sign signs it")
	} else {
		if signature, err = signing.Sign(ctx, p.Manifest(), p.Digest, s.sign, a.keyPassword()); err != nil {
			return err
		}
		if there, err = signature.IsThere(ctx, p); err != nil {
			return err
		}
		fmt.Fprintf(a.Stderr, "  signed   by %s\n", safetext.Line(trust.Words(signature.By)))
	}
	o.Show(a.Stderr)
	out := publishedPack{Name: o.Pack.Name, To: to, Resolved: resolved, Before: p.Before, Digest: o.Tree.Digest(), Files: len(o.Tree.Files), Bytes: o.Tree.Bytes, Findings: orEmpty(o.Found)}
	if signature.By != nil {
		out.Signer = safetext.Line(trust.Words(signature.By))
	}
	if err := attacks(o.Pack.Name, o.Found); err != nil {
		return err
	}
	if p.Before == p.Digest && there {
		fmt.Fprintln(a.Stderr, "The tag names just that already.")
		return a.published(out, s)
	}
	if out.Done, err = a.mayDo(ctx, s.yes, fmt.Sprintf("Publish %s for everybody who may read %s?", safetext.Line(o.Pack.Name), safetext.Line(r.At))); err != nil {
		return err
	}
	if out.Done {
		if err := a.recordOwn(cfg, o, "published as "+resolved); err != nil {
			return err
		}
		if err := p.Publish(ctx, signature.Data); err != nil {
			return err
		}
	}
	return a.published(out, s)
}

func (a *app) published(p publishedPack, s publishSettings) error {
	if s.json {
		return cli.PrintJSON(a.Stdout, p)
	}
	if p.Done {
		fmt.Fprintln(a.Stdout, safetext.Line(p.Resolved))
	}
	return nil
}

// mayDo asks whether to do what was shown, unless --yes answers that.
func (a *app) mayDo(ctx context.Context, yes bool, question string) (bool, error) {
	if yes {
		return true, nil
	}
	if !cli.IsTerminal(a.Stdin) {
		return false, cli.WithHint(&cli.StatusError{Err: errors.New("nothing was changed: there is no terminal to ask on"), Status: cli.StatusRefused}, "add --yes to do it")
	}
	return a.ask(ctx, question)
}

// keyPassword returns the password of the key that signs; "": it has none.
func (a *app) keyPassword() string { return cli.Getenv(a.Environ, "COSIGN_PASSWORD") }

// recordOwn writes a log line; without it nothing is published.
func (a *app) recordOwn(cfg *config.Config, o *own.Pack, reason string) error {
	return a.record(cfg, audit.Entry{Event: audit.EventSource, Pack: o.Pack.Name, Channel: "command", PackDigest: o.Tree.Digest(), Reason: reason})
}

func (a *app) indexCommand() *cobra.Command {
	var s publishSettings
	cmd := &cobra.Command{
		Use:   "index DIR [PACK...]",
		Short: "Write a static site from which others add your packs",
		Long: `Write a site of the packs in a folder, for any server of files: below .well-known/agent-skills/ an
index of Agent Skills Discovery 0.2, and for each pack one file with its digest. Put the site at the
root of a host, and others add your packs with packs-mcp add https://HOST. Other programs that know
the discovery find them, too.

The same packs give the same bytes. What a site had before is replaced; a folder that something else
wrote is left alone. What add refuses is refused here.

With --sign, each pack is an archive with a signature beside it, which add verifies: NAME.tar.gz.sig
by an SSH key, or NAME.tar.gz.sigstore.json by a key of cosign or openssl. The keys are those of
packs-mcp publish --sign. The index itself is not signed.`,
		Example: `  packs-mcp index ./packs --out public
  packs-mcp index ./packs --out public --sign ~/.ssh/id_ed25519
  packs-mcp index ./packs triage --out public --yes`,
		Args: cli.Needs(1, -1, "a folder of packs"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return completePacksOf(args[0], args[1:])
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.index(cmd.Context(), args[0], args[1:], s) },
	}
	a.publishFlags(cmd, &s)
	cli.JSONFlag[indexedPacks](a.Env, cmd, &s.json)
	cmd.Flags().StringVarP(&s.out, "out", "o", "", "the site's `DIR`, which is made if it is not there")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

// completePacksOf offers the names of the packs in a folder to the shell.
func completePacksOf(dir string, given []string) ([]string, cobra.ShellCompDirective) {
	snap, err := own.Open(dir)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer snap.Close()
	found, err := sources.Survey(context.Background(), snap, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return offer(found, given), cobra.ShellCompDirectiveNoFileComp
}

// indexedPack is one pack of a site, for --json.
type indexedPack struct {
	Name     string             `json:"name"`
	Path     string             `json:"path"`             // of its folder
	Type     string             `json:"type,omitempty"`   // "archive" or "skill-md", if the site was written
	File     string             `json:"file,omitempty"`   // the digest of the site's file for it
	Digest   string             `json:"digest"`           // of the pack, as add computes it
	Signer   string             `json:"signer,omitempty"` // who signs it with --sign
	Files    int                `json:"files"`
	Bytes    int64              `json:"bytes"`
	Findings []findings.Finding `json:"findings"`
}

func (a *app) index(ctx context.Context, from string, names []string, s publishSettings) (err error) {
	if s.out == "" {
		return &cli.UsageError{Err: errors.New("index needs the site's folder, --out DIR"), Hint: "see: packs-mcp index --help"}
	}
	cfg, _, err := a.Load()
	if err != nil {
		return err
	}
	snap, err := own.Open(from)
	if err != nil {
		return err
	}
	defer snap.Close()
	found, err := sources.Survey(ctx, snap, "")
	if err != nil {
		return err
	}
	chosen, err := choose(found, names, true)
	if err != nil {
		return err
	}
	var all []*own.Pack
	var bundles []*sources.Bundle
	var signatures []site.Signature
	defer func() {
		for _, o := range all {
			err = errors.Join(err, o.Close())
		}
	}()
	out := indexedPacks{Out: s.out, Packs: []indexedPack{}}
	for _, pack := range chosen {
		o, err := own.Read(ctx, snap, pack, s.accept)
		if err != nil {
			return err
		}
		all, bundles = append(all, o), append(bundles, o.Bundle)
		fmt.Fprintln(a.Stderr, safetext.Line(o.Pack.Name))
		signer := ""
		if s.sign != "" {
			data, err := archive.Write(o.Dir, o.Tree)
			if err != nil {
				return err
			}
			signature, err := signing.Sign(ctx, data, sources.Digest(data), s.sign, a.keyPassword())
			if err != nil {
				return err
			}
			signatures = append(signatures, signature.Beside())
			signer = safetext.Line(trust.Words(signature.By))
			fmt.Fprintf(a.Stderr, "  signed   by %s\n", signer)
		}
		o.Show(a.Stderr)
		out.Packs = append(out.Packs, indexedPack{Name: o.Pack.Name, Path: pack.Path, Digest: o.Tree.Digest(), Signer: signer, Files: len(o.Tree.Files), Bytes: o.Tree.Bytes, Findings: orEmpty(o.Found)})
	}
	for _, o := range all {
		if err := attacks(o.Pack.Name, o.Found); err != nil {
			return err
		}
	}
	if out.Done, err = a.mayDo(ctx, s.yes, fmt.Sprintf("Write a site of %s into %s?", cli.Counted(len(all), "pack", "packs"), safetext.Line(s.out))); err != nil {
		return err
	}
	if out.Done {
		at, err := filepath.Abs(s.out)
		if err != nil {
			return err
		}
		for _, o := range all {
			if err := a.recordOwn(cfg, o, "written into the site "+at); err != nil {
				return err
			}
		}
		written, err := site.Write(snap, bundles, signatures, s.out)
		if err != nil {
			return err
		}
		for i, w := range written {
			out.Packs[i].Type, out.Packs[i].File = w.Type, w.Digest
		}
	}
	if s.json {
		return cli.PrintJSON(a.Stdout, out)
	}
	if out.Done {
		fmt.Fprintf(a.Stdout, "%s in %s\n", cli.Counted(len(all), "pack is", "packs are"), safetext.Line(filepath.Join(s.out, ".well-known", "agent-skills")))
	}
	return nil
}
