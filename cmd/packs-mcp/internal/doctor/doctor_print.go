package doctor

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

const (
	doctorWidth = 76 // of a line, except for commands and paths, which are not broken
	labelWidth  = 10
)

// A doctorPrinter prints sections with a label on their left.
type doctorPrinter struct {
	w      *bufio.Writer
	screen *cli.Screen // of the terminal; nil if there is none
}

func printerTo(w io.Writer) doctorPrinter {
	screen, _ := w.(*cli.Screen)
	return doctorPrinter{bufio.NewWriter(w), screen}
}

// width returns how long a line may be.
func (p doctorPrinter) width() int {
	if p.screen == nil || p.screen.Width() == 0 {
		return doctorWidth
	}
	return min(doctorWidth, p.screen.Width())
}

// style returns text in a style, if the terminal has styles.
func (p doctorPrinter) style(style cli.Style, text string) string {
	if p.screen == nil {
		return text
	}
	return p.screen.Style(style, text)
}

// section prints the first line of a section.
func (p doctorPrinter) section(label, format string, args ...any) {
	p.print(p.style(cli.Bold, fmt.Sprintf("%-*s", labelWidth, label)), strings.Repeat(" ", labelWidth), fmt.Sprintf(format, args...))
}

// item prints a line of a section, after a name in a column of its own.
func (p doctorPrinter) item(name string, width int, format string, args ...any) {
	indent := strings.Repeat(" ", labelWidth+2)
	rest := indent + strings.Repeat(" ", 2)
	first := indent
	if name != "" {
		first += fmt.Sprintf("%-*s", width, name)
	}
	p.print(first, rest, fmt.Sprintf(format, args...))
}

// path prints the path of the item before it.
func (p doctorPrinter) path(path string) {
	indent := strings.Repeat(" ", labelWidth+4)
	p.print(indent, indent, quoted(path))
}

// print breaks text into lines, with one indentation for the first and another for
// the rest.
func (p doctorPrinter) print(first, rest, text string) {
	line, n := first, cli.Columns(first)
	begun, width := false, p.width()
	for _, word := range words(safetext.Line(text)) {
		size := utf8.RuneCountInString(word)
		if begun && n+1+size > width {
			fmt.Fprintln(p.w, strings.TrimRight(line, " "))
			line, n, begun = rest, utf8.RuneCountInString(rest), false
		}
		if begun {
			line, n = line+" ", n+1
		}
		line, n, begun = line+word, n+size, true
	}
	fmt.Fprintln(p.w, strings.TrimRight(line, " "))
}

// words splits text at spaces, but not inside backquotes or quotes: text to copy
// stays on one line.
func words(text string) []string {
	var all []string
	begin, in := 0, rune(0)
	for i, r := range text {
		switch {
		case in != 0:
			if r == in {
				in = 0
			}
		case r == '`' || r == '"':
			in = r
		case r == ' ':
			if i > begin {
				all = append(all, text[begin:i])
			}
			begin = i + 1
		}
	}
	if begin < len(text) {
		all = append(all, text[begin:])
	}
	return all
}

