package prompt

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// maxPrompt is the longest question, in characters. What cannot be shown in
// full cannot be approved, and nobody reads more than this.
const maxPrompt = 16_000

// errTooLong is the error for a call that cannot be shown in full.
var errTooLong = errors.New("the call is too long to be shown in full, so it cannot be approved")

// Chosen says all that is known about a prompt that a client got.
const Chosen = "the client says that a person chose it"

// Until returns when the chat ends, in words.
func Until(r *call.Request) string {
	if until := line(r.Caller.ChatEnd); until != "" {
		return until
	}
	return "until this chat ends"
}

// Scope returns what an answer for more than this call covers. kind is the call's own
// kind, or [call.KindUse].
func Scope(r *call.Request, kind call.Kind) string {
	switch kind {
	case call.KindUse:
		return "using this pack (opening it, reading its files and enabling its tools)"
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
		scope := "tool " + Name(r.Run.Tool) + " with any valid arguments"
		switch r.Run.Policy.Network {
		case sandbox.NetworkFull:
			scope += " and the whole network"
		case sandbox.NetworkHosts:
			scope += " and the hosts that are named"
		}
		return scope
	case call.KindExec:
		return "this exact command in this folder"
	default:
		return "calls like this one"
	}
}

// ShortScope is Scope in at most 32 characters, for the label of a choice.
func ShortScope(r *call.Request, kind call.Kind) string {
	switch kind {
	case call.KindUse:
		if use := "use " + Name(r.Pack.ID); len(use) <= 32 {
			return use
		}
		return "use this pack"
	case call.KindOpen:
		return "open this pack's documents"
	case call.KindRead:
		if r.Pack.Dir == "" {
			return "read any file of the workspace"
		}
		return "read any file of this pack"
	case call.KindEnable:
		return "enable this pack's tools"
	case call.KindRun:
		return "this tool, any arguments"
	case call.KindExec:
		return "this exact command here"
	default:
		return "calls like this one"
	}
}

// Title returns the essential in one line.
func Title(r *call.Request) string {
	pack := Name(r.Pack.ID)
	switch r.Kind {
	case call.KindOpen:
		return fmt.Sprintf("Open the documents of pack %s?", pack)
	case call.KindRead:
		file, _ := titlePath(r)
		if r.Pack.Dir == "" {
			return fmt.Sprintf("Read %s from the workspace?", file)
		}
		if r.Path == "." {
			return fmt.Sprintf("List the files of pack %s?", pack)
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
			return fmt.Sprintf("Run something from pack %s?", pack) // refused before anybody is asked; shown in the history
		case r.Kind == call.KindRun:
			return fmt.Sprintf("Run tool %s of pack %s?", Name(r.Run.Tool), pack)
		}
		return fmt.Sprintf("Run %s for pack %s?", commandLine(r.Run), pack)
	default:
		return fmt.Sprintf("Show metadata of pack %s?", pack)
	}
}

// maxInTitle is how many characters of a path or a command a title shows; a longer
// one is only shown below it.
const maxInTitle = 40

// titlePath returns the file to read as the title shows it, and whether that is all
// of it, unchanged. It does not return a path with characters that a client could
// take for Markdown: a fact shows it instead.
func titlePath(r *call.Request) (file string, all bool) {
	markdown := func(c rune) bool { return c != ' ' && c <= '~' && !isPlain(string(c)) }
	if r.Path == "" || strings.ContainsFunc(r.Path, markdown) {
		return "a file", false
	}
	name := Name(r.Path)
	file = cut(name, maxInTitle)
	return file, file == r.Path
}

// commandLine returns the command as a title shows it, if it is short and needs no
// quoting.
func commandLine(r *call.Run) string {
	c := r.Command
	line := strings.Join(append([]string{c.Program.Name}, c.Args...), " ")
	switch {
	case !isPlain(c.Program.Name) || len(c.Program.Name) > maxInTitle, strings.EqualFold(c.Program.Name, "tool"):
		return "a program" // a title that begins with "Run tool x" is of a pack's tool
	case len(line) <= maxInTitle && !slices.ContainsFunc(c.Args, func(a string) bool { return !isPlain(a) }):
		return line
	default:
		return fmt.Sprintf("%s with %s", c.Program.Name, plural(len(c.Args), "argument"))
	}
}

