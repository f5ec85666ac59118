package approve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/private"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// listedGrants is what grants --json prints.
type listedGrants struct {
	Grants []listedGrant `json:"grants"`
}

// listedGrant is one grant as grants --json prints it.
type listedGrant struct {
	ID      string       `json:"id"`
	Since   time.Time    `json:"since"`
	Kind    call.Kind    `json:"kind"`
	Pack    string       `json:"pack"`
	Dir     string       `json:"dir,omitempty"`
	Tool    string       `json:"tool,omitempty"`
	Argv    []string     `json:"argv,omitempty"`
	Covers  string       `json:"covers"`
	Channel string       `json:"channel,omitempty"`
	Policy  string       `json:"policy,omitempty"`
	Person  string       `json:"person,omitempty"`
	By      string       `json:"by,omitempty"` // who gave the answer, where the configuration says who may
	Void    *grants.Void `json:"void,omitempty"`
	Facts   []call.Fact  `json:"facts,omitempty"` // with --verbose; not of a chat's
	Chat    *listedChat  `json:"chat,omitempty"`  // the chat in which alone it holds; absent: it holds in every chat
}

// listedChat is the chat of a grant on a running server.
type listedChat struct {
	ID      string `json:"id"`
	Client  string `json:"client,omitempty"`
	Server  string `json:"server"`
	PID     int    `json:"pid"`
	Project string `json:"project,omitempty"`
}

func (a *app) grantsCommand() *cobra.Command {
	var pack string
	var asJSON, verbose bool
	cmd := &cobra.Command{
		Use:   "grants",
		Short: `List what is allowed without a question, by your answers`,
		Long: `List what is allowed without a question: in every chat, by an answer of "always", and in one
chat of a server that runs, by an answer for that chat. A grant holds until anything about it
changes; one that is void allows nothing any more. A server whose approval.channels has
neither page nor terminal cannot be asked; what holds in its chats ends with them.`,
		Example: `  packs-mcp approvals grants
  packs-mcp approvals grants --pack incident-triage --json`,
		Args: cli.Misuse(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.listGrants(cmd.Context(), pack, asJSON, verbose) },
	}
	a.grantFlags(cmd, &pack)
	cli.JSONFlag[listedGrants](a.Env, cmd, &asJSON)
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "also the facts that each grant for every chat depends on")
	return cmd
}

func (a *app) grantFlags(cmd *cobra.Command, pack *string) {
	cmd.Flags().StringVar(pack, "pack", "", "only the grants of the pack `ID`")
	a.ConfigFlag(cmd)
	_ = cmd.RegisterFlagCompletionFunc("pack", a.completeGrantPacks)
}

