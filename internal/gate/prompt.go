package gate

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// maxPrompt is the longest question, in characters. What cannot be shown in
// full cannot be approved, and nobody reads more than this.
const maxPrompt = 16_000

var errPromptTooLong = errors.New("the call is too long to be shown in full, so it cannot be approved")

// scope says what an answer for the chat covers.
func (r *Request) scope() string {
	switch r.Kind {
	case KindOpen:
		return "opening this pack's documents"
	case KindRead:
		if r.Pack.Dir == "" {
			return "reading any file of the workspace"
		}
		return "reading any file of this pack"
	case KindEnable:
		return "enabling this pack's tools"
	case KindRun:
		if r.Run.Tool != "" {
			return "this tool with any valid arguments"
		}
		return "this exact command in this folder"
	default:
		return "calls like this one"
	}
}

// title says the essential in one line.
func (r *Request) title() string {
	pack := safetext.Line(r.Pack.ID)
	switch r.Kind {
	case KindOpen:
		return fmt.Sprintf("Open the documents of pack %s?", pack)
	case KindRead:
		if r.Pack.Dir == "" {
			return fmt.Sprintf("Read %s from the workspace?", safetext.Quote(r.Path))
		}
		return fmt.Sprintf("Read %s from pack %s?", safetext.Quote(r.Path), pack)
	case KindEnable:
		return fmt.Sprintf("Enable %s of pack %s?", plural(len(r.Tools), "tool"), pack)
	case KindRun:
		if r.Run.Tool != "" {
			return fmt.Sprintf("Run tool %s of pack %s?", safetext.Line(r.Run.Tool), pack)
		}
		return fmt.Sprintf("Run a command for pack %s?", pack)
	default:
		return fmt.Sprintf("Show metadata of pack %s?", pack)
	}
}

// render writes the whole question: facts, then the pack's own words, marked
// as such. Every value that did not come from this program is escaped.
func (g *Gate) render(r *Request) (string, error) {
	var p prompt
	p.line(r.title())
	p.line("")
	if r.onceOnly() && !r.AlwaysAsk {
		p.line("WARNING: this pack is not trusted. It comes from a project's folder or from elsewhere; look at it before you allow anything.")
		p.line("")
	}
	switch r.Kind {
	case KindOpen, KindRead:
		p.fact("call", safetext.Line(string(canonical(r.Arguments))))
		if r.Hidden != "" {
			p.fact("note", "the document has "+r.Hidden)
		}
	case KindEnable:
		for i, t := range r.Tools {
			p.item("tools", i, safetext.Line(t))
		}
		p.fact("effect", "the tools can be called; each call asks again")
	case KindRun:
		g.renderRun(&p, r)
	}
	if r.Pack.Dir != "" {
		p.fact("pack", safetext.Quote(r.Pack.Dir))
		p.fact("trust", trustWords(r.Pack.Trust))
		p.fact("digest", short(r.Pack.Digest))
	}
	if r.Caller.Client != "" {
		p.fact("asked by", "a client that calls itself "+safetext.Quote(r.Caller.Client))
	}
	if r.Kind == KindRun {
		p.quote("The pack says of this tool", r.Run.About)
	} else {
		p.quote("The pack says of itself", r.Pack.About)
	}
	text := p.String()
	if utf8.RuneCountInString(text) > maxPrompt {
		return "", errPromptTooLong
	}
	return text, nil
}

// renderRun writes what would be started, where, and under which rules.
func (g *Gate) renderRun(p *prompt, r *Request) {
	c, policy := r.Run.Command, r.Run.Policy
	p.fact("program", safetext.Quote(c.Program.Path))
	if c.Program.Resolved != "" && c.Program.Resolved != c.Program.Path {
		p.fact("", "which is "+safetext.Quote(c.Program.Resolved))
	}
	if c.Program.Interpreter != "" {
		p.fact("", "run by "+safetext.Quote(c.Program.Interpreter))
	}
	for i, a := range c.Args {
		p.item("arguments", i, safetext.Quote(a))
	}
	if len(c.Args) == 0 {
		p.fact("arguments", "none")
	}
	if len(c.Stdin) > 0 {
		p.fact("input", safetext.Quote(string(c.Stdin)))
	}
	p.fact("folder", safetext.Quote(c.Dir))
	for i, kv := range r.Run.Env {
		p.item("sets", i, safetext.Quote(kv))
	}
	level := g.runner.Level()
	if level == sandbox.LevelNone {
		p.fact("sandbox", "none: it can do everything you can do, with your files and on the network")
	} else {
		p.fact("sandbox", level.String())
		for i, d := range policy.Writable {
			p.item("may write", i, safetext.Quote(d))
		}
		p.fact("network", policy.Network.String())
	}
	if r.Run.ReadOnly {
		p.fact("claims", "the pack says that it changes nothing")
	}
	p.fact("stops", fmt.Sprintf("after %s at the latest", policy.Limits.Timeout))
}

func trustWords(t Trust) string {
	switch t {
	case TrustBundled:
		return "bundled with packs-mcp"
	case TrustUser:
		return "yours: from a folder you named or own"
	default:
		return "NOT trusted"
	}
}

// short is enough of a digest to compare by eye.
func short(digest string) string {
	digest = strings.TrimPrefix(digest, "sha256:")
	if len(digest) > 16 {
		return digest[:16]
	}
	return digest
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// prompt builds aligned "label  value" lines.
type prompt struct{ strings.Builder }

func (p *prompt) line(s string) {
	p.WriteString(s)
	p.WriteByte('\n')
}

func (p *prompt) fact(label, value string) {
	fmt.Fprintf(p, "%-10s %s\n", label, value)
}

// item is one of several values of a label; values are numbered from 1, so
// that none can pass for part of another.
func (p *prompt) item(label string, i int, value string) {
	if i > 0 {
		label = ""
	}
	p.fact(label, fmt.Sprintf("%d: %s", i+1, value))
}

// quote writes words that the pack chose, each line marked.
func (p *prompt) quote(who, text string) {
	text = strings.TrimSpace(safetext.Text(text))
	if text == "" {
		return
	}
	fmt.Fprintf(p, "\n%s:\n", who)
	for line := range strings.Lines(text) {
		fmt.Fprintf(p, "  > %s\n", strings.TrimRight(line, "\n"))
	}
}
