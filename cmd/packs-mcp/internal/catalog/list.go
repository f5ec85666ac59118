package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/byname"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/entrydoc"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sources"
)

// listedPack is one pack in the form that list --json and show --json print.
type listedPack struct {
	PackID       string      `json:"pack_id"`
	Name         string      `json:"name"`
	Description  string      `json:"description"`
	Tags         []string    `json:"tags"`
	Version      string      `json:"version,omitempty"`
	License      string      `json:"license,omitempty"`
	Compatible   string      `json:"compatibility,omitempty"`
	AllowedTools string      `json:"allowed_tools,omitempty"`
	Modes        []string    `json:"modes,omitempty"`
	Source       string      `json:"source"`
	Path         string      `json:"path"`
	Trust        packs.Trust `json:"trust"`
	Attached     bool        `json:"attached"`
	Valid        bool        `json:"valid"`
	HasToolsJSON bool        `json:"has_tools_json"`
	ShadowedBy   string      `json:"shadowed_by,omitempty"`
	// HiddenInMode is the configured mode, if the pack is for other modes only.
	HiddenInMode string `json:"hidden_in_mode,omitempty"`
	// Forbidden says that a rule denies everything about the pack.
	Forbidden bool `json:"forbidden,omitempty"`
	// WithoutTool says that the pack gets no tool of its own, although skills are
	// exposed: the limit is reached.
	WithoutTool bool `json:"without_tool,omitempty"`
	// Added says where the pack was added from; nil for a pack that was not added.
	Added    *addedFrom        `json:"added,omitempty"`
	Problems []diag.Diagnostic `json:"problems"`

	set    *tools.Set // nil if it has none
	unread bool
	denied []diag.Diagnostic // the part of Problems about files that are left out, and tools that need them
}

// addedFrom is what the lock file says about a pack that was added.
type addedFrom struct {
	Provider   string `json:"provider,omitempty"` // "rulebook" or "pak"; absent for a pack of this machine
	Source     string `json:"source"`             // as it was written
	Resolved   string `json:"resolved"`           // the address of exactly this version
	Pin        string `json:"pin"`
	Signer     string `json:"signer"` // "nobody"
	Unsigned   bool   `json:"unsigned,omitempty"`
	Visibility string `json:"visibility,omitempty"` // for a rulebook: who may see it
	CreatedAt  string `json:"created_at,omitempty"` // as the source says
	UpdatedAt  string `json:"updated_at,omitempty"`
}

// label returns the beginning of a line about the pack.
func (l *listedPack) label() string {
	if l.Added == nil {
		return sources.NoProvider.Label()
	}
	return sources.Provider(l.Added.Provider).Label()
}

// A listing is what list --json prints, part by part.
type listing struct {
	Packs    []listedPack      `json:"packs"`
	Problems []diag.Diagnostic `json:"problems,omitempty"` // of the folders
}

func (a *app) listCommand() *cobra.Command {
	var all, asJSON bool
	var source string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the attached packs",
		Long:  "List the attached packs: what a model sees from the start. With --all, also those that are not attached, shadowed, invalid or forbidden by a rule, with the reason.",
		Example: `  packs-mcp list --packs ~/packs
  packs-mcp list --all --json`,
		Args: cli.Misuse(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.list(cmd.Context(), source, all, asJSON) },
	}
	a.PackFlags(cmd)
	cmd.Flags().BoolVar(&all, "all", false, "also packs that a model does not see, with the reason")
	cli.ChoiceVar(cmd, &source, "source", sourceAll, "local (from this machine), remote (from elsewhere), rulebook or pak (the two kinds of remote), or all", sourceLocal, sourceRemote, string(sources.RulebookProvider), string(sources.PakProvider), sourceAll)
	cli.JSONFlag[listing](a.Env, cmd, &asJSON)
	return cmd
}

// Where the packs of a list come from.
const (
	sourceLocal  = "local"
	sourceRemote = "remote"
	sourceAll    = "all"
)