// An Ask holds what a question is about besides the request.
type Ask struct {
	Box     sandbox.Report // how a program would be confined
	Since   string         // the answer that Changed compares with: "since your answer of …"
	Changed []string       // the differences from that answer; see [Changes]
	Rule    string         // which rule nearly allows the call
	Scan    Scan           // what a scan of the pack finds
	// Approvers says who may allow the call, if the configuration restricts that.
	Approvers string
}

// A Scan is what a scan of a pack found. The zero value means that there was none.
type Scan struct {
	Found  string // how much: "1 high, 2 medium"; or why that is not known
	Worst  string // the highest severity found: "high"; empty for nothing
	Failed bool   // the result is not known
}

// New makes the card of a question. The card is complete: a call that cannot be shown in
// full is an error.
func New(r *call.Request, ask Ask) (Card, error) {
	b := &builder{Card: Card{Title: Title(r)}}
	if len(ask.Changed) > 0 {
		// A person must not miss it among many questions.
		b.Title += " (changed)"
	}
	b.changes(ask)
	b.call(r, ask)
	if r.Run != nil {
		b.access(r, ask.Box)
		b.run(r.Run)
	}
	b.pack(&r.Pack)
	b.scan(ask.Scan)
	if r.Kind == call.KindRun {
		b.quote("The pack says of this tool", r.Run.About)
	} else {
		b.quote("The pack says of itself", r.Pack.About)
	}
	b.marks(r, ask)
	if b.characters() > maxPrompt {
		return Card{}, errTooLong
	}
	return b.Card, nil
}

// A builder makes a card fact by fact.
type builder struct {
	Card
	section Section // of the facts that follow
}

// fact adds a fact whose value is already escaped.
func (b *builder) fact(role Role, label, value string) { b.weighty(Plain, role, label, value) }

// weighty adds a fact that matters.
func (b *builder) weighty(w Weight, role Role, label, value string) {
	b.Facts = append(b.Facts, Fact{Role: role, Section: b.section, Label: label, Value: value, Weight: w})
}

// quote adds words that the pack chose.
func (b *builder) quote(who, text string) {
	if text = words(text); text != "" {
		b.Quotes = append(b.Quotes, Quote{Who: who, Text: text})
	}
}

// changes adds the differences from an earlier answer.
func (b *builder) changes(ask Ask) {
	b.section = SectionChange
	if len(ask.Changed) > 0 {
		b.weighty(Danger, RoleChange, "CHANGED", ask.Since)
	}
	for _, c := range ask.Changed {
		b.weighty(Danger, RoleChange, "CHANGED", c)
	}
}

// call adds what was asked for, by whom, and its effects.
func (b *builder) call(r *call.Request, ask Ask) {
	b.section = SectionCall
	if ask.Rule != "" {
		b.fact(RoleRule, "rule", line(ask.Rule))
	}
	if ask.Approvers != "" {
		b.weighty(Notice, RoleApprovers, "may allow", line(ask.Approvers))
	}
	for _, f := range r.Fields {
		b.weighty(Notice, RoleField, "fill in", line(f.Title)+", shown as "+quoted(call.StandIn(f.Name)))
	}
	switch r.Kind {
	case call.KindRead:
		if _, all := titlePath(r); !all {
			b.fact(RoleFile, "file", quoted(r.Path))
		}
		b.asked(r)
		if r.Pack.Dir == "" {
			b.fact(RoleFolder, "folder", quoted(r.Workspace))
		}
	case call.KindOpen:
		b.asked(r)
		b.fact(RoleEffect, "effect", "the model reads them and may do what they say")
	case call.KindAttach:
		b.asked(r)
		b.fact(RoleEffect, "effect", "this chat has the pack from now on; you are asked about each thing that it does")
	case call.KindEnable:
		for _, t := range r.Tools {
			b.fact(RoleTool, "tool", Name(t))
		}
		b.fact(RoleEffect, "effect", "each of their calls is decided separately")
	}
	if r.Run != nil {
		if r.Run.OnceOnly != "" {
			b.fact(RoleOnce, "only once", line(r.Run.OnceOnly))
		}
		if r.Run.ReadOnly {
			b.fact(RoleClaim, "pack says", "it changes nothing")
		}
	}
	if r.Caller.Act {
		b.fact(RoleChosen, "chosen", Chosen)
	}
	if r.Hidden != "" {
		b.weighty(Danger, RoleHidden, "CAUTION", "the text has "+line(r.Hidden))
	}
	if r.Caller.Person != "" {
		b.fact(RolePerson, "for", quoted(r.Caller.Person)+", according to the client's token")
	}
	if r.Caller.Client != "" {
		b.fact(RoleClient, "asked by", "a client that calls itself "+quoted(r.Caller.Client))
	}
}

