package auditcmd

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// verdict is what verify --json prints.
type verdict struct {
	OK       bool           `json:"ok"`
	Files    []string       `json:"files"`
	Entries  int            `json:"entries"`
	First    int64          `json:"first"`
	Last     int64          `json:"last"`
	From     *time.Time     `json:"from,omitempty"`
	To       *time.Time     `json:"to,omitempty"`
	Hash     string         `json:"hash"`
	Problems []auditProblem `json:"problems"`
	More     int            `json:"more,omitempty"`
	Runs     []auditRun     `json:"runs"` // runs without a start or an end
}

type auditProblem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

type auditRun struct {
	Run     string    `json:"run"`
	Pack    string    `json:"pack,omitempty"`
	Tool    string    `json:"tool,omitempty"`
	Server  string    `json:"server,omitempty"`
	File    string    `json:"file"`
	Line    int       `json:"line"`
	Time    time.Time `json:"time"`
	Missing string    `json:"missing"` // "start" or "end"
	Message string    `json:"message"`
}

func verdictOf(r audit.Report) verdict {
	v := verdict{
		OK: r.OK, Files: r.Files, Entries: r.Entries, First: r.First, Last: r.Last, Hash: r.Hash,
		Problems: problemsOf(r.Problems), More: r.More, Runs: runsOf(r.Runs),
	}
	if r.Entries > 0 {
		v.From, v.To = &r.From, &r.To
	}
	return v
}

func problemsOf(found []audit.Problem) []auditProblem {
	all := make([]auditProblem, 0, len(found))
	for _, p := range found {
		all = append(all, auditProblem{File: p.File, Line: p.Line, Kind: string(p.Kind), Message: p.Message})
	}
	return all
}

func runsOf(loose []audit.LooseRun) []auditRun {
	all := make([]auditRun, 0, len(loose))
	for _, run := range loose {
		e, missing := run.Line.Entry, "start"
		if run.Started() {
			missing = "end"
		}
		all = append(all, auditRun{
			Run: e.Run, Pack: e.Pack, Tool: e.Tool, Server: e.Server, File: run.Line.File, Line: run.Line.Number, Time: e.Time,
			Missing: missing, Message: looseNote(run),
		})
	}
	return all
}

func (a *app) auditVerify(asJSON bool) error {
	path, err := a.auditPath()
	if err != nil {
		return err
	}
	progress := a.Progress("checking the log")
	report, err := audit.Verify(path)
	progress.Close()
	if err != nil {
		return noLog(path, err)
	}
	if asJSON {
		if err := cli.PrintJSON(a.Stdout, verdictOf(report)); err != nil {
			return err
		}
	} else {
		a.printVerdict(&report)
	}
	if !report.OK {
		return cli.WithHint(fmt.Errorf("the audit log at %q is not as it was written", path), "keep the file as it is, and find out who could write to it; a new log begins when you move it away")
	}
	return nil
}

// sayer returns a function that prints a line of a verdict.
func (a *app) sayer() func(format string, args ...any) {
	out := a.Screen(a.Stdout)
	return func(format string, args ...any) {
		text := safetext.Line(fmt.Sprintf(format, args...))
		if rest, ok := strings.CutPrefix(text, "ok: "); ok {
			text = out.Style(cli.Green, "ok:") + " " + rest
		} else if rest, ok := strings.CutPrefix(text, "not ok: "); ok {
			text = out.Style(cli.Red, "not ok:") + " " + rest
		}
		fmt.Fprintln(out, text)
	}
}

// printVerdict prints the result in words. The text for an intact log begins with
// "ok".
func (a *app) printVerdict(r *audit.Report) {
	say := a.sayer()
	where := strings.Join(r.Files, ", ")
	if len(r.Files) > 1 {
		where = fmt.Sprintf("%d files, %s to %s", len(r.Files), r.Files[0], filepath.Base(r.Files[len(r.Files)-1]))
	}
	if r.OK {
		say("ok: %s in %s", cli.Counted(r.Entries, "entry", "entries"), where)
	} else {
		say("not ok: %s in %s; %s", cli.Counted(r.Entries, "intact entry", "intact entries"), cmp.Or(where, "no file"), cli.Counted(len(r.Problems)+r.More, "problem", "problems"))
	}
	for _, p := range r.Problems {
		say("%s", p)
	}
	if r.More > 0 {
		say("and %s", cli.Counted(r.More, "more problem", "more problems"))
	}
	if r.Entries > 0 {
		say("from: %d %s", r.First, localTime(r.From))
		say("to: %d %s", r.Last, localTime(r.To))
		say("last: %d %s", r.Last, r.Hash)
	}
	for _, run := range r.Runs {
		say("note: %s", noteOf(run))
	}
}

// noteOf describes a run without a start or an end.
func noteOf(run audit.LooseRun) string {
	e := run.Line.Entry
	did := "ended"
	if run.Started() {
		did = "began"
	}
	return fmt.Sprintf("%s of pack %s (%s) %s at %s, entry %d: %s", e.Run, cmp.Or(e.Pack, "unknown"), e.Tool, did, localTime(e.Time), e.Seq, looseNote(run))
}

// looseNote says what a run without a start or an end means.
func looseNote(run audit.LooseRun) string {
	if !run.Started() {
		return "it has no start; the lines before are missing, or in a file that was moved away"
	}
	text := "it has no end: "
	pid, known := serverPID(run.Line.Entry.Server)
	switch {
	case !run.Stopped.IsZero():
		return text + "its server stopped at " + localTime(run.Stopped) + " without recording one"
	case known && processGone(pid):
		return text + fmt.Sprintf("the server was killed; there is no process %d here any more", pid)
	case !run.Next.IsZero():
		return text + "the server was killed, or still runs it; another server began at " + localTime(run.Next)
	default:
		return text + "the server was killed, or still runs it"
	}
}

// serverPID returns the number of the process that called itself name, as
// servers do: pid-4711-1767225600000.
func serverPID(name string) (int, bool) {
	rest, ok := strings.CutPrefix(name, "pid-")
	if !ok {
		return 0, false
	}
	digits, _, _ := strings.Cut(rest, "-")
	pid, err := strconv.Atoi(digits)
	return pid, err == nil && pid > 0
}
