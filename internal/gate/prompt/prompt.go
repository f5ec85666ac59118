package prompt

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// maxPrompt is the longest question, in characters. What cannot be shown in
// full cannot be approved, and nobody reads more than this.
const maxPrompt = 16_000

// ErrTooLong is the error for a call that cannot be shown in full.
var ErrTooLong = errors.New("the call is too long to be shown in full, so it cannot be approved")

// Chosen is all that is known of a prompt that was got.
const Chosen = "the client says that a person chose it"

// Until says when the chat ends.
func Until(r *call.Request) string {
	if until := safetext.Line(r.Caller.ChatEnd); until != "" {
		return until
	}
	return "until this chat ends"
}

// Scope says what an answer for more than this call covers.
func Scope(r *call.Request) string {
	switch r.Kind {
	case call.KindOpen:
		return "opening this pack's documents"
	case call.KindRead:
		if r.Pack.Dir == "" {
			return "reading any file of the workspace"
		}
		return "reading any file of this pack"
	case call.KindEnable:
		return "enabling this pack's tools"
	case call.KindAttach:
		return "attaching this pack"
	case call.KindRun:
		return "this tool with any valid arguments"
	case call.KindExec:
		return "this exact command in this folder"
	default:
		return "calls like this one"
	}
}

// Title says the essential in one line.
func Title(r *call.Request) string {
	pack := Name(r.Pack.ID)
	switch r.Kind {
	case call.KindOpen:
		return fmt.Sprintf("Open the documents of pack %s?", pack)
	case call.KindRead:
		file := "a file"
		if showsPath(r) {
			file = r.Path
		}
		if r.Pack.Dir == "" {
			return fmt.Sprintf("Read %s from the workspace?", file)
		}
		return fmt.Sprintf("Read %s from pack %s?", file, pack)
	case call.KindEnable:
		return fmt.Sprintf("Enable %s of pack %s?", plural(len(r.Tools), "tool"), pack)
	case call.KindAttach:
		return fmt.Sprintf("Attach pack %s?", pack)
	case call.KindDetach:
		return fmt.Sprintf("Detach pack %s?", pack)
	case call.KindRun, call.KindExec:
		switch {
		case r.Run == nil:
			return fmt.Sprintf("Run something of pack %s?", pack) // refused; told in the history
		case r.Kind == call.KindRun:
			return fmt.Sprintf("Run tool %s of pack %s?", Name(r.Run.Tool), pack)
		}
		return fmt.Sprintf("Run %s for pack %s?", commandLine(r.Run), pack)
	default:
		return fmt.Sprintf("Show metadata of pack %s?", pack)
	}
}

// Asks is the title of a question. That something changed since an answer is
// what a person must not miss among many.
func Asks(r *call.Request, changed []string) string {
	if len(changed) > 0 {
		return Title(r) + " (changed)"
	}
	return Title(r)
}

// maxInTitle is how many characters of a path or a command a title takes up;
// what is longer stands below it only.
const maxInTitle = 40

// showsPath reports whether the title has the path.
func showsPath(r *call.Request) bool { return isPlain(r.Path) && len(r.Path) <= maxInTitle }

// commandLine is the command as a person would type it, when that is short and
// needs no quoting.
func commandLine(r *call.Run) string {
	c := r.Command
	line := strings.Join(append([]string{c.Program.Name}, c.Args...), " ")
	switch {
	case !isPlain(c.Program.Name) || len(c.Program.Name) > maxInTitle, strings.EqualFold(c.Program.Name, "tool"):
		return "a program" // "Run tool x" is how the title of a pack's tool begins
	case len(line) <= maxInTitle && !slices.ContainsFunc(c.Args, func(a string) bool { return !isPlain(a) }):
		return line
	default:
		return fmt.Sprintf("%s with %s", c.Program.Name, plural(len(c.Args), "argument"))
	}
}