// asked adds the arguments of the call, except those that the title already shows.
func (b *builder) asked(r *call.Request) {
	args, ok := r.Arguments.Members()
	if !ok {
		b.fact(RoleAsked, "asked for", jsonValue(r.Arguments.Canonical()))
		return
	}
	for _, m := range args {
		if m.Name == "pack_id" && m.Value == string(strictjson.Canonical(r.Pack.ID)) || m.Name == "path" && m.Value == string(strictjson.Canonical(r.Path)) {
			continue
		}
		b.fact(RoleAsked, "asked for", Name(m.Name)+": "+jsonValue(m.Value))
	}
}

// jsonValue returns JSON unchanged, or quoted if it has a long run of spaces.
func jsonValue(s string) string {
	s = unmarked(safetext.Line(s))
	if _, n := longBlank(s); n > 0 {
		return quoted(s)
	}
	return s
}

// pack adds the facts about the pack.
func (b *builder) pack(p *call.Pack) {
	b.section = SectionPack
	if p.Dir == "" {
		return
	}
	b.fact(RolePack, "pack", quoted(p.Dir))
	if p.Trusted() {
		b.fact(RoleTrust, "trust", p.Trust.Words())
	} else {
		b.weighty(Danger, RoleTrust, "trust", "NOT trusted; it came with a project or from elsewhere, so allow only what you understand")
	}
	if p.From.Source != "" {
		b.fact(RoleTrust, "from", quoted(p.From.Source)+", signed by "+unmarked(safetext.Line(p.From.Signer)))
	}
	if p.From.Differs {
		b.weighty(Danger, RoleTrust, "bytes", "NOT those recorded in packs.lock.json; somebody changed the pack after it was added")
	}
	b.fact(RoleDigest, "digest", short(p.Digest))
	b.updated(p.From.Updated)
}

// updated adds what the last update of the pack changed.
func (b *builder) updated(lines []string) {
	room := maxUpdatedBytes
	for i, l := range lines {
		if len(l) > maxUpdatedLine {
			l = strings.ToValidUTF8(l[:maxUpdatedLine], "") + "…"
		}
		if room -= len(l); i == maxUpdated || room < 0 {
			b.fact(RoleUpdate, "last update", fmt.Sprintf("and %d more changes", len(lines)-i))
			return
		}
		b.fact(RoleUpdate, "last update", jsonValue(l))
	}
}

// scan adds what a scan of the pack finds.
func (b *builder) scan(s Scan) {
	if s.Found != "" {
		b.weighty(s.weight(), RoleScan, "scan", line(s.Found))
	}
}

// weight returns how much the result matters. An unknown severity matters most.
func (s Scan) weight() Weight {
	switch {
	case s.Failed, s.Worst == "medium":
		return Notice
	case s.Worst == "", s.Worst == "low", s.Worst == "info":
		return Plain
	}
	return Danger
}

// A question shows this many lines of what the last update of a pack changed, this
// many bytes of each line, and this many bytes in total.
const (
	maxUpdated      = 40
	maxUpdatedLine  = 300
	maxUpdatedBytes = 16 * maxUpdatedLine
)

// short cuts a digest to a length that people can compare by eye.
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
