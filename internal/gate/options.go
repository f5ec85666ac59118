package gate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/caches"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/deciders"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/lines"
	"github.com/packs-mcp/packs-mcp/internal/gate/policy"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/quota"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/store"
)

// A Runner starts one program under one policy. It is [runner.Runner].
type Runner interface {
	// Probe says how programs are confined here. The first call finds that out by
	// trying.
	Probe(context.Context) sandbox.Report
	// Layers says how runs can change these folders without writing to them.
	Layers(ctx context.Context, folders []string) []sandbox.Layer
	Run(context.Context, sandbox.Policy, sandbox.Command) (*sandbox.Result, error)
}

// A Recorder is where decisions and runs are written. It is an [audit.Writer].
type Recorder interface {
	// Append returns when the entry is on disk.
	Append(audit.Entry) error
	// AppendLazy returns when the entry is written. It reaches the disk within a
	// second.
	AppendLazy(audit.Entry) error
	// Failures returns how many times the log did not reach the disk. Entries
	// appended lazily before such a failure may be lost.
	Failures() int
}

// Claims has each run start once among the replicas of a server. It is [runs.Claims].
type Claims interface {
	// Entry returns the claim of a run, to be written in place of the question whose answer
	// allows it. cut is the line that the log of another replica gets if this one ends
	// before End is called.
	Entry(question string, cut audit.Entry) ([]byte, error)
	// Took says where that was written.
	Took(run, key string, rev uint64)
	// Claim claims a run before it starts, and reports false if that was done before, for
	// the same question or decision, id. After an error nobody knows whether the run is
	// claimed.
	Claim(ctx context.Context, id string, cut audit.Entry) (claimed bool, err error)
	// End ends the claim of a run, if there is one.
	End(run string)
}

// A Copier makes private copies of packs. It is copies.Store.
type Copier interface {
	// Copy returns a folder that holds exactly the tree with this digest, made from
	// the pack's folder dir. Only this user can change it. It stays until release
	// is called. An error means that the pack is not, or no longer, that tree, or
	// that it cannot be copied.
	Copy(ctx context.Context, dir, digest string) (folder string, release func(), err error)
}