// Text writes the whole question: facts, then the pack's own words, marked
// as such. Every value that did not come from this program is escaped.
// changed are the differences to what was allowed before, and since says when.
// rule says which rule nearly allows the call.
func Text(r *call.Request, box sandbox.Report, since string, changed []string, rule string) (string, error) {
	var p text
	p.line(Asks(r, changed))
	p.line("")
	if r.Pack.Dir != "" && !r.Pack.Trusted() {
		p.line("WARNING: this pack is NOT trusted. It came with a project")
		p.line("or from elsewhere. Allow only what you understand.")
		p.line("")
	}
	if len(changed) > 0 {
		p.fact("CHANGED", since+":")
		for _, c := range changed {
			p.fact("", "- "+c)
		}
	}
	if rule != "" {
		p.fact("rule", rule)
	}
	for i, f := range r.Fields {
		p.fact(first(i, "fill in"), safetext.Line(f.Title)+", shown as "+quoted(call.StandIn(f.Name)))
	}
	switch r.Kind {
	case call.KindRead:
		if !showsPath(r) {
			p.fact("file", safetext.Quote(r.Path))
		}
		p.asked(r)
		if r.Pack.Dir == "" {
			p.fact("folder", safetext.Quote(r.Workspace))
		}
	case call.KindOpen:
		p.asked(r)
		p.fact("effect", "the model reads them and may do what they say")
	case call.KindAttach:
		p.asked(r)
		p.fact("effect", "this chat has the pack from now on; what it does asks by itself")
	case call.KindEnable:
		for i, t := range r.Tools {
			p.fact(first(i, "tools"), Name(t))
		}
		p.fact("effect", "each of their calls is decided by itself")
	case call.KindRun, call.KindExec:
		p.run(r, box)
	}
	if r.Caller.Act {
		p.fact("chosen", Chosen)
	}
	if r.Hidden != "" {
		p.fact("CAUTION", "the text has "+safetext.Line(r.Hidden))
	}
	if r.Pack.Dir != "" {
		p.fact("pack", safetext.Quote(r.Pack.Dir))
		p.fact("trust", r.Pack.Trust.Words())
		p.fact("digest", short(r.Pack.Digest))
	}
	if r.Caller.Person != "" {
		p.fact("for", safetext.Quote(r.Caller.Person)+", by the client's token")
	}
	if r.Caller.Client != "" {
		p.fact("asked by", "a client that calls itself "+safetext.Quote(r.Caller.Client))
	}
	if r.Kind == call.KindRun {
		p.quote("The pack says of this tool", r.Run.About)
	} else {
		p.quote("The pack says of itself", r.Pack.About)
	}
	text := p.String()
	if utf8.RuneCountInString(text) > maxPrompt {
		return "", ErrTooLong
	}
	return text, nil
}

// asked writes the arguments of the call, except those that the prompt says
// anyway.
func (p *text) asked(r *call.Request) {
	args, ok := r.Arguments.Members()
	if !ok {
		p.fact("asked for", safetext.Line(string(r.Arguments.Raw())))
		return
	}
	i := 0
	for _, m := range args {
		if m.Name == "pack_id" && m.Value == strictjson.Format(r.Pack.ID) || m.Name == "path" && m.Value == strictjson.Format(r.Path) {
			continue
		}
		value := safetext.Line(m.Value)
		if strings.Contains(value, strings.Repeat(" ", maxBlank+1)) {
			value = quoted(value)
		}
		p.fact(first(i, "asked for"), Name(m.Name)+": "+value)
		i++
	}
}

// input is what a program reads. The JSON that tools get is readable as it is,
// when all of it is visible ASCII, and cannot be taken for the quoted form of
// something else, since it begins with a brace. Its last newline is not shown.
func input(b []byte) string {
	text := strings.TrimSuffix(string(b), "\n")
	invisible := func(r rune) bool { return r < ' ' || r > '~' }
	if strings.HasPrefix(text, "{") && !strings.ContainsFunc(text, invisible) {
		if _, err := strictjson.Decode([]byte(text)); err == nil && !strings.Contains(text, strings.Repeat(" ", maxBlank+1)) {
			return text
		}
	}
	return quoted(string(b))
}

// maxBlank is how many spaces in a row a value may have. More would put what
// follows out of sight.
const maxBlank = 8

// quoted is a value in quotes, in ASCII. A long run of spaces stands outside of
// the quotes, as its length: nothing is left out, and nothing is pushed away.
func quoted(s string) string {
	var parts []string
	for s != "" {
		begin, n := longBlank(s)
		if n == 0 {
			break
		}
		if begin > 0 {
			parts = append(parts, safetext.Quote(s[:begin]))
		}
		parts = append(parts, fmt.Sprintf("(%d spaces)", n))
		s = s[begin+n:]
	}
	if s != "" || len(parts) == 0 {
		parts = append(parts, safetext.Quote(s))
	}
	return strings.Join(parts, " + ")
}

// longBlank finds the first run of more than maxBlank spaces.
func longBlank(s string) (begin, n int) {
	for i := 0; i < len(s); i++ {
		n = 0
		for i+n < len(s) && s[i+n] == ' ' {
			n++
		}
		if n > maxBlank {
			return i, n
		}
		i += n
	}
	return 0, 0
}

// short is enough of a digest to compare by eye.
func short(digest string) string {
	const enough = 16
	digest = strings.TrimPrefix(digest, "sha256:")
	if isPlain(digest) && len(digest) > enough {
		return digest[:enough]
	}
	return Name(digest)
}

func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func size(bytes int64) string {
	switch {
	case bytes%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", bytes>>30)
	case bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	default:
		return plural(int(bytes), "byte")
	}
}

func duration(d time.Duration) string {
	switch {
	case d%time.Minute == 0:
		return plural(int(d/time.Minute), "minute")
	case d%time.Second == 0:
		return plural(int(d/time.Second), "second")
	default:
		return d.String()
	}
}
