package auditcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

func (a *app) auditShow(q *auditQuery, export string) error {
	if err := q.check(time.Now()); err != nil {
		return err
	}
	path, entries := export, entriesOf(export)
	if export == "" {
		var err error
		if path, err = a.auditPath(); err != nil {
			return err
		}
		entries = audit.Read(path)
	}
	out := a.Screen(a.Stdout)
	loose := make(map[string]audit.LooseRun) // :: hash of an entry → its run
	if !q.asJSON {
		var runs audit.Runs
		for line, err := range entries {
			if err == nil {
				runs.Add(line)
			}
		}
		for _, run := range runs.Loose() {
			loose[run.Line.Entry.Hash] = run
		}
	}
	print := func(e audit.Entry) error {
		if run, ok := loose[e.Hash]; ok {
			return printNoted(out, e, looseNote(run))
		}
		return a.printEntry(out, e, q.asJSON)
	}
	var kept []audit.Entry
	found := 0
	for line, err := range entries {
		if e, ok := errors.AsType[*audit.LineError](err); ok {
			a.warnLine(e)
			continue
		}
		if err != nil {
			return noLog(path, err)
		}
		if !q.wants(&line.Entry) {
			continue
		}
		found++
		if q.last == 0 {
			if err := print(line.Entry); err != nil {
				return err
			}
			continue
		}
		if kept = append(kept, line.Entry); len(kept) > q.last {
			kept = kept[1:]
		}
	}
	for _, e := range kept {
		if err := print(e); err != nil {
			return err
		}
	}
	if found == 0 && !q.asJSON {
		fmt.Fprintln(a.Screen(a.Stderr), "The log has no such event.")
	}
	return nil
}

func (a *app) auditFollow(ctx context.Context, q *auditQuery) error {
	if err := q.check(time.Now()); err != nil {
		return err
	}
	path, err := a.auditPath()
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(a.Screen(a.Stderr), "packs-mcp: there is no audit log at %q yet; waiting for it\n", path)
	}
	out := a.Screen(a.Stdout)
	live := false // everything already in the log has been read
	var kept []audit.Entry
	for line, err := range audit.Follow(ctx, path) {
		switch e, damaged := errors.AsType[*audit.LineError](err); {
		case damaged:
			if live {
				a.warnLine(e)
			}
		case err != nil:
			return err
		case line.File == "":
			for _, e := range kept {
				if err := a.printEntry(out, e, q.asJSON); err != nil {
					return err
				}
			}
			live, kept = true, nil
		case !q.wants(&line.Entry):
		case live:
			if err := a.printEntry(out, line.Entry, q.asJSON); err != nil {
				return err
			}
		default:
			if kept = append(kept, line.Entry); len(kept) > q.last {
				kept = kept[1:]
			}
		}
	}
	return nil
}

func (a *app) warnLine(e *audit.LineError) {
	fmt.Fprintf(a.Screen(a.Stderr), "packs-mcp: warning: %s\n", safetext.Line(e.Error()))
}

// printEntry prints one event: JSON as it is in the log, or words.
func (a *app) printEntry(s *cli.Screen, e audit.Entry, asJSON bool) error {
	if asJSON {
		return cli.PrintJSONLine(a.Stdout, e)
	}
	return PrintEntry(s, e)
}

// PrintEntry prints one event in words.
func PrintEntry(s *cli.Screen, e audit.Entry) error { return printNoted(s, e, "") }

// styleOf returns the style of an event. Refusals and errors stand out.
func styleOf(e audit.Entry) cli.Style {
	switch {
	case e.Event == audit.EventRunEnd && failed(e), e.Error != "", e.Recovered != nil:
		return cli.Red
	case e.Decision == "deny", e.Event == audit.EventRefusal:
		return cli.Yellow
	case e.Decision != "":
		return cli.Green
	}
	return cli.Bold
}

// printNoted prints one event in words, with a note.
func printNoted(s *cli.Screen, e audit.Entry, note string) error {
	text := summary(e)
	if note != "" {
		text += " — " + note
	}
	if s.Plain() {
		_, err := fmt.Fprintf(s, "Event %d, %s, %s: %s.\n", e.Seq, localTime(e.Time), safetext.Line(string(e.Event)), safetext.Line(text))
		return err
	}
	event := safetext.Line(string(e.Event))
	// The blanks are outside the style: lines that do not fit are indented by them.
	blanks := strings.Repeat(" ", max(0, 12-len(event)))
	_, err := fmt.Fprintf(s, "%6d  %s  %s%s %s\n", e.Seq, localTime(e.Time), s.Style(styleOf(e), event), blanks, safetext.Line(text))
	return err
}