func (a *app) list(ctx context.Context, source string, all, asJSON bool) error {
	cfg, logger, err := a.Load()
	if err != nil {
		return err
	}
	progress := a.Progress("reading packs")
	defer progress.Close()
	lib, err := a.Library(ctx, cfg, logger)
	if err != nil {
		return err
	}
	catalog := lib.Catalog(ctx)
	found, problems := catalog.All(), catalog.Problems()
	if !all {
		found = slices.DeleteFunc(found, func(p *packs.Pack) bool { return !isListed(p) })
	}
	added := cli.NewAdded(cfg)
	found = slices.DeleteFunc(slices.Clone(found), func(p *packs.Pack) bool { return !isFrom(added, p, source) })
	if source != sourceLocal && source != sourceAll {
		problems = nil // they are about folders of this machine
	}
	without := slices.DeleteFunc(slices.Clone(cli.WithoutTool(cfg, catalog)), func(p *packs.Pack) bool { return !isFrom(added, p, source) })
	listed := describeAll(ctx, cfg, added, found, without, all)
	if cli.IsTerminal(a.Stdout) {
		progress.Close() // the packs themselves show the progress
	} else {
		listed = counted(listed, progress, len(found))
	}
	if asJSON {
		var more any
		if len(problems) > 0 {
			more = problems
		}
		return cli.PrintJSONList(a.Stdout, "packs", listed, "problems", more)
	}
	shown, out, notes := 0, a.Screen(a.Stdout), a.Screen(a.Stderr)
	for l := range listed {
		printPack(out, l, all)
		shown++
	}
	if source != sourceAll && source != sourceLocal {
		if shown == 0 {
			sayNoneFrom(notes, source, all)
		}
		return nil
	}
	for _, d := range problems {
		notes.Problem("", d)
	}
	if message, hint := cli.SayWithoutTool(cfg, without); message != "" {
		fmt.Fprintf(notes, "%s: %s\n    %s: %s\n", notes.Style(cli.Yellow, "warning"), message, notes.Style(cli.Cyan, "hint"), hint)
	}
	if note := a.compatNote(ctx, cfg); note != "" {
		defer fmt.Fprintln(notes, note)
	}
	every := 0
	for _, p := range catalog.All() {
		if isFrom(added, p, source) {
			every++
		}
	}
	switch rest := every - shown; {
	case every == 0:
		a.sayNoPacks(cfg)
	case !all && rest > 0:
		hidden := cli.Counted(rest, "more pack is", "more packs are")
		fmt.Fprintf(notes, "%s hidden (not attached, for another mode, shadowed, invalid or forbidden): packs-mcp list --all\n", hidden)
	}
	return nil
}

// isFrom reports whether a pack is from a source that list names.
func isFrom(added *cli.Added, p *packs.Pack, source string) bool {
	if source == sourceAll {
		return true
	}
	from, _ := added.Pack(p.Dir)
	switch source {
	case sourceLocal:
		return from.Provider == sources.NoProvider
	case sourceRemote:
		return from.Provider != sources.NoProvider
	}
	return string(from.Provider) == source
}

// sayNoneFrom says that no pack is from a source, and what to do.
func sayNoneFrom(w *cli.Screen, source string, all bool) {
	what := "packs from elsewhere"
	if source != sourceRemote {
		what = source + "s"
	}
	if !all {
		fmt.Fprintf(w, "No %s are attached; packs-mcp list --all --source %s also shows those that are not.\n", what, source)
		return
	}
	fmt.Fprintf(w, "No %s. Find some with packs-mcp search, and get them with packs-mcp add.\n", what)
}

// counted reports the progress with each pack, and removes it after the last.
func counted(listed iter.Seq[listedPack], progress *cli.Progress, all int) iter.Seq[listedPack] {
	return func(yield func(listedPack) bool) {
		defer progress.Close()
		done := 0
		for l := range listed {
			done++
			progress.Of(done, all)
			if !yield(l) {
				return
			}
		}
	}
}

// isListed reports whether a pack is listed without --all: a model sees it, or will
// see it once it is read.
func isListed(p *packs.Pack) bool {
	return p.Attached && p.Offered && p.ShadowedBy == "" && (p.Valid || p.IsUnread())
}