func printCheckup(w io.Writer, c *checkup) error {
	p := printerTo(w)
	p.section("packs-mcp", "%s on %s", c.Version, c.System)
	p.sandbox(&c.Sandbox)
	if c.Approval != nil {
		p.approval(c.Approval)
	}
	p.config(&c.Config)
	if c.Packs != nil {
		p.packs(c.Packs)
	}
	if c.Caches != nil {
		p.caches(c.Caches)
	}
	if c.Audit != nil {
		p.audit(c.Audit)
	}
	p.clients(c.Clients)
	fmt.Fprintln(p.w)
	for _, f := range c.Warnings {
		p.finding("warning", f)
	}
	for _, f := range c.Stops {
		p.finding("stops runs", f)
	}
	switch broken := brokenClients(c.Clients); {
	case !c.OK:
		fmt.Fprintln(p.w, p.style(cli.Red, "No call can run here as it is now."))
	case len(broken) > 0:
		p.print(p.style(cli.Yellow, "An approved call can run here,")+" ", "", "but not from "+strings.Join(broken, " or ")+": see the warnings above.")
	default:
		fmt.Fprintln(p.w, p.style(cli.Green, "An approved call can run here."))
	}
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

// brokenClients returns the names of the clients with an entry that does not work.
func brokenClients(found []foundClient) (names []string) {
	for _, c := range found {
		broken := slices.ContainsFunc(c.Servers, func(s foundServer) bool { return s.Problem != "" })
		if broken && !slices.Contains(names, c.Client) {
			names = append(names, c.Client)
		}
	}
	return names
}

func (p doctorPrinter) finding(kind string, f finding) {
	style := cli.Yellow
	if kind == "stops runs" {
		style = cli.Red
	}
	p.print(p.style(style, kind+":")+" ", "  ", f.Message)
	if f.Hint != "" {
		p.print("  "+p.style(cli.Cyan, "hint:")+" ", "  ", f.Hint)
	}
}

func (p doctorPrinter) sandbox(s *checkedSandbox) {
	switch {
	case s.Required == "":
		p.section("sandbox", "level %s", s.Level)
	case s.Met:
		p.section("sandbox", "level %s; required is %s", s.Level, s.Required)
	default:
		p.section("sandbox", "level %s, which is less than what is required: %s", s.Level, s.Required)
	}
	for _, t := range s.Trials {
		name := t.Level.String()
		switch {
		case !t.Works:
			p.item(name, 9, "does not work: %s", t.Problem)
			continue
		case t.Level == sandbox.LevelNone:
			p.item(name, 9, "nothing confines what runs but limits on its time and output")
		default:
			p.item(name, 9, "works, tried in %.1f ms: %s", t.TookMS, strings.Join(t.Means, ", "))
		}
		for _, g := range t.Gaps {
			p.item("", 0, "gap: %s", g)
		}
	}
	if s.Layers == sandbox.LayerOverlay.String() {
		p.item("", 0, "projects are changed through overlays in memory, applied when a run ends")
	} else if s.Layers != "" {
		p.item("", 0, "projects are changed in copies, and are read-only where they are too large for one: %s", s.Layers)
	}
	if s.Level > sandbox.LevelNone && !s.NetworkEnforced {
		p.item("", 0, "gap: the network is not kept from runs; each reaches whatever this machine can")
	}
	for _, k := range s.Containers {
		p.container(&k)
	}
	if s.Hint != "" && (s.Met || s.Required == "") {
		p.item("", 0, "hint: %s", s.Hint)
	}
}

func (p doctorPrinter) container(k *checkedContainer) {
	if !k.Works {
		p.item("container", 9, "does not work, image %q: %s", k.Image, k.Problem)
		return
	}
	runtime := ""
	if k.Runtime != "" {
		runtime = ", runtime " + k.Runtime
	}
	p.item("container", 9, "works, tried in %.1f ms: %s%s, image %q", k.TookMS, k.Engine, runtime, k.Image)
	for _, g := range k.Gaps {
		p.item("", 0, "gap: %s", g)
	}
}

func (p doctorPrinter) approval(a *checkedApproval) {
	about := map[string]string{
		config.PolicyEveryCall: "every call asks a person",
		config.PolicyBalanced:  "one question about each pack, and one about each run that may do more than read",
		config.PolicyFirstRun:  "the first run of each tool asks a person, and so does whatever is not trusted or not read-only",
	}[a.Policy]
	if about == "" {
		about = a.Policy
	}
	wait := "a call waits as long as its client does"
	if a.WaitMS > 0 {
		wait = fmt.Sprintf("a call waits %.0f s for the answer", float64(a.WaitMS)/1000)
	}
	p.section("approval", "%s; %s", about, wait)
	for _, c := range a.Channels {
		p.item(c, 14, "%s", map[string]string{
			config.ChannelElicitation: "the client asks you, if it is one that can",
			config.ChannelPage:        "a page in your browser, which opens when a call waits that the client does not show; packs-mcp approvals open",
			config.ChannelTerminal:    "any terminal of yours; packs-mcp approvals",
			config.ChannelApp:         "a card in the chat, if the client shows MCP Apps and cannot ask; it allows once, or denies",
		}[c])
	}
	if !slices.Contains(a.Channels, config.ChannelPage) && !slices.Contains(a.Channels, config.ChannelTerminal) {
		p.item("", 0, "under a client that cannot ask, nothing is approved: add page or terminal to approval.channels")
	}
	if a.Rules > 0 {
		p.item("", 0, "%s of yours in the configuration go before all this", diag.Count(a.Rules, "rule"))
	}
}

func (p doctorPrinter) config(c *checkedConfig) {
	switch {
	case !c.OK:
		p.section("config", "does not load:")
	case c.Exists:
		p.section("config", "loads:")
	default:
		p.section("config", "no file, so defaults hold; it would be:")
	}
	p.item("", 0, "%s", quoted(c.File))
	for _, problem := range c.Problems {
		text := problem.Message
		if problem.Key != "" {
			text = problem.Key + ": " + text
		}
		if problem.Where != "" {
			text = problem.Where + ": " + text
		}
		p.item("", 0, "%s", text)
	}
	for _, w := range c.Warnings {
		p.item("", 0, "warning: %s", w)
	}
}

func (p doctorPrinter) packs(c *checkedPacks) {
	if len(c.Roots) == 0 {
		p.section("packs", "none; name a folder of packs with: packs-mcp folders add DIR; or begin with the examples in this program: packs-mcp serve --bundled")
	} else {
		p.section("packs", "%s found, %d attached", diag.Count(c.Found, "pack"), c.Attached)
	}
	for _, r := range c.Roots {
		state := "not there"
		if r.Exists {
			state = diag.Count(r.Found, "pack")
			for _, n := range []struct {
				count int
				what  string
			}{{r.Attached, "attached"}, {r.Invalid, "invalid"}, {r.Shadowed, "shadowed"}} {
				if n.count > 0 {
					state += fmt.Sprintf(", %d %s", n.count, n.what)
				}
			}
		}
		p.item("", 0, "%s (%s, %s):", state, r.Source, r.Trust)
		p.path(r.Path)
	}
	for _, d := range c.Problems {
		p.item("", 0, "%s: %s", d.Severity, d.String())
		if d.Hint != "" {
			p.item("", 0, "hint: %s", d.Hint)
		}
	}
}

// maxShownCaches is how many caches are printed, most recently used first.
const maxShownCaches = 10

func (p doctorPrinter) caches(c *checkedCaches) {
	var bytes int64
	for _, t := range c.Tools {
		bytes += t.Bytes
	}
	p.section("caches", "tools keep %s in %s; you can remove any of it:", sizeText(bytes), diag.Count(len(c.Tools), "cache"))
	p.path(c.Path)
	for _, t := range c.Tools[:min(len(c.Tools), maxShownCaches)] {
		person := ""
		if t.Person != "" {
			person = " for " + t.Person
		}
		p.item("", 0, "%s of %s%s: %s, %s, used %s", t.Tool, t.Pack, person, t.Name, sizeText(t.Bytes), t.Used.Local().Format(time.DateTime))
	}
	if more := len(c.Tools) - maxShownCaches; more > 0 {
		p.item("", 0, "and %d more", more)
	}
}

// sizeText formats a number of bytes for people, rounded up.
func sizeText(n int64) string {
	const mib = 1 << 20
	return fmt.Sprintf("%d MiB", (n+mib-1)/mib)
}

func (p doctorPrinter) audit(a *checkedAudit) {
	state := "cannot be written"
	switch {
	case a.Writable && !a.Exists:
		state = "can be made"
	case a.Writable && a.Verified:
		state = fmt.Sprintf("can be written; its %s are as they were written", diag.Count(a.Entries, "line"))
		if a.Entries == 1 {
			state = "can be written; its 1 line is as it was written"
		}
	case a.Writable:
		state = "can be written, and is not as it was written"
	}
	p.section("audit", "%s:", state)
	p.item("", 0, "%s", quoted(a.Path))
}

func (p doctorPrinter) clients(found []foundClient) {
	if len(found) == 0 {
		p.section("clients", "no configuration of a client that this version knows")
		return
	}
	p.section("clients", "whose settings are here:")
	for _, c := range found {
		state := "does not start packs-mcp; packs-mcp setup " + c.ID + " connects it"
		switch {
		case c.Problem != "":
			state = "its settings cannot be read"
		case slices.ContainsFunc(c.Servers, func(s foundServer) bool { return s.Problem != "" }):
			state = "has an entry that does not work"
		case len(c.Servers) > 0:
			state = "starts packs-mcp"
		}
		p.item(c.Client, 16, "%s:", state)
		p.path(c.File)
	}
}

// quoted returns a path in a form that is not broken into lines.
func quoted(path string) string {
	if strings.ContainsAny(path, " \"`") {
		return fmt.Sprintf("%q", path)
	}
	return filepath.Clean(path)
}