func (a *app) listGrants(ctx context.Context, pack string, asJSON, verbose bool) error {
	cfg, _, err := a.Load()
	if err != nil {
		return err
	}
	store, closeStore, err := cli.Grants(ctx, cfg, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer closeStore()
	all, err := store.Load()
	if err != nil {
		return refusedGrants(cfg, err)
	}
	inChats, s := a.chatGrants(ctx)
	listed := make([]listedGrant, 0, len(all)+len(inChats))
	for _, g := range ofPack(all, pack) {
		l := listedOfGrant(g)
		if verbose {
			l.Facts = g.Facts
		}
		listed = append(listed, l)
	}
	for _, c := range inChats {
		if isOfPack(c.Grant, pack) {
			listed = append(listed, c.listed())
		}
	}
	if asJSON {
		err = cli.PrintJSON(a.Stdout, listedGrants{listed})
	} else {
		out := a.Screen(a.Stdout)
		for _, l := range listed {
			printGrant(out, l)
		}
		switch n := len(all) + len(inChats); {
		case len(listed) > 0:
		case n > 0:
			fmt.Fprintf(a.Screen(a.Stderr), "No grants of the pack %s; there are %d of other packs.\n", safetext.Quote(pack), n)
		default:
			fmt.Fprintln(a.Screen(a.Stderr), "No grants: each call asks, unless a rule or the policy decides.")
		}
	}
	if err == nil && s.silent > 0 {
		err = s.mayHold()
	}
	return err
}

func listedOfGrant(g grants.Grant) listedGrant {
	return listedGrant{
		ID: g.ID, Since: g.Since, Kind: g.Kind, Pack: g.Pack, Dir: g.Dir, Tool: g.Tool, Argv: g.Argv,
		Covers: g.Covers, Channel: g.Channel, Policy: g.Policy, Person: g.Person, By: g.Giver(), Void: g.Void,
	}
}

// printGrant prints one grant for a person. Packs, clients and models wrote most
// of the words.
func printGrant(w io.Writer, g listedGrant) {
	fmt.Fprintf(w, "%s  since %s  %s\n", safetext.Line(g.ID), grantTime(g.Since), safetext.Line(grantSubject(g.Kind, g.Pack, g.Tool)))
	line := func(name, text string) { fmt.Fprintf(w, "    %-8s %s\n", name, text) }
	line("allows", safetext.Line(g.Covers))
	if len(g.Argv) > 0 {
		words := make([]string, len(g.Argv))
		for i, word := range g.Argv {
			words[i] = safetext.Quote(word)
		}
		line("runs", strings.Join(words, " "))
	}
	if g.Dir != "" {
		line("pack in", safetext.Line(g.Dir))
	}
	if g.Policy != "" {
		line("while", safetext.Line("approval.policy is "+g.Policy))
	}
	if g.Person != "" {
		line("for", safetext.Line(g.Person))
	}
	if g.By != "" {
		line("by", safetext.Line(g.By))
	}
	if c := g.Chat; c != nil {
		client := "a client without a name"
		if c.Client != "" {
			client = "a client that calls itself " + safetext.Quote(c.Client)
		}
		line("in", fmt.Sprintf("the chat %s of %s (%s)", safetext.Line(c.ID), client, safetext.Line(c.place())))
	}
	if g.Void != nil {
		line("void", fmt.Sprintf("since %s; it allows nothing, and the next call asks", grantTime(g.Void.At)))
		for _, change := range g.Void.Changes {
			line("", safetext.Line(change))
		}
	}
	for _, f := range g.Facts {
		values := slices.DeleteFunc(slices.Clone(f.Values), func(v string) bool { return v == "" })
		if len(values) > 0 {
			line("fact", safetext.Line(f.Name+": "+strings.Join(values, ", ")))
		}
	}
}

func grantTime(t time.Time) string { return t.Local().Format(time.DateTime) }

// grantSubject describes what a grant is about in a few words.
func grantSubject(kind call.Kind, pack, tool string) string {
	switch kind {
	case call.KindRun:
		return fmt.Sprintf("run %s of %s", tool, pack)
	case call.KindExec:
		return fmt.Sprintf("exec a command for %s", pack)
	}
	return fmt.Sprintf("%s %s", kind, pack)
}

// ofPack returns a pack's grants in a new slice; all grants if pack is empty.
func ofPack(given []grants.Grant, pack string) []grants.Grant {
	return slices.DeleteFunc(slices.Clone(given), func(g grants.Grant) bool { return !isOfPack(g, pack) })
}

// isOfPack reports whether a grant is a pack's; every grant is if pack is empty.
func isOfPack(g grants.Grant, pack string) bool { return pack == "" || strings.EqualFold(g.Pack, pack) }

// refusedGrants adds what to do about a grants file that cannot be used.
func refusedGrants(cfg *config.Config, err error) error {
	refused, ok := errors.AsType[*private.RefusedError](err)
	switch {
	case !ok:
		return err
	case refused.Path == filepath.Dir(cli.GrantStore(cfg).Path()):
		return cli.WithHint(err, "no grant counts, and every call is denied, until this folder is yours alone; see who else writes to it, then: chmod 700 %s", safetext.Quote(refused.Path))
	default:
		return cli.WithHint(err, "no grant counts, and every call is denied; look at the file, then start over with: packs-mcp approvals revoke --all (which moves it aside)")
	}
}

func (a *app) revokeCommand() *cobra.Command {
	var which selection
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "revoke ID... | --person NAME | --by PERSON | --pack ID | --all",
		Short: `Take answers of "always", and for a chat, back`,
		Long: `Take answers of "always", and for a chat, back: running servers ask again at once. An ID may
be shortened as long as it means one grant. Caches that tools kept under these answers are
emptied; with --all, every tool's. --by takes back what a person answered, of their own calls
and of others', as when they leave or their token leaks; --person also what others answered for
them. With --all, a file of grants that is refused is moved aside, so that new answers can be
kept. With --person, --by, --pack and --all, servers that share a store end such answers in all
of their chats, too.`,
		Example: `  packs-mcp approvals revoke 732ad01b
  packs-mcp approvals revoke --pack incident-triage
  packs-mcp approvals revoke --by "grace@example.com 3f9a1c2d5b60e4a781c0ffd2"
  packs-mcp approvals revoke --person grace@example.com
  packs-mcp approvals revoke --all`,
		Args:              cli.Misuse(cobra.ArbitraryArgs),
		ValidArgsFunction: a.completeGrants,
		RunE: func(cmd *cobra.Command, ids []string) error {
			which.ids = ids
			ways := 0
			for _, given := range []bool{len(ids) > 0, cmd.Flags().Changed("pack"), cmd.Flags().Changed("by"), cmd.Flags().Changed("person"), which.all} {
				if given {
					ways++
				}
			}
			switch {
			case ways != 1:
				return &cli.UsageError{Err: errors.New("revoke takes IDs, or --person NAME, or --by PERSON, or --pack ID, or --all"), Hint: "packs-mcp approvals grants lists the grants and their IDs"}
			case !which.all && which.pack == "" && which.by == "" && which.person == "" && (len(ids) == 0 || slices.Contains(ids, "")):
				return &cli.UsageError{Err: errors.New("an ID or a name is empty"), Hint: "packs-mcp approvals grants lists the grants and their IDs"}
			}
			return a.revoke(cmd.Context(), which, asJSON)
		},
	}
	a.grantFlags(cmd, &which.pack)
	cmd.Flags().StringVar(&which.by, "by", "", "only the grants that `PERSON` gave; an address means the person of an identity provider who has it")
	cmd.Flags().StringVar(&which.person, "person", "", "all grants of `NAME`: for their calls, and those that they gave; an address means the person of an identity provider who has it")
	cmd.Flags().BoolVar(&which.all, "all", false, "all grants, also those of a file that is refused")
	for flag, name := range map[string]func(grants.Grant) string{"by": grants.Grant.Giver, "person": func(g grants.Grant) string { return g.Person }} {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return a.completeFromGrants(cmd.Context(), func(g grants.Grant) string { return safetext.Line(name(g)) })
		})
	}
	cli.JSONFlag[revoked](a.Env, cmd, &asJSON)
	return cmd
}

