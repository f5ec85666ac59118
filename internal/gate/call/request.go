package call

import (
	"fmt"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
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
	// KindRun starts the program of a tool that a pack declares.
	KindRun Kind = "run"
	// KindExec starts a program that the model named itself. It is a separate kind so
	// that it cannot be confused with a tool of some name.
	KindExec Kind = "exec"
	// KindAttach makes one pack available in a chat, and KindDetach takes it away
	// again. Models cannot ask for either; see [Caller].Act.
	KindAttach Kind = "attach"
	KindDetach Kind = "detach"
)

// KindUse is a kind of answer, and no call has it: it covers opening, reading and
// enabling one pack. See [Request.IsUse].
const KindUse Kind = "use"

// Starts reports whether a request of the kind starts a program.
func (k Kind) Starts() bool { return k == KindRun || k == KindExec }

// A Trust says where a pack comes from, as the person is told. The zero value
// is the least trusted.
type Trust string

const (
	TrustBundled   Trust = "bundled"   // embedded in the binary
	TrustUser      Trust = "user"      // from a folder the user named or owns
	TrustUntrusted Trust = "untrusted" // from a project's folder, or from elsewhere
)

// An Origin is where calls can come from. The zero Origin is the widest and is
// trusted least.
type Origin int

const (
	OriginNetwork Origin = iota // anybody with the token, on any machine
	OriginMachine               // anybody with the token, on this machine
	OriginClient                // only the client that started this program
)

// Words says where a pack comes from, for people.
func (t Trust) Words() string {
	switch t {
	case TrustBundled:
		return "bundled with packs-mcp"
	case TrustUser:
		return "yours, from a folder you named or own"
	default:
		return "NOT trusted"
	}
}

// A Caller says who makes a request. What a client said about itself is shown and
// logged as such, and never trusted.
type Caller struct {
	Chat   string // opaque id of the chat; grants and states belong to it
	Shared bool   // other replicas may go on with the chat
	Person string // the name of the credential, if it has one
	// Groups are the person's, according to the token that came with the call.
	Groups  []string
	Origin  Origin
	Client  string // the client's own name and version
	Call    string // id of this call, for the audit log
	CanAsk  bool   // the client declared that it can show a form
	Cards   bool   // the client declared that it shows cards beside the results of tools
	Carries bool   // a question goes to the client as the call's result, and the answer comes with another call
	ChatEnd string // when the chat ends, in words: "until this client closes"
	// Wait is how long the client is known to wait for a call; 0: not known.
	Wait time.Duration
	// Act says that by the protocol the call is a person's own act, such as choosing
	// a prompt. Only calls that open, attach or detach can be one. Only the client
	// vouches for it, which may be enough to do it without a question.
	Act bool
}

// A Pack is what a person needs to know about the pack of a request.
type Pack struct {
	ID     string
	Dir    string // absolute
	Trust  Trust
	Digest string // of the pack's tree, "sha256:" and hex; empty for the workspace
	About  string // the pack's own description; shown as a quotation only
	From   From   // where it was added from; zero for a pack that was not added
	// Loose says that Digest covers only one file of Dir.
	Loose bool
	// Partial says that Digest leaves out the content of some files. Private copies
	// do not hold these files, and without a private copy nothing of the pack runs.
	Partial bool
	// Files are the files that Digest covers, so that a person can be told what
	// changed. They may be left out. All requests about the same pack share them, and
	// nobody changes them.
	Files []File
	// Attached distinguishes one attachment of a pack from a later one: a grant ends
	// when the pack is detached, and attaching it again does not restore the grant.
	Attached string
}

// From says where a pack was added from, according to the lock file that records it.
type From struct {
	Source  string // the address, with the version that it stood for
	Signer  string // who signed that version; "nobody"
	Differs bool   // the pack has other bytes than the lock file says
	// Updated says what the last update changed, one line each: tools, files, and
	// then lines in these. It quotes the pack. It is shown, but answers are not bound
	// to it: they are bound to the digest.
	Updated []string
}

// A Request is one call, described by facts. The approval binds every field except
// Logged, Pack's Files and From's Updated, Run's Reads and OnceOnly, and Caller's
// Shared, Groups, Client, Call, CanAsk and Cards. If a bound field differs the next time,
// that is another question.
type Request struct {
	Caller Caller
	Kind   Kind
	Method string // the base tool that was called, such as capability_packs_open_docs
	Pack   Pack

	// Path is the file or directory to read, relative to the pack or workspace.
	Path string
	// Workspace is the absolute folder of the workspace that is read, or that a run
	// writes to; empty if the call uses none.
	Workspace string
	// Scratch says that Workspace was made for this chat, so the next chat has
	// another folder. A grant for every chat is then about "the workspace", wherever
	// that is.
	Scratch bool
	// Hidden says how many invisible characters a document has, in words; empty for
	// none.
	Hidden string
	// Tools are the declared names of the tools to enable.
	Tools []string
	// Arguments are the call's own arguments.
	Arguments *Arguments
	// Logged is what the audit log keeps of the arguments: Arguments with
	// secret values taken out. The zero value keeps nothing.
	Logged strictjson.Compact
	// Fields are values that the call needs and nobody has given. The person is asked
	// for them, and the request has stand-ins in their places. See Permit.Fill in
	// package gate.
	Fields []Field
	// AlwaysAsk offers only "once" and "deny". A pack can demand that.
	AlwaysAsk bool
	// Run is what a request of KindRun or KindExec would start.
	Run *Run
}

