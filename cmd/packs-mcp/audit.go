package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

func (a *app) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "audit",
		Short:   "Look at what was asked, decided and run",
		Example: "  packs-mcp audit show\n  packs-mcp audit verify",
		Args:    misuse(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var last int
	var asJSON bool
	show := &cobra.Command{
		Use:     "show",
		Short:   "Print the audit log, a line an event",
		Example: "  packs-mcp audit show --last 20\n  packs-mcp audit show --json | jq 'select(.event == \"run.end\")'",
		Args:    misuse(cobra.NoArgs),
		RunE:    func(*cobra.Command, []string) error { return a.auditShow(last, asJSON) },
	}
	show.Flags().IntVar(&last, "last", 0, "only the last `N` events")
	show.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object a line")
	var verifyJSON bool
	verify := &cobra.Command{
		Use:   "verify",
		Short: "Check that nothing in the audit log was changed, dropped or reordered",
		Long: `Check that nothing in the audit log was changed, dropped or reordered. The status is 0 when
the log is whole; a line that a crash tore is named, and is no failure.`,
		Example: "  packs-mcp audit verify",
		Args:    misuse(cobra.NoArgs),
		RunE:    func(*cobra.Command, []string) error { return a.auditVerify(verifyJSON) },
	}
	verify.Flags().BoolVar(&verifyJSON, "json", false, "print JSON")
	for _, c := range []*cobra.Command{show, verify} {
		c.Flags().StringVar(&a.flags.config, "config", "", "the configuration `FILE`")
	}
	cmd.AddCommand(show, verify)
	return cmd
}

func (a *app) auditPath() (string, error) {
	cfg, _, err := a.load()
	if err != nil {
		return "", err
	}
	return cfg.Audit.Path, nil
}

// noLog says what a missing log means.
func noLog(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return withHint(fmt.Errorf("there is no audit log at %q", path), "nothing was served yet, or audit.path in the configuration names another file")
	}
	return err
}

func (a *app) auditShow(last int, asJSON bool) error {
	if last < 0 {
		return &usageError{err: fmt.Errorf("--last is %d", last), hint: "give the number of events to print"}
	}
	path, err := a.auditPath()
	if err != nil {
		return err
	}
	var kept []audit.Line
	for line, err := range audit.Read(path) {
		if e, ok := errors.AsType[*audit.LineError](err); ok {
			fmt.Fprintf(a.stderr, "packs-mcp: warning: %s\n", safetext.Line(e.Error()))
			continue
		}
		if err != nil {
			return noLog(path, err)
		}
		if last == 0 {
			if err := printEntry(a.stdout, line.Entry, asJSON); err != nil {
				return err
			}
			continue
		}
		if kept = append(kept, line); len(kept) > last {
			kept = kept[1:]
		}
	}
	for _, line := range kept {
		if err := printEntry(a.stdout, line.Entry, asJSON); err != nil {
			return err
		}
	}
	return nil
}

// printEntry prints one event: JSON as it is in the log, or words.
func printEntry(w io.Writer, e audit.Entry, asJSON bool) error {
	if asJSON {
		return printJSONLine(w, e)
	}
	_, err := fmt.Fprintf(w, "%6d  %s  %-12s %s\n", e.Seq, e.Time.Local().Format(time.DateTime), e.Event, safetext.Line(summary(e)))
	return err
}

// summary says what an event was about, on one line.
func summary(e audit.Entry) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if e.Kind != "" {
		add("%s", e.Kind)
	}
	if e.Pack != "" {
		add("%s", e.Pack)
	}
	if e.Tool != "" {
		add("(%s)", e.Tool)
	}
	if e.Decision != "" {
		add("→ %s", e.Decision)
	}
	if e.Channel != "" {
		add("by %s", e.Channel)
	}
	if e.Program != "" {
		add("%s in %s, sandbox %s", e.Program, e.Dir, cmp.Or(e.Sandbox, "unknown"))
	}
	switch {
	case e.Error != "":
		add("failed: %s", e.Error)
	case e.Cause != "":
		add("ended by %s", e.Cause)
	case e.Signal != "":
		add("ended by %s", e.Signal)
	case e.ExitCode != nil:
		add("exit %d after %d ms", *e.ExitCode, e.DurationMS)
	}
	if len(e.Artifacts) > 0 {
		add("made %s", strings.Join(e.Artifacts, ", "))
	}
	if e.Reason != "" {
		add("(%s)", e.Reason)
	}
	if e.Recovered != nil {
		add("the log was damaged here and goes on")
	}
	return strings.Join(parts, " ")
}

// verdict is what verify --json prints.
type verdict struct {
	OK       bool           `json:"ok"`
	Files    []string       `json:"files"`
	Entries  int            `json:"entries"`
	First    int64          `json:"first"`
	Last     int64          `json:"last"`
	Hash     string         `json:"hash"`
	Problems []auditProblem `json:"problems"`
	More     int            `json:"more,omitempty"`
}

type auditProblem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

func verdictOf(r audit.Report) verdict {
	v := verdict{
		OK: r.OK, Files: r.Files, Entries: r.Entries, First: r.First, Last: r.Last, Hash: r.Hash,
		Problems: []auditProblem{}, More: r.More,
	}
	for _, p := range r.Problems {
		v.Problems = append(v.Problems, auditProblem{File: p.File, Line: p.Line, Kind: string(p.Kind), Message: p.Message})
	}
	return v
}

func (a *app) auditVerify(asJSON bool) error {
	path, err := a.auditPath()
	if err != nil {
		return err
	}
	report, err := audit.Verify(path)
	if err != nil {
		return noLog(path, err)
	}
	if asJSON {
		if err := printJSON(a.stdout, verdictOf(report)); err != nil {
			return err
		}
	} else {
		for _, p := range report.Problems {
			fmt.Fprintf(a.stdout, "%s\n", safetext.Line(p.String()))
		}
		if report.More > 0 {
			fmt.Fprintf(a.stdout, "and %d more problems\n", report.More)
		}
		if report.OK {
			fmt.Fprintf(a.stdout, "ok: %d entries in %s\nlast: %d %s\n", report.Entries, strings.Join(report.Files, ", "), report.Last, report.Hash)
		}
	}
	if !report.OK {
		return withHint(fmt.Errorf("the audit log at %q is not as it was written", path), "keep the file as it is, and find out who could write to it; a new log begins when you move it away")
	}
	return nil
}