// sayNoPacks prints where packs were searched for, and what was skipped there.
func (a *app) sayNoPacks(cfg *config.Config) {
	fmt.Fprintln(a.Screen(a.Stderr), "No packs. Looked in:")
	for _, r := range a.Roots(cfg, a.PacksFolder(cfg)) {
		fmt.Fprintf(a.Screen(a.Stderr), "  %s: %s\n", safetext.Line(r.Dir), whatIsIn(r.Dir))
	}
	if dir, err := os.Getwd(); err == nil && cli.Project(cfg) == "" && !cli.SeveralPeople(cfg) && a.PacksFolder(cfg) == "" {
		fmt.Fprintf(a.Screen(a.Stderr), "  %s and the folders above it: no folder .packs in any\n", safetext.Line(dir))
	}
	fmt.Fprintln(a.Screen(a.Stderr), "Name a folder of packs with: packs-mcp folders add DIR")
	fmt.Fprintln(a.Screen(a.Stderr), "Or begin with the examples in this program: packs-mcp try shows them, packs-mcp serve --bundled serves them.")
}

// whatIsIn returns why no pack was found in a folder.
func whatIsIn(dir string) string {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it is not there"
	case err != nil:
		return "it cannot be read"
	}
	var skipped []string
	for _, e := range entries {
		if byname.IsSkipped(e.Name()) && e.IsDir() {
			skipped = append(skipped, safetext.Line(e.Name()))
		}
	}
	text := "no SKILL.md, and no other document that makes a pack"
	const most = 5
	switch more := len(skipped) - most; {
	case more > 0:
		text += fmt.Sprintf("; skipped: %s and %d more", strings.Join(skipped[:most], ", "), more)
	case len(skipped) > 0:
		text += "; skipped: " + strings.Join(skipped, ", ")
	}
	return text
}

// describeAll describes packs one by one. It leaves out packs about which a rule
// forbids everything, which models do not see, unless all is set. without are the
// packs that get no tool of their own.
func describeAll(ctx context.Context, cfg *config.Config, added *cli.Added, found, without []*packs.Pack, all bool) iter.Seq[listedPack] {
	withoutTool := make(map[*packs.Pack]bool, len(without))
	for _, p := range without {
		withoutTool[p] = true
	}
	return func(yield func(listedPack) bool) {
		// Compiled tools stay in memory, so do not keep those of many packs at
		// once.
		const most = 1_000
		var files *toolfiles.Files
		for i, p := range found {
			if i%most == 0 {
				files = cli.ToolFiles(cfg)
			}
			forbidden := rules.Forbids(cfg.Rules, "", p.ID)
			if forbidden && !all {
				continue
			}
			dir, err := p.OpenDir() // opened once for all uses
			l := describe(p, dir, err, files, added, cfg.Mode)
			l.Forbidden, l.WithoutTool = forbidden, withoutTool[p]
			if err == nil {
				if l.Attached {
					// Only for packs that a model can use, since this check looks at
					// every file.
					l.denied = toolfiles.DeniedFrom(ctx, dir, p, l.set)
					l.Problems = append(l.Problems, l.denied...)
				}
				dir.Close()
			}
			if !yield(l) {
				return
			}
		}
	}
}

// compatNote returns a line about folders of other programs that hold packs, if the
// configuration lists none of these programs; otherwise "".
func (a *app) compatNote(ctx context.Context, cfg *config.Config) string {
	if len(cfg.Compat) > 0 {
		return ""
	}
	var names, counts []string
	for _, name := range places.CompatNames() {
		catalog, err := packs.Scan(ctx, packs.Options{Roots: a.CompatRoots([]string{name}, a.PacksFolder(cfg))})
		if err != nil {
			return ""
		}
		if n := len(catalog.All()); n > 0 {
			names, counts = append(names, name), append(counts, fmt.Sprintf("%s (%d)", name, n))
		}
	}
	if len(names) == 0 {
		return ""
	}
	file := cfg.File
	if file == "" {
		file = cfg.Paths.Config
	}
	return fmt.Sprintf("Packs of other programs are here: %s. To find them too, put this line into %s: compat: [%s]",
		strings.Join(counts, ", "), safetext.Line(file), strings.Join(names, ", "))
}