// A Run is one program as it would be started.
type Run struct {
	// Tool is the declared name of the pack's tool, for KindRun; empty for KindExec.
	// A grant for a tool covers any valid arguments. A grant without a tool covers
	// this exact argv and folder.
	Tool string
	// Place is where the program runs.
	Place sandbox.Place
	// Definition is the digest of the tool's whole declaration.
	Definition string
	// About is the tool's own description; shown as a quotation only.
	About   string
	Command sandbox.Command
	// UsualDir says that Command.Dir is the folder in which a tool of this format, or
	// a command, runs if it names none.
	UsualDir bool
	// Policy has no Cache: the gate's permit sets it.
	Policy sandbox.Policy
	// Cache is the tool's name for the folder that it keeps between its runs; empty:
	// it keeps none. The folder depends on all facts of a grant, so runs that differ
	// in any of them have different folders.
	Cache string
	// Env holds the variables the tool itself sets, as K=V; they are shown.
	// Command.Env has them too, among the ones every program gets.
	Env []string
	// Inputs are the files outside of the pack that the arguments of a model's own
	// command name, such as a script. They determine what the command does.
	Inputs []File
	// Reads are the folders that a model's own command can read besides its pack and
	// the system's, each with a digest of everything in it, or the files that a
	// tool's declaration names. An answer for more than this call holds as long as
	// none of them changes. An answer for this call only is not bound to them, since
	// the runs of a chat write to one workspace.
	Reads []File
	// OnceOnly says why an answer for more than this call would cover what nobody
	// looked at, such as the files of a large folder; empty if it would not. If it is
	// set, only "once" and "deny" are offered, and earlier answers do not count. A
	// rule of the user's that allows the run still does.
	OnceOnly string
	// Project is the user's project, if Policy holds it or a part of it; empty
	// otherwise.
	Project string
	// Granted is what the user's own configuration adds to Command and Policy.
	Granted Granted
	// Logged is what the audit log keeps of the program's arguments:
	// Command.Args with secret values taken out. Like [Request].Logged it is not
	// bound by the approval.
	Logged []string
	// ReadOnly is the pack's word that the tool changes nothing. DeclaresReadOnly
	// says that its author wrote that. Otherwise the tool's format assumes it.
	ReadOnly, DeclaresReadOnly bool
	// ReviewRule says where the rule is written that makes Policy have Review; empty:
	// a tool or a grant does, or Policy has no Review. The gate sets it.
	ReviewRule string
}

// Granted is what the user's configuration opens to a run beyond the usual, as it is
// shown to a person. The values of the variables are secrets, and only the run's
// Command has them.
type Granted struct {
	Env     []string // names of variables that are set to the user's own values
	Unset   []string // names of granted variables that are not set in the user's environment
	Folders []string // folders and files of Policy.ReadOnly, Writable and Layers that were granted
	LeftOut []Missing
	Home    string // the user's home folder, if HOME is set to it; empty otherwise
}

// Missing is something that was granted but is not available.
type Missing struct {
	What string // as it is written in the configuration
	Why  string // "is not there"
}

// Problem returns why nobody can be asked about r at all; empty if they can.
func (r *Request) Problem() string {
	const incomplete = "the request is incomplete"
	switch r.Kind {
	case KindList, KindOpen, KindRead, KindEnable, KindRun, KindExec, KindAttach, KindDetach:
	default:
		return fmt.Sprintf("the kind %q is unknown", r.Kind)
	}
	chosen := r.Kind == KindAttach || r.Kind == KindDetach
	switch {
	case r.Caller.Chat == "":
		return "the call belongs to no chat"
	case r.Caller.Act && !chosen && r.Kind != KindOpen, chosen && !r.Caller.Act:
		return fmt.Sprintf("a call of the kind %q cannot be made in this way", r.Kind)
	case r.Kind.Starts() != (r.Run != nil):
		return incomplete
	case r.Run != nil && (r.Kind == KindRun) != (r.Run.Tool != ""), r.Run != nil && r.Run.Policy.Cache != "":
		return incomplete
	case r.Kind != KindList && (r.Pack.ID == "" || r.Pack.Dir == "" && r.Kind != KindRead && r.Kind != KindDetach):
		return incomplete
	case r.Kind != KindList && r.Pack.Dir != "" && r.Pack.Digest == "":
		return incomplete
	case r.Kind == KindRead && r.Pack.Dir == "" && r.Workspace == "", r.Run != nil && r.Run.Command.Workspace != r.Workspace:
		return incomplete
	}
	if r.Run != nil {
		c := r.Run.Command
		if c.Program.Path == "" || c.Program.Digest == "" || c.Dir == "" || r.Run.Tool != "" && r.Run.Definition == "" {
			return incomplete
		}
	}
	return r.Arguments.Problem()
}