func localTime(t time.Time) string { return t.Local().Format(time.DateTime) }

// summary describes an event on one line.
func summary(e audit.Entry) string {
	var parts []string
	add := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if e.Event == audit.EventServerStart || e.Event == audit.EventServerStop {
		add("%s", e.Server)
	}
	if e.Kind != "" {
		add("%s", e.Kind)
	}
	if e.Pack != "" {
		add("%s", e.Pack)
	}
	if e.Tool != "" {
		add("(%s)", e.Tool)
	}
	if e.Event == audit.EventRefusal {
		add("→ %s", cmp.Or(e.Code, "refused"))
	}
	if e.Decision != "" {
		add("→ %s", e.Decision)
	}
	if e.Channel != "" {
		add("by %s", e.Channel)
	}
	switch {
	case e.Event == audit.EventRunEnd:
		add("%s: %s", e.Program, ending(e))
	case e.Program != "":
		add("%s in %s, sandbox %s", strings.Join(append([]string{e.Program}, shownArgs(e.Argv)...), " "), e.Dir, cmp.Or(e.Sandbox, "unknown"))
	case e.Error != "":
		add("failed: %s", e.Error)
	}
	if len(e.Artifacts) > 0 {
		add("made %s", strings.Join(e.Artifacts, ", "))
	}
	for _, l := range []struct {
		what string
		list []string
	}{{"applied", e.Applied}, {"held for you", e.Held}, {"refused", e.Refused}} {
		if len(l.list) > 0 {
			add("%s: %s", l.what, strings.Join(l.list, ", "))
		}
	}
	if e.Reason != "" {
		add("(%s)", e.Reason)
	}
	if e.Rule != "" {
		add("rule %s", e.Rule)
	}
	if e.Grant != "" {
		add("grant %s", e.Grant)
	}
	if len(e.Changed) > 0 {
		add("changed since it was allowed: %s", strings.Join(e.Changed, "; "))
	}
	if e.Recovered != nil {
		add("%s", recovery(e.Recovered))
	}
	return strings.Join(parts, " ")
}

// shownArgs returns the first of a program's arguments, as they are in the log.
func shownArgs(argv []string) []string {
	const enough = 8
	var shown []string
	for _, arg := range argv[:min(len(argv), enough)] {
		shown = append(shown, safetext.Quote(arg))
	}
	if more := len(argv) - enough; more > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", more))
	}
	return shown
}

// ending describes how a run ended.
func ending(e audit.Entry) string {
	took := (time.Duration(e.DurationMS) * time.Millisecond).Round(time.Millisecond)
	after := fmt.Sprintf("after %d ms", e.DurationMS)
	if took >= 10*time.Second {
		after = "after " + took.Round(time.Second/10).String()
	}
	switch {
	case e.Error != "":
		return "failed: " + e.Error
	case e.Signal != "" && e.Cause != "":
		return fmt.Sprintf("ended by %s (%s) %s", e.Cause, e.Signal, after)
	case e.Signal != "":
		return fmt.Sprintf("ended by %s %s", e.Signal, after)
	case e.ExitCode != nil && e.Cause == "":
		return fmt.Sprintf("exit %d %s", *e.ExitCode, after)
	default:
		return fmt.Sprintf("ended by %s %s", cmp.Or(e.Cause, "something that is not recorded"), after)
	}
}

// recovery describes the damage after which the log continues.
func recovery(r *audit.Recovery) string {
	var found []string
	if r.Torn != nil {
		found = append(found, fmt.Sprintf("%d bytes before are an unfinished line, which a crash or a full disk left", r.Torn.Bytes))
	}
	if r.Missing > 0 {
		found = append(found, fmt.Sprintf("%d entries are missing", r.Missing))
	}
	if r.Head != "" {
		found = append(found, "the head file was not right")
	}
	return "the log was damaged here and goes on: " + cmp.Or(strings.Join(found, "; "), "nothing is lost")
}
