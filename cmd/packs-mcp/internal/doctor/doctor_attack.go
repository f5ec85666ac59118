package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/drill"
)

// An attacked is the result of all attempts, as doctor --attack --json prints it.
type attacked struct {
	OK      bool            `json:"ok"` // a level confines programs, and refused everything that it must refuse
	Version string          `json:"version"`
	System  string          `json:"system"`
	Levels  []attackedLevel `json:"levels"`  // from none, where nothing confines, to the best
	Lacking []lackingLevel  `json:"lacking"` // levels that this machine does not support
	Absent  []string        `json:"absent"`  // attempts that make no sense on this system
}

type attackedLevel struct {
	Level    sandbox.Level `json:"level"`
	Means    []string      `json:"means,omitempty"`
	Refused  int           `json:"refused"`  // of the attempts that must be refused
	Bad      int           `json:"bad"`      // outcomes that must not happen
	Untested int           `json:"untested"` // attempts that fail unconfined too
	Tries    []try         `json:"tries"`
}

type try struct {
	Part     string       `json:"part"`
	Tried    string       `json:"tried"`
	Expected drill.Expect `json:"expected"`
	Happened string       `json:"happened"` // "ok", or what refused it
	Detail   string       `json:"detail,omitempty"`
	Bad      bool         `json:"bad"`
	Untested bool         `json:"untested,omitempty"`
}

type lackingLevel struct {
	Level   sandbox.Level `json:"level"`
	Problem string        `json:"problem"`
}

// attack makes a confined program attempt what a hostile one would, and prints the
// results.
func (a *app) attack(ctx context.Context, asJSON bool) error {
	d, err := drill.Run(ctx, drill.Options{Environ: a.Environ, Logger: slog.New(slog.DiscardHandler)})
	if d == nil {
		return err
	}
	out := attackedOf(d)
	out.Version, out.System = a.Version, runtime.GOOS+"/"+runtime.GOARCH
	if asJSON {
		err = errors.Join(cli.PrintJSON(a.Stdout, out), err)
	} else {
		err = errors.Join(printAttack(a.Screen(a.Stdout), out), err)
	}
	if err == nil && !out.OK {
		err = cli.ErrSaid
	}
	return err
}

func attackedOf(d *drill.Drill) *attacked {
	out := &attacked{Levels: []attackedLevel{}, Lacking: []lackingLevel{}, Absent: []string{}}
	for _, l := range d.Lacking {
		out.Lacking = append(out.Lacking, lackingLevel{l.Level, l.Problem})
	}
	bad := 0
	for i, l := range d.Levels {
		level := attackedLevel{Level: l.Level, Means: l.Means, Tries: []try{}}
		for _, t := range l.Tries {
			if t.Expect == drill.Absent {
				if i == 0 {
					out.Absent = append(out.Absent, t.Row.Does)
				}
				continue
			}
			if t.Bad() {
				level.Bad++
			} else if t.Expect == drill.Refused {
				level.Refused++
			}
			if t.Untested {
				level.Untested++
			}
			level.Tries = append(level.Tries, try{
				Part: t.Row.Part, Tried: t.Row.Does, Expected: t.Expect, Happened: t.Outcome, Detail: t.Detail, Bad: t.Bad(), Untested: t.Untested,
			})
		}
		bad += level.Bad
		out.OK = out.OK || l.Level > sandbox.LevelNone && level.Refused > 0
		out.Levels = append(out.Levels, level)
	}
	out.OK = out.OK && bad == 0
	return out
}

func printAttack(w io.Writer, a *attacked) error {
	p := printerTo(w)
	p.section("packs-mcp", "%s on %s", a.Version, a.System)
	p.section("attack", "a program tries what a hostile one would, on a key, sockets and a process made for it; "+
		"\"open\" is what a level does not promise to refuse")
	for _, l := range a.Lacking {
		p.item(l.Level.String(), 9, "not available here: %s", l.Problem)
	}
	for _, l := range a.Levels {
		// What works unconfined is only of interest if nothing confines here.
		if l.Level == sandbox.LevelNone && l.Bad == 0 && len(a.Levels) > 1 {
			continue
		}
		fmt.Fprintln(p.w)
		means := strings.Join(l.Means, ", ")
		if l.Level == sandbox.LevelNone {
			means = "nothing confines it, which shows what the attempts do"
		}
		p.section("level", "%s: %s", l.Level, means)
		part := ""
		for _, t := range l.Tries {
			if t.Part != part {
				part = t.Part
				fmt.Fprintf(p.w, "\n  %-9s %-28s %s\n", "expected", "happened", strings.ToLower(part[:1])+part[1:])
			}
			fmt.Fprintf(p.w, "  %-9s %-28s %s\n", t.Expected, safetext.Line(happened(&t)), t.Tried)
		}
	}
	fmt.Fprintln(p.w)
	if len(a.Absent) > 0 {
		p.print("", "  ", "This system has no such thing: "+strings.Join(a.Absent, "; ")+".")
	}
	confined := false
	for _, l := range a.Levels {
		if l.Level == sandbox.LevelNone && l.Bad == 0 {
			continue
		}
		confined = confined || l.Level > sandbox.LevelNone
		p.print("", "  ", verdict(&l))
	}
	if !confined {
		p.print("", "  ", "No level confines programs here. packs-mcp doctor says why, and what would help.")
	}
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// happened describes the result of an attempt. Results that must not happen are in
// capitals.
func happened(t *try) string {
	switch {
	case t.Bad && t.Expected == drill.Refused && t.Happened == "ok":
		return "NOT REFUSED"
	case t.Bad:
		return "FAILED: " + cmp.Or(t.Detail, t.Happened)
	case t.Happened == "ok":
		return "done"
	case t.Untested:
		return "untested: " + t.Happened
	}
	return "refused: " + t.Happened
}

// verdict summarizes a level.
func verdict(l *attackedLevel) string {
	text := fmt.Sprintf("At level %s, everything that must be refused was refused (%s).", l.Level, diag.Count(l.Refused, "attempt"))
	switch {
	case l.Bad > 0:
		text = fmt.Sprintf("At level %s, %s had an outcome that must not happen. Do not run packs here that you do not trust, and report it.", l.Level, diag.Count(l.Bad, "attempt"))
	case l.Refused == 0:
		text = fmt.Sprintf("At level %s, nothing could be tried that must be refused.", l.Level)
	}
	if l.Untested > 0 {
		text += fmt.Sprintf(" Of %d we do not know whether the sandbox refused them: they do not work unconfined here either.", l.Untested)
	}
	return text
}
