package get

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/packs/search"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
)

// searchSettings are the flags of search.
type searchSettings struct {
	in    []string
	limit int
	json  bool
}

func (a *app) searchCommand() *cobra.Command {
	var s searchSettings
	cmd := &cobra.Command{
		Use:   "search WORDS...",
		Short: "Search for packs that you could add",
		Long: `Search the sources that the configuration names: the rulebooks of sources.rulebooks, and the sites and
repositories of sources.indexes, as add takes their addresses. With --in, search another source
instead. Names, tags and descriptions are searched, and the best come first, each with the command
that adds it. Only the names of packs are fetched, and nothing changes.

Each source is asked each time, and by nobody but this command. The exit status is 1 when nothing is
found, and 3 when some of the sources cannot be asked.`,
		Example: `  packs-mcp search pdf forms
  packs-mcp search --in anthropics/skills spreadsheet
  packs-mcp search --in stakpak: terraform --json`,
		Args: cli.Needs(1, -1, "words that the pack is about"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.search(cmd.Context(), strings.Join(args, " "), s)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	a.ConfigFlag(cmd)
	cli.JSONFlag[hits](a.Env, cmd, &s.json)
	f := cmd.Flags()
	f.StringArrayVar(&s.in, "in", nil, "the `SOURCE` to search, as add takes it, instead of the configured ones (repeatable)")
	f.IntVar(&s.limit, "limit", 20, "how many are shown, from 1 to 1000")
	_ = cmd.RegisterFlagCompletionFunc("in", a.completeIndexes)
	_ = cmd.RegisterFlagCompletionFunc("limit", cobra.NoFileCompletions)
	return cmd
}

// completeIndexes offers the sources that search can use to the shell.
func (a *app) completeIndexes(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	cfg, _, err := a.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return indexesOf(cfg), cobra.ShellCompDirectiveDefault // folders can be named too
}

// indexesOf returns the sources that search uses.
func indexesOf(cfg *config.Config) []string {
	all := slices.Clone(cfg.Sources.Indexes)
	if rulebooks := "stakpak:"; cfg.Sources.Rulebooks != "" && !slices.Contains(all, rulebooks) {
		all = append(all, rulebooks)
	}
	return all
}

// A hit is a pack that was found, for --json.
type hit struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags,omitempty"`
	Label       string   `json:"label"` // "[local]", "[rulebook]" or "[pak]"
	Source      string   `json:"source"`
	Path        string   `json:"path"`
	Plugin      string   `json:"plugin,omitempty"`
	Add         []string `json:"add,omitempty"` // the command that adds it; absent: it cannot be added
	Problems    []string `json:"problems,omitempty"`
}

// A failedLook is a source that could not be searched.
type failedLook struct {
	Source string `json:"source"`
	Error  string `json:"error"`
}

func (a *app) search(ctx context.Context, words string, s searchSettings) error {
	if s.limit < 1 || s.limit > 1000 {
		return &cli.UsageError{Err: fmt.Errorf("--limit is %d", s.limit), Hint: "it must be from 1 to 1000"}
	}
	cfg, _, err := a.Load()
	if err != nil {
		return err
	}
	in := s.in
	if len(in) == 0 {
		in = indexesOf(cfg)
	}
	progress := a.Progress("asking " + cli.Counted(len(in), "source", "sources"))
	all, failed := a.offered(ctx, cfg, in)
	progress.Close()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	out := hits{Hits: []hit{}}
	index := search.New(func(yield func(search.Document) bool) {
		for _, h := range all {
			if !yield(search.Document{Name: h.Name + " " + h.Plugin, Tags: h.Tags, Description: h.Description}) {
				return
			}
		}
	})
	for _, found := range index.Search(words, s.limit, search.Filter{}) {
		out.Hits = append(out.Hits, all[found.Index])
	}
	var errs []error
	for i, err := range failed {
		if err != nil {
			out.Failed = append(out.Failed, failedLook{in[i], err.Error()})
			errs = append(errs, fmt.Errorf("%s: %w", safetext.Line(in[i]), err))
		}
	}
	if s.json {
		if err := cli.PrintJSON(a.Stdout, out); err != nil {
			return err
		}
	} else {
		a.printHits(out.Hits)
	}
	switch err := errors.Join(errs...); {
	case err != nil && len(errs) == len(in):
		return err
	case err != nil:
		return &cli.StatusError{Err: err, Status: statusPartly}
	case len(out.Hits) == 0 && s.json:
		return cli.ErrSaid
	case len(out.Hits) == 0:
		return cli.WithHint(fmt.Errorf("no pack of %s is about that", cli.Counted(len(in), "source", "sources")), "try other words, or name a source with --in; sources.indexes in the configuration names more of them")
	}
	return nil
}

// asked is how many sources are asked at once.
const asked = 4

// offered returns the packs that sources offer, and the errors of sources that could
// not be asked.
func (a *app) offered(ctx context.Context, cfg *config.Config, in []string) ([]hit, []error) {
	found, failed := make([][]hit, len(in)), make([]error, len(in))
	web, free := a.web(cfg), make(chan struct{}, asked)
	var wait sync.WaitGroup
	for i, source := range in {
		wait.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			found[i], failed[i] = offeredBy(ctx, web, source)
		})
	}
	wait.Wait()
	return slices.Concat(found...), failed
}

// offeredBy returns the packs that one source offers.
func offeredBy(ctx context.Context, web *web.Access, source string) ([]hit, error) {
	r, err := address.Parse(source)
	if err != nil {
		return nil, err
	}
	if r.Kind == address.Folder || r.Kind == address.Archive {
		if r.At, err = filepath.Abs(r.At); err != nil {
			return nil, err
		}
	}
	snap, err := openSource(ctx, web, r)
	if err != nil {
		return nil, err
	}
	defer snap.Close()
	packs, err := sources.Survey(ctx, snap, r.Path)
	if err != nil {
		return nil, err
	}
	label := sources.ProviderOf(source).Label()
	var all []hit
	for _, p := range packs {
		h := hit{Name: p.Name, Description: p.Description, Tags: p.Tags, Label: label, Source: source, Path: p.Path, Plugin: p.Plugin, Problems: p.Problems}
		if p.Valid && !p.Elsewhere {
			h.Add = []string{"packs-mcp", "add", source, cmp.Or(p.Path, p.Name)}
		}
		all = append(all, h)
	}
	return all, nil
}

func (a *app) printHits(all []hit) {
	for _, h := range all {
		tags := ""
		if len(h.Tags) > 0 {
			tags = " [" + safetext.Line(strings.Join(h.Tags, ", ")) + "]"
		}
		fmt.Fprintf(a.Stdout, "- %s %s: %s%s\n", h.Label, safetext.Line(h.Name), cli.OneLine(h.Description, 160), tags)
		if len(h.Add) > 0 {
			fmt.Fprintf(a.Stdout, "    %s\n", words(h.Add))
		} else {
			fmt.Fprintf(a.Stdout, "    from %s, and cannot be added: %s\n", safetext.Line(h.Source), cli.OneLine(strings.Join(h.Problems, "; "), 200))
		}
	}
}

// words returns a command line for a person to copy. Words with a special meaning in
// a shell are in single quotes.
func words(args []string) string {
	var out []string
	for _, arg := range args {
		arg = safetext.Line(arg)
		if strings.Trim(arg, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@+=,") != "" || strings.HasPrefix(arg, "-") {
			arg = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
		}
		out = append(out, arg)
	}
	return strings.Join(out, " ")
}