// SameCall reports whether r and other are the same call according to the client.
// What this program found out about them may differ.
func (r *Request) SameCall(other *Request) bool {
	return r.Caller.Chat == other.Caller.Chat && r.Caller.Person == other.Caller.Person && r.Caller.Act == other.Caller.Act &&
		r.Kind == other.Kind && r.Method == other.Method && r.Arguments.Canonical() == other.Arguments.Canonical()
}

// OnceOnly reports whether only this exact call can be approved, and not others like
// it. Values that the person fills in are for one call.
func (r *Request) OnceOnly() bool { return r.AlwaysAsk || !r.Pack.Trusted() || len(r.Fields) > 0 }

// Lasting reports whether an answer may hold for more than this call.
func (r *Request) Lasting() bool { return !r.OnceOnly() && (r.Run == nil || r.Run.OnceOnly == "") }

// IsUse reports whether an answer of [KindUse] covers the request: it opens, reads or
// enables a pack, and the model gets no text with hidden characters. Such text is
// asked about separately.
func (r *Request) IsUse() bool {
	return slices.Contains(useKinds(), string(r.Kind)) && r.Pack.Dir != "" && r.Workspace == "" && !r.Scratch && r.Hidden == ""
}

// useKinds are the kinds of calls that an answer of [KindUse] covers.
func useKinds() []string { return []string{string(KindOpen), string(KindRead), string(KindEnable)} }

// Trusted reports whether a person vouched for the pack. An unknown word is not
// trusted.
func (p *Pack) Trusted() bool { return p.Trust == TrustBundled || p.Trust == TrustUser }

// clone returns a copy that shares nothing that could be changed.
func (r Request) clone() Request {
	r.Caller.Groups = slices.Clone(r.Caller.Groups)
	r.Tools, r.Fields = slices.Clone(r.Tools), slices.Clone(r.Fields) // Pack.Files is never changed
	if r.Run != nil {
		run := *r.Run
		run.Env, run.Inputs, run.Reads = slices.Clone(run.Env), slices.Clone(run.Inputs), slices.Clone(run.Reads)
		run.Command.Args = slices.Clone(run.Command.Args)
		run.Command.Env = slices.Clone(run.Command.Env)
		run.Command.Stdin = slices.Clone(run.Command.Stdin)
		run.Policy.ReadOnly = slices.Clone(run.Policy.ReadOnly)
		run.Policy.Writable = slices.Clone(run.Policy.Writable)
		run.Policy.Layers = slices.Clone(run.Policy.Layers)
		run.Policy.Links = slices.Clone(run.Policy.Links)
		run.Policy.Images = slices.Clone(run.Policy.Images)
		run.Command.Program.Interpreters = slices.Clone(run.Command.Program.Interpreters)
		for n := range run.Command.Program.Interpreters {
			i := &run.Command.Program.Interpreters[n]
			i.Args, i.Env = slices.Clone(i.Args), slices.Clone(i.Env)
		}
		run.Command.Program.Needs = slices.Clone(run.Command.Program.Needs)
		run.Command.Program.Links = slices.Clone(run.Command.Program.Links)
		run.Granted.Env = slices.Clone(run.Granted.Env)
		run.Granted.Unset = slices.Clone(run.Granted.Unset)
		run.Granted.Folders = slices.Clone(run.Granted.Folders)
		run.Granted.LeftOut = slices.Clone(run.Granted.LeftOut)
		r.Run = &run
	}
	return r
}

// StandIn returns the text that stands for a value that the person has to fill in.
func StandIn(field string) string { return "<" + field + ">" }

// WithReview returns the request with all of its changes held because of the rule
// that is written at where. If where is empty, it returns r unchanged.
func (r Request) WithReview(where string) Request {
	if where != "" && r.Run != nil {
		run := *r.Run
		run.Policy.Review, run.ReviewRule = true, where
		r.Run = &run
	}
	return r
}

// A Field is a value that a tool needs and that nobody has given.
type Field struct {
	Name  string // letters, digits and "_"
	Title string // for the person, one line
}

// A File is a file of a pack, as it was when something was approved.
type File struct {
	Path   string `json:"path"`   // with slashes
	Digest string `json:"digest"` // "sha256:" and hex
}
