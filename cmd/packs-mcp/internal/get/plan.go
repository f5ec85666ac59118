package get

import (
	"bytes"
	"cmp"
	"fmt"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/get/shown"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sources/change"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

func signedBy(e lock.Entry) string { return safetext.Line(trust.Words(e.Signature)) }

// show prints what would be added or changed, on standard error, since it is not the
// command's output. With whole, it leaves nothing out.
func (a *app) show(it *item, whole bool) {
	w := &bytes.Buffer{} // written at once: there may be hundreds of plans
	defer func() { _, _ = w.WriteTo(a.Stderr) }()
	state := "new"
	switch {
	case it.moved():
		state = "another source"
	case it.before != nil:
		state = "another version"
	}
	if it.before != nil && len(it.change.Files) == 0 {
		state += ", the same files"
	}
	fmt.Fprintf(w, "%s (%s)\n", safetext.Line(it.id), state)
	from, folder := safetext.Line(it.entry.Resolved), safetext.Line(it.entry.Path)
	if it.moved() {
		from += ", before: " + safetext.Line(it.before.Resolved)
		if it.before.Path != it.entry.Path {
			folder = fmt.Sprintf("%s, before: %s", cmp.Or(folder, "."), cmp.Or(safetext.Line(it.before.Path), "."))
		}
	}
	fmt.Fprintf(w, "  from     %s\n", from)
	if folder != "" {
		fmt.Fprintf(w, "  folder   %s\n", folder)
	}
	if it.unchecked != "" {
		fmt.Fprintf(w, "  signed   not checked: %s\n", cli.OneLine(it.unchecked, 400))
	} else {
		fmt.Fprintf(w, "  signed   by %s\n", signedBy(it.entry))
	}
	if it.older != nil {
		fmt.Fprintf(w, "  older    than what is here: %s, before: %s\n", safetext.Line(it.older.New), safetext.Line(it.older.Old))
	}
	if s := it.entry.Signature; s != nil && s.Kind == trust.KindSigstore && it.root != "" {
		fmt.Fprintf(w, "           says the Sigstore service of %s\n", safetext.Line(it.root))
	}
	for _, line := range it.change.Pack {
		fmt.Fprintf(w, "  %s\n", cli.OneLine(line, 400))
	}
	counts := map[change.Kind]int{}
	for _, f := range it.change.Files {
		counts[f.Kind]++
	}
	fmt.Fprintf(w, "  files    %d new, %d changed, %d gone\n", counts[change.Added], counts[change.Changed], counts[change.Removed])
	if it.before != nil {
		for i, f := range it.change.Files {
			if i == shown.Most && !whole {
				fmt.Fprintf(w, "           and %d more; packs-mcp diff shows all\n", len(it.change.Files)-shown.Most)
				break
			}
			fmt.Fprintf(w, "           %s %s\n", shown.Mark(f.Kind), safetext.Line(f.Path))
		}
	}
	shown.Lines(w, a.Screen(a.Stderr), it.change.Files, whole)
	shown.Tools(w, it.change.Tools, whole)
	shown.Findings(w, it.found)
	if it.before != nil && len(it.ends) > 0 {
		fmt.Fprintf(w, "  answers  %s: it is asked about again\n", cli.Counted(len(it.ends), "lasting answer to this pack ends", "lasting answers to this pack end"))
	}
}
