package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// A Kind is the sort of thing a call does. The zero Kind is refused.
type Kind string

const (
	// KindList shows names, descriptions and other metadata. It never asks.
	KindList Kind = "list"
	// KindOpen shows the documents of one pack.
	KindOpen Kind = "open"
	// KindRead shows one file or directory of a pack, or of the chat's workspace.
	KindRead Kind = "read"
	// KindEnable makes the tools of one pack callable.
	KindEnable Kind = "enable"
	// KindRun starts a program.
	KindRun Kind = "run"
)

// A Trust says where a pack comes from, as the person is told. The zero value
// is the least trusted.
type Trust string

const (
	TrustBundled   Trust = "bundled"   // embedded in the binary
	TrustUser      Trust = "user"      // from a folder the user named or owns
	TrustUntrusted Trust = "untrusted" // from a project's folder, or from elsewhere
)

// A Caller is whoever makes a request. Everything in it that a client said of
// itself is shown and logged as such, never trusted.
type Caller struct {
	Chat    string // opaque id of the chat; grants and states belong to it
	Person  string // the name of the credential, where there is one
	Client  string // the client's own name and version
	Call    string // id of this call, for the audit log
	CanAsk  bool   // the client declared that it can show a form
	ChatEnd string // when the chat ends, in words: "until this client closes"
}

// A Pack is what a person needs to know of the pack a request is about.
type Pack struct {
	ID     string
	Dir    string // absolute
	Trust  Trust
	Digest string // hex SHA-256 of the pack's tree; empty for the workspace
	About  string // the pack's own description; shown as a quotation only
}

// A Request is one call, described by facts. Everything in it except Caller's
// Client, Call and CanAsk is bound by the approval: when any of it differs the
// next time, it is another question.
type Request struct {
	Caller Caller
	Kind   Kind
	Method string // the base tool that was called, as capability_packs_open_docs
	Pack   Pack

	// Path is the file or directory to read, relative to the pack or workspace.
	Path string
	// Hidden tells how many invisible characters a document has, in words;
	// empty for none.
	Hidden string
	// Tools are the declared names of the tools to enable.
	Tools []string
	// Arguments are the call's own arguments, one JSON object.
	Arguments json.RawMessage
	// Logged is what the audit log keeps of the arguments: Arguments with
	// secret values taken out. Nil keeps nothing.
	Logged json.RawMessage
	// AlwaysAsk offers only "once" and "deny", as a pack can demand.
	AlwaysAsk bool
	// Run is what a request of KindRun would start.
	Run *Run
}

// A Run is one program as it would be started.
type Run struct {
	// Tool is the declared name of the pack's tool; empty when the model wrote
	// the command itself (exec_best_effort). A grant for a tool covers any
	// valid arguments; without a tool it covers this exact argv and folder.
	Tool string
	// Definition is the digest of the tool's whole declaration.
	Definition string
	// About is the tool's own description; shown as a quotation only.
	About   string
	Command sandbox.Command
	Policy  sandbox.Policy
	// Env holds the variables the tool itself sets, as K=V; they are shown.
	// Command.Env has them too, among the ones every program gets.
	Env []string
	// ReadOnly is the pack's word that the tool changes nothing.
	ReadOnly bool
}

// facts is the part of a request that an answer is bound to, in the fixed
// order of its fields. A change here voids states and grants, which is right:
// what was approved is then not what would happen.
type facts struct {
	Chat       string
	Kind       Kind
	Pack       string
	PackDir    string
	PackDigest string
	Trust      Trust
	Path       string          `json:",omitempty"`
	Hidden     string          `json:",omitempty"`
	Tools      []string        `json:",omitempty"`
	Arguments  json.RawMessage `json:",omitempty"`
	AlwaysAsk  bool
	Run        *runFacts `json:",omitempty"`
}

type runFacts struct {
	Tool       string
	Definition string
	Program    sandbox.Program
	Args       []string `json:",omitempty"`
	Env        []string `json:",omitempty"`
	Dir        string
	Stdin      string `json:",omitempty"` // hex SHA-256
	Workspace  string
	ReadOnly   []string
	Writable   []string
	Network    string
	Limits     sandbox.Limits
	Level      string
}

func (r *Request) runFacts(level sandbox.Level) *runFacts {
	if r.Run == nil {
		return nil
	}
	c, p := r.Run.Command, r.Run.Policy
	f := &runFacts{
		Tool:       r.Run.Tool,
		Definition: r.Run.Definition,
		Program:    c.Program,
		Args:       c.Args,
		Env:        c.Env,
		Dir:        c.Dir,
		Workspace:  c.Workspace,
		ReadOnly:   p.ReadOnly,
		Writable:   p.Writable,
		Network:    p.Network.String(),
		Limits:     p.Limits,
		Level:      level.String(),
	}
	if len(c.Stdin) > 0 {
		f.Stdin = hexSum(c.Stdin)
	}
	return f
}

// callDigest names this exact call: what a state is bound to.
func (r *Request) callDigest(level sandbox.Level) string {
	return digest("call", facts{
		Chat: r.Caller.Chat, Kind: r.Kind,
		Pack: r.Pack.ID, PackDir: r.Pack.Dir, PackDigest: r.Pack.Digest, Trust: r.Pack.Trust,
		Path: r.Path, Hidden: r.Hidden, Tools: r.Tools, Arguments: canonical(r.Arguments),
		AlwaysAsk: r.AlwaysAsk,
		Run:       r.runFacts(level),
	})
}

// grantDigest names what an answer "for this chat" covers: the pack for open
// and enable, the pack's files for read, the tool with any valid arguments for
// a run, and the exact argv and folder for a command the model wrote.
func (r *Request) grantDigest(level sandbox.Level) string {
	f := facts{
		Chat: r.Caller.Chat, Kind: r.Kind,
		Pack: r.Pack.ID, PackDir: r.Pack.Dir, PackDigest: r.Pack.Digest, Trust: r.Pack.Trust,
		Run: r.runFacts(level),
	}
	if f.Run != nil && f.Run.Tool != "" {
		f.Run.Args, f.Run.Env, f.Run.Stdin = nil, nil, ""
	}
	return digest("grant", f)
}

// digest hashes v's JSON, whose fields have a fixed order. domain keeps
// digests made for different purposes apart.
func digest(domain string, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		// Unreachable: Check refuses arguments that are not JSON before this,
		// and nothing else in a request can fail to encode. The time makes the
		// digest match nothing, ever.
		b = []byte(time.Now().String())
	}
	return hexSum(append([]byte("packs-mcp/"+domain+"\x00"), b...))
}

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// canonical returns arguments in one spelling: object keys sorted, no spaces,
// numbers as they were written. A client may spell a retry differently.
func canonical(raw json.RawMessage) json.RawMessage {
	v, err := decode(raw)
	if err != nil {
		return raw
	}
	out, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return out
}
