package setup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/configedit"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// show prints what would change. It shows only the values of a file that change:
// others may be other programs' keys and tokens.
func show(screen *cli.Screen, plans []plan, s settings) {
	out := screen.Unbroken() // an entry to paste must keep its lines
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s\n", p.client.Name)
		switch {
		case p.why != "":
			fmt.Fprintf(out, "  %s\n", safetext.Line(p.why))
			if p.paste != "" {
				if p.failed {
					fmt.Fprintf(out, "  the entry to paste:\n")
				}
				fmt.Fprintf(out, "\n%s", safetext.Text(p.paste))
			}
		case len(p.edits) == 0:
			fmt.Fprintf(out, "  it is set up already, in %s\n", safetext.Line(p.entry.File))
		}
		for _, e := range p.edits {
			showEdit(screen, e)
		}
		if s.yes || s.dryRun { // otherwise each is shown with its own question
			for _, e := range p.offers {
				fmt.Fprintf(out, "  %s:\n", e.change.Why)
				showEdit(screen, e)
				fmt.Fprintf(out, "  (left out; --allow writes it)\n")
			}
		}
		if p.note != "" && !p.failed {
			fmt.Fprintf(out, "  %s\n", safetext.Line(p.note))
		}
		if p.skips != "" {
			fmt.Fprintf(out, "  %s\n", safetext.Line(p.skips))
		}
	}
}

// maxShown is how many lines of one edit are shown.
const maxShown = 20

func showEdit(screen *cli.Screen, e edit) {
	out := screen.Unbroken()
	where := safetext.Line(e.Path)
	if e.Target != e.Path {
		where += " → " + safetext.Line(e.Target)
	}
	if !e.Exists {
		where += " (new)"
	}
	fmt.Fprintf(out, "  in %s:\n", where)
	lines := e.lines()
	for i, line := range lines {
		if i == maxShown {
			fmt.Fprintf(out, "  … and %d more\n", len(lines)-maxShown)
			break
		}
		style := map[byte]cli.Style{'+': cli.Green, '-': cli.Red}
		fmt.Fprintf(out, "  %s\n", screen.Style(style[line[0]], line))
	}
}

// lines returns the values that change, one on each line: the current ones with a
// minus, the new ones with a plus.
func (e edit) lines() (all []string) {
	c := e.change
	at := safetext.Line(strings.Join(c.Path, "."))
	if c.Word != "" {
		return []string{"+ " + at + ": " + shown(c.Word)}
	}
	changes, err := c.Format.Differences(e.Text, c.Path, c.Value)
	if err != nil {
		return nil // the same text was already parsed
	}
	for _, d := range changes {
		name := safetext.Line(strings.Join(d.Path, "."))
		if d.Had {
			all = append(all, "- "+name+" = "+shown(d.Old))
		}
		all = append(all, "+ "+name+" = "+shown(d.New))
	}
	if have, _, _ := c.Format.Get(e.Text, c.Path...); e.exact {
		old, _ := have.(map[string]any)
		value, _ := c.Value.(configedit.Object)
		for _, key := range slices.Sorted(maps.Keys(old)) {
			if !slices.ContainsFunc(value, func(m configedit.Member) bool { return m.Key == key }) {
				all = append(all, "- "+at+"."+cut(safetext.Line(key)))
			}
		}
	}
	return all
}

// shown returns a value on one line, without anything that looks like a secret. It
// shows nothing of a table, which may hold variables.
func shown(value any) string {
	switch v := value.(type) {
	case map[string]any:
		return "{…}"
	case []string:
		value = redact.Args(v)
	case string:
		value = redact.Text(v)
	case []any:
		for _, one := range v {
			if _, ok := one.(string); !ok {
				return "[…]"
			}
		}
		value = redact.Value(slices.Clone(v), redact.SensitiveName)
	}
	text, err := strictjson.Encode(value)
	if err != nil {
		return "…"
	}
	return cut(safetext.Line(string(text)))
}

// cut shortens a text to a line or two.
func cut(text string) string {
	const most = 300
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}