// A selection says which grants to take back.
type selection struct {
	ids              []string
	pack, by, person string
	all              bool
}

// revoked is what approvals revoke --json prints.
type revoked struct {
	Revoked []revokedGrant `json:"revoked"`
	Caches  int            `json:"caches_emptied"`
	Moved   []string       `json:"moved_aside"` // files that were refused
}

type revokedGrant struct {
	ID   string    `json:"id"`
	Kind call.Kind `json:"kind"`
	Pack string    `json:"pack"`
	Tool string    `json:"tool,omitempty"`
	Chat bool      `json:"chat"` // it held in one chat only
}

// A revocation is one run of revoke.
type revocation struct {
	*app
	done revoked
	json bool
}

// say tells a person what was done.
func (r *revocation) say(format string, args ...any) {
	if !r.json {
		fmt.Fprintf(r.Stdout, format, args...)
	}
}

// took notes that a grant was taken back.
func (r *revocation) took(g grants.Grant, inChat bool) {
	r.done.Revoked = append(r.done.Revoked, revokedGrant{g.ID, g.Kind, g.Pack, g.Tool, inChat})
	where := ""
	if inChat {
		where = ", in a chat"
	}
	r.say("revoked %s (%s%s)\n", safetext.Line(g.ID), safetext.Line(grantSubject(g.Kind, g.Pack, g.Tool)), where)
}

func (a *app) revoke(ctx context.Context, which selection, asJSON bool) error {
	r := &revocation{app: a, done: revoked{Revoked: []revokedGrant{}, Moved: []string{}}, json: asJSON}
	err := r.carryOut(ctx, which)
	if asJSON && (err == nil || len(r.done.Revoked)+len(r.done.Moved)+r.done.Caches > 0) {
		err = errors.Join(cli.PrintJSON(a.Stdout, r.done), err)
	}
	return err
}

