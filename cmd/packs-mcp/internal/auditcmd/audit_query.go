package auditcmd

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// An auditQuery says which events of the log are wanted, and how. The zero value
// wants all events.
type auditQuery struct {
	last                       int
	pack, run, chat            string
	decision, sinceText, event string
	asJSON                     bool
	since                      time.Time // set by check
}

func (q *auditQuery) flags(a *app, cmd *cobra.Command, last int, lastUsage string) {
	f := cmd.Flags()
	f.IntVarP(&q.last, "last", "n", last, lastUsage)
	f.StringVar(&q.pack, "pack", "", "only events of the pack `ID`")
	f.StringVar(&q.sinceText, "since", "", "only events since `WHEN`: a time ago (90s, 2h, 7d), a date, or a date and time")
	cli.ChoiceVar(cmd, &q.decision, "decision", "", "only decisions that are `D`: once, chat, always, deny or pending", "once", "chat", "always", "deny", "pending")
	f.StringVar(&q.event, "event", "", "only events `E`, as in run.end")
	f.StringVar(&q.run, "run", "", "only events of the run `ID`, or of those that begin so")
	f.StringVar(&q.chat, "chat", "", "only events of the chat `ID`, or of those that begin so")
	cli.JSONLinesFlag[audit.Entry](a.Env, cmd, &q.asJSON)
	complete := func(flag string, value func(audit.Entry) string) {
		_ = cmd.RegisterFlagCompletionFunc(flag, a.completeEntries(value))
	}
	complete("event", func(e audit.Entry) string { return string(e.Event) })
	complete("pack", func(e audit.Entry) string { return e.Pack })
	complete("run", func(e audit.Entry) string { return e.Run })
	complete("chat", func(e audit.Entry) string { return e.Chat })
	_ = cmd.RegisterFlagCompletionFunc("since", cobra.FixedCompletions([]string{"1h", "1d", "7d"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("last", cobra.NoFileCompletions)
}

// check returns an error for a query that makes no sense.
func (q *auditQuery) check(now time.Time) error {
	if q.last < 0 {
		return &cli.UsageError{Err: fmt.Errorf("--last is %d", q.last), Hint: "give the number of events to print"}
	}
	if q.sinceText == "" {
		return nil
	}
	since, ok := parseSince(q.sinceText, now)
	if !ok {
		return &cli.UsageError{
			Err:  fmt.Errorf("--since is %q", q.sinceText),
			Hint: `give a time ago, as in 90s, 30m, 2h or 7d, or a time, as in 2026-01-31, "2026-01-31 14:30" or 14:30`,
		}
	}
	q.since = since
	return nil
}

// parseSince reads a duration before now, or a time, which is local unless it
// has a zone.
func parseSince(text string, now time.Time) (time.Time, bool) {
	if n, unit := strings.TrimRight(text, "dw"), strings.TrimLeft(text, "0123456789"); unit == "d" || unit == "w" {
		days, err := strconv.Atoi(n)
		if unit == "w" {
			days *= 7
		}
		if err != nil || days > 100_000 {
			return time.Time{}, false
		}
		return now.AddDate(0, 0, -days), true
	}
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago), ago >= 0
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, text, now.Location()); err == nil {
			return t, true
		}
	}
	if t, err := time.ParseInLocation("15:04", text, now.Location()); err == nil {
		return time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location()), true
	}
	return time.Time{}, false
}

// wants reports whether an event is one of those that were asked for.
func (q *auditQuery) wants(e *audit.Entry) bool {
	return (q.pack == "" || strings.EqualFold(q.pack, e.Pack) || strings.EqualFold(q.pack, path.Base(cmp.Or(e.Pack, "/")))) &&
		(q.decision == "" || q.decision == e.Decision) &&
		(q.event == "" || q.event == string(e.Event)) &&
		(q.run == "" || strings.HasPrefix(e.Run, q.run)) &&
		(q.chat == "" || strings.HasPrefix(e.Chat, q.chat)) &&
		!e.Time.Before(q.since)
}

// maxCompleted is how many values of the log the shell is offered.
const maxCompleted = 200

// completeEntries offers the values that the last events of the log have.
func (a *app) completeEntries(value func(audit.Entry) string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		path, err := a.auditPath()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		at := make(map[string]int64) // :: value → number of its last event
		for line, err := range audit.Read(path) {
			if err != nil {
				continue // offer the values that can be read
			}
			if v := value(line.Entry); v != "" {
				at[safetext.Line(v)] = line.Entry.Seq
			}
		}
		values := slices.SortedFunc(maps.Keys(at), func(x, y string) int { return cmp.Compare(at[y], at[x]) })
		return values[:min(len(values), maxCompleted)], cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}