// describe returns everything about a pack that a person or a program may want
// to know before opening it. dir and err are what [packs.Pack.OpenDir] returned.
func describe(p *packs.Pack, dir *packfs.Dir, err error, files *toolfiles.Files, added *cli.Added, mode string) listedPack {
	var set *tools.Set
	var problems []diag.Diagnostic
	var m entrydoc.Metadata
	if err == nil {
		m = entrydoc.MetadataIn(p, dir)
		set, problems, err = files.LoadFrom(dir, p)
	}
	l := listedPack{
		Version: m.Version, License: m.License, Compatible: m.Compatibility, AllowedTools: m.AllowedTools, Modes: p.Modes(),
		PackID: p.ID, Name: p.Name, Description: p.Description, Tags: append([]string{}, p.Tags()...),
		Source: p.Source, Path: p.Dir, Trust: p.Trust, Attached: p.Attached && p.Valid && p.ShadowedBy == "", Valid: p.Valid,
		HasToolsJSON: err == nil && files.CanEnable(set), ShadowedBy: p.ShadowedBy,
		Problems: append(slices.Clone(p.Problems), problems...), set: set, unread: p.IsUnread(),
	}
	if from, ok := added.Pack(p.Dir); ok {
		l.Added = &addedFrom{
			Provider: string(from.Provider), Source: from.Source, Resolved: from.Resolved, Pin: from.Pin, Signer: from.Signer, Unsigned: from.Unsigned,
			Visibility: from.Visibility, CreatedAt: from.CreatedAt, UpdatedAt: from.UpdatedAt,
		}
	}
	if !p.Offered {
		l.HiddenInMode = cmp.Or(mode, "Global")
	}
	if err != nil && !(p.Loose && !p.Valid) { // for such a tool, the problems say why
		l.Problems = append(l.Problems, diag.Diagnostic{
			Code: packs.CodeToolsUnreadable, Severity: diag.Error, Message: err.Error(), Hint: "check that the pack's folder is there and can be read",
		})
	}
	if l.Problems == nil {
		l.Problems = []diag.Diagnostic{}
	}
	return l
}

// printPack prints a line for a pack in the format of the unified skills and,
// with all, why a model does not see it.
func printPack(w *cli.Screen, l listedPack, all bool) {
	state := ""
	switch {
	case l.unread:
		state = " (not read yet)"
	case !all:
	case !l.Valid:
		state = " (invalid)"
	case l.ShadowedBy != "":
		state = " (shadowed)"
	case !l.Attached:
		state = " (not attached)"
	case l.Forbidden:
		state = " (forbidden by a rule)"
	case l.HiddenInMode != "":
		state = fmt.Sprintf(" (for %s, and the mode is %s)", modesLine(l.Modes), safetext.Line(l.HiddenInMode))
	case l.WithoutTool:
		state = " (no tool of its own)"
	}
	fmt.Fprint(w, skillLine(l.label(), w.Style(cli.Bold, l.PackID), w.Style(cli.Yellow, state), cli.OneLine(l.Description, 160), l.Tags))
	if !all && !l.unread {
		for _, d := range l.Problems {
			if d.Severity == diag.Error || slices.Contains(l.denied, d) {
				w.Problem("    ", d)
			}
		}
	}
	if all {
		fmt.Fprintln(w, w.Style(cli.Faint, fmt.Sprintf("    %s, %s: %s", l.Source, l.Trust, safetext.Line(l.Path))))
		for _, d := range cli.FoldInfos(l.Problems) {
			w.Problem("    ", d)
		}
	}
}

// modesLine lists modes: "mode Dev", "the modes Dev and Meeting".
func modesLine(modes []string) string {
	named := make([]string, len(modes))
	for i, m := range modes {
		named[i] = safetext.Line(m)
	}
	if len(named) == 1 {
		return "the mode " + named[0]
	}
	return "the modes " + strings.Join(named, ", ")
}