// Options configure a gate.
type Options struct {
	Runner Runner // of this machine
	// Elsewhere returns the runner of another place; nil: there is none. If Elsewhere
	// is nil, all programs run here.
	Elsewhere func(sandbox.Place) Runner
	Log       Recorder
	Logger    *slog.Logger // nil discards
	// Server names this process in the audit log.
	Server string
	// Require is the weakest level of confinement at which a program may start.
	Require sandbox.Level
	// Policy is policy.EveryCall, policy.FirstRun or policy.Balanced; empty means
	// policy.EveryCall.
	Policy string
	// Rules are the user's rules.
	Rules []rules.Rule
	// Approvers say who may allow which calls. A call that no rule covers may be
	// allowed by the person who asks, and by the operator of the server.
	Approvers []approvers.Rule
	// Giver returns who a person that gave a kept answer is today, with the groups that
	// they are in now, or false if they are nobody any more. The operator is not looked
	// up. nil: everybody is who they were.
	Giver func(approvers.Person) (approvers.Person, bool)
	// Users are who may make calls; empty: everybody who can reach the server.
	Users []approvers.Who
	// Remote says that people other than the operator can be asked, on the page or in
	// the terminal.
	Remote bool
	// Prompts is PromptsAuto, PromptsAllow or PromptsAsk; empty means PromptsAuto.
	Prompts string
	// Grants keeps the answers that hold in every chat. If nil, no answer does.
	Grants grants.Store
	// Ended reports whether somebody has taken an answer back on another server. rev is
	// the revision of the store of Questions with which it was given, or 0 for an answer
	// of a chat. It is called after Load of Grants. If nil, nobody can.
	Ended func(g grants.Grant, rev uint64) bool
	// SharedChats keeps the answers that hold in one chat, for chats that replicas have in
	// common. It is read after Load of Grants. If nil, there are no such chats.
	SharedChats grants.ChatStore
	// Runs claims runs before they start. If nil, this server is alone.
	Runs Claims
	// Copies makes the private copies of packs that programs start from. If nil,
	// they start from the pack's own folder.
	Copies Copier
	// Questions is the store in which replicas share their questions, sealed, and Keys
	// make and check the states that clients carry. If it is nil, this server is alone.
	Questions *store.Mirror
	Keys      [][]byte
	// Caches keeps what tools store between runs. If nil, a tool that needs a cache
	// does not run.
	Caches *caches.Store
	// Channels are the ways to ask a person: ChannelElicitation, ChannelPage,
	// ChannelTerminal, ChannelApp. Nil means elicitation alone.
	Channels []string
	// Scan returns what a scan of a pack finds, for the question about a call. If
	// nil, questions do not mention a scan. No answer is bound to the result: a
	// change of the pack ends an answer, but a new rule of the scan does not.
	Scan func(*call.Pack) prompt.Scan
	// Wait is how long a call waits for its answer. 0 means as long as its client
	// is known to wait, or 45 seconds if that is unknown.
	Wait time.Duration
	// Pending is how long a question can be answered, and how long an answer holds
	// for a call that has returned. 0 means ten minutes.
	Pending time.Duration
	// People is how many persons have credentials; 0 means one. Each has an equal
	// share of the room for questions.
	People int
	// WaitingOf limits the questions that wait for an answer, of each person and group.
	WaitingOf quota.Limits
	// FullArguments writes arguments into the audit log unchanged. Otherwise secret
	// values are removed.
	FullArguments bool
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// New returns a gate with no grants. o.Runner and o.Log are required.
func New(o Options) (*Gate, error) {
	if o.Runner == nil || o.Log == nil {
		return nil, errors.New("gate: a runner and an audit log are required")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Pending <= 0 {
		o.Pending = 10 * time.Minute
	}
	if o.Channels == nil {
		o.Channels = []string{queue.ChannelElicitation}
	}
	switch o.Policy {
	case "":
		o.Policy = policy.EveryCall
	case policy.EveryCall, policy.FirstRun, policy.Balanced:
	default:
		return nil, fmt.Errorf("gate: the policy %q is unknown", o.Policy)
	}
	switch o.Prompts {
	case "":
		o.Prompts = PromptsAuto
	case PromptsAuto, PromptsAllow, PromptsAsk:
	default:
		return nil, fmt.Errorf("gate: the word %q for prompts is unknown", o.Prompts)
	}
	if o.Ended == nil {
		o.Ended = func(grants.Grant, uint64) bool { return false }
	}
	people := max(1, o.People)
	questions, err := queue.New(queue.Options{Now: o.Now, People: people, Limits: o.WaitingOf, Shared: o.Questions, Keys: o.Keys})
	if err != nil {
		return nil, err
	}
	return &Gate{
		runner: o.Runner, other: o.Elsewhere, require: o.Require, copies: o.Copies, caches: o.Caches, runs: o.Runs,
		log: o.Log, logger: o.Logger, author: lines.Author{Server: o.Server, Full: o.FullArguments}, refusals: lines.NewRefusals(time.Minute),
		policy: o.Policy, prompts: o.Prompts, rules: slices.Clone(o.Rules), users: slices.Clone(o.Users),
		who:  deciders.Deciders{Rules: slices.Clone(o.Approvers), Giver: o.Giver},
		book: grants.Book{Store: o.Grants, Chats: grants.NewChats(people), Common: o.SharedChats}, ended: o.Ended,
		queue: questions, ask: slices.Clone(o.Channels), remote: o.Remote, scan: o.Scan, wait: o.Wait, pending: o.Pending,
		now: o.Now, wrong: make(map[string]int),
	}, nil
}