func (r *revocation) carryOut(ctx context.Context, which selection) (err error) {
	cfg, _, err := r.Load()
	if err != nil {
		return err
	}
	store, closeStore, err := cli.Grants(ctx, cfg, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer closeStore()
	_, refused := store.Load()
	if refused != nil && !which.all {
		return refusedGrants(cfg, refused)
	}
	log, err := cli.Log(ctx, cfg, cli.Writer(cfg), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	inChats, s := r.chatGrants(ctx)
	if e, ok := errors.AsType[*private.RefusedError](refused); ok && e.Path != filepath.Dir(cli.GrantStore(cfg).Path()) {
		return errors.Join(r.startOver(cfg, log, e), r.revokeInChats(ctx, inChats, s), r.emptyCaches(ctx, cfg, func(string) bool { return true }))
	}
	shared, err := r.everywhere(store, log, which)
	if err != nil {
		return err
	}
	var gone []grants.Grant
	var goneInChats []chatGrant
	err = store.Update(func(given []grants.Grant) ([]grants.Grant, error) {
		chosen, err := which.of(slices.Concat(given, grantsOf(inChats)))
		if err != nil && shared {
			return given, nil // chats of other servers may have had some
		}
		if err != nil {
			if s.silent > 0 {
				err = errors.Join(err, s.mayHold())
			}
			return nil, err
		}
		gone, goneInChats = nil, nil
		goes := make(map[string]bool, len(chosen))
		for _, g := range chosen {
			if i := slices.IndexFunc(inChats, func(c chatGrant) bool { return c.ID == g.ID }); i >= 0 {
				goneInChats = append(goneInChats, inChats[i])
				continue
			}
			gone = append(gone, g)
			goes[g.ID] = true
			entry := audit.Entry{
				Event: audit.EventRevoke, Kind: string(g.Kind), Pack: g.Pack, Tool: g.Tool, Dir: g.Dir, Channel: "command", Grant: g.ID,
				Reason: fmt.Sprintf("the grant %s of %s", g.ID, g.Since.UTC().Format(time.RFC3339)),
			}
			if g.Person != "" {
				entry.Reason += " for " + g.Person
			}
			if err := log.Append(entry); err != nil {
				return nil, err // nothing changes without a log entry
			}
		}
		return slices.DeleteFunc(given, func(g grants.Grant) bool { return goes[g.ID] }), nil
	})
	if err != nil {
		return refusedGrants(cfg, err)
	}
	for _, g := range gone {
		r.took(g, false)
	}
	if len(gone)+len(goneInChats) == 0 && s.silent == 0 && !shared {
		fmt.Fprintln(r.Screen(r.Stderr), "No grants: there was nothing to revoke.")
	}
	if len(which.ids) > 0 {
		s.silent = 0 // the named grants are known
	}
	err = r.revokeInChats(ctx, goneInChats, s)
	gone = append(gone, grantsOf(goneInChats)...)
	return errors.Join(err, r.emptyCaches(ctx, cfg, func(key string) bool {
		return which.all || slices.ContainsFunc(gone, func(g grants.Grant) bool { return g.Digest == key })
	}))
}

// emptyCaches empties the caches of revoked grants: a cache's key is the digest
// of its grant.
func (r *revocation) emptyCaches(ctx context.Context, cfg *config.Config, revoked func(key string) bool) error {
	n, err := cli.CacheStore(cfg).Forget(ctx, revoked)
	if r.done.Caches = n; n > 0 {
		r.say("emptied %s\n", diag.Count(n, "cache"))
	}
	if err != nil {
		return cli.WithHint(fmt.Errorf("emptying caches: %w", err), "the answers are revoked; remove the folder of the caches yourself: %s", safetext.Quote(cfg.Paths.Caches))
	}
	return nil
}

// startOver records in the log that it moves a refused file aside, and then
// moves it.
func (r *revocation) startOver(cfg *config.Config, log audit.Writer, refused *private.RefusedError) error {
	err := log.Append(audit.Entry{
		Event: audit.EventRevoke, Channel: "command",
		Reason: fmt.Sprintf("all grants: %q is refused (%s), and is moved aside", refused.Path, refused.Reason),
	})
	if err != nil {
		return err
	}
	moved, err := cli.GrantStore(cfg).SetAside(time.Now())
	r.done.Moved = append(r.done.Moved, moved...)
	for _, path := range moved {
		r.say("moved aside: %s\n", safetext.Line(path))
	}
	if err != nil {
		return refusedGrants(cfg, err)
	}
	fmt.Fprintln(r.Screen(r.Stderr), "No grants are left; every call asks. Nothing was removed: look at what was moved aside.")
	return nil
}

// ended says what the selection is about, when it is not about single grants.
func (which selection) ended() grants.Ended {
	return grants.Ended{Person: which.person, By: which.by, Pack: which.pack, At: time.Now().UTC()}
}

// everywhere ends what is selected in the chats of all servers that share the store, and
// reports whether there is one. The log has it first.
func (r *revocation) everywhere(held grants.Store, log audit.Writer, which selection) (shared bool, err error) {
	all, shared := held.(interface{ End(e grants.Ended) error })
	if !shared || len(which.ids) > 0 {
		return false, nil
	}
	e := which.ended()
	var words strings.Builder
	words.WriteString("all answers in chats")
	for _, part := range [][2]string{{" of ", e.Person}, {" that were given by ", e.By}, {" of the pack ", e.Pack}} {
		if part[1] != "" {
			words.WriteString(part[0] + part[1])
		}
	}
	of := words.String()
	if err := log.Append(audit.Entry{Event: audit.EventRevoke, Pack: e.Pack, Channel: "command", Reason: of + ", on every server"}); err != nil {
		return false, err
	}
	if err := all.End(e); err != nil {
		return false, err
	}
	r.say("ended %s, on every server\n", safetext.Line(of))
	return true, nil
}

// of returns the selected grants.
func (which selection) of(given []grants.Grant) ([]grants.Grant, error) {
	const hint = "packs-mcp approvals grants lists the grants and their IDs"
	switch {
	case which.by != "" || which.person != "":
		found := slices.DeleteFunc(slices.Clone(given), func(g grants.Grant) bool { return !which.ended().Concerns(g) })
		if len(found) == 0 && which.by != "" {
			return nil, cli.WithHint(fmt.Errorf("no grants that %q gave", which.by), hint)
		}
		if len(found) == 0 {
			return nil, cli.WithHint(fmt.Errorf("no grants of %q", which.person), hint)
		}
		return found, nil
	case len(which.ids) == 0:
		found := ofPack(given, which.pack)
		if which.pack != "" && len(found) == 0 {
			return nil, cli.WithHint(fmt.Errorf("no grants of the pack %q", which.pack), hint)
		}
		return found, nil
	}
	var found []grants.Grant
	for _, id := range which.ids {
		var means []grants.Grant
		for _, g := range given {
			if g.ID == id {
				means = []grants.Grant{g}
				break
			}
			if len(id) <= len(g.ID) && strings.EqualFold(g.ID[:len(id)], id) {
				means = append(means, g)
			}
		}
		switch {
		case len(means) == 0:
			var ids []string
			for _, g := range given {
				ids = append(ids, g.ID)
			}
			return nil, cli.WithHint(fmt.Errorf("no grant %q", id), "%s", cli.Meant(id, ids, hint))
		case len(means) > 1:
			var names []string
			for _, g := range means[:min(len(means), 5)] {
				names = append(names, g.ID)
			}
			return nil, cli.WithHint(fmt.Errorf("%q means %d grants", id, len(means)), "give more of the ID: %s", safetext.Line(strings.Join(names, ", ")))
		case !slices.ContainsFunc(found, func(g grants.Grant) bool { return g.ID == means[0].ID }):
			found = append(found, means[0])
		}
	}
	return found, nil
}

// completeGrants offers the ids of the grants to the shell.
func (a *app) completeGrants(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeFromGrants(cmd.Context(), func(g grants.Grant) string {
		return safetext.Line(g.ID) + "\t" + cli.OneLine(grantSubject(g.Kind, g.Pack, g.Tool), 60)
	})
}

// completeGrantPacks offers the ids of the packs that have grants.
func (a *app) completeGrantPacks(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return a.completeFromGrants(cmd.Context(), func(g grants.Grant) string { return safetext.Line(g.Pack) })
}

func (a *app) completeFromGrants(ctx context.Context, word func(grants.Grant) string) ([]string, cobra.ShellCompDirective) {
	cfg, _, err := a.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	store, closeStore, err := cli.Grants(ctx, cfg, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	defer closeStore()
	all, err := store.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	a.Stderr = io.Discard // the shell would take a warning for a word
	inChats, _ := a.chatGrants(ctx)
	var words []string
	for _, g := range slices.Concat(all, grantsOf(inChats)) {
		if w := word(g); w != "" {
			words = append(words, w)
		}
	}
	slices.Sort(words)
	return slices.Compact(words), cobra.ShellCompDirectiveNoFileComp
}
