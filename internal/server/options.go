package server

import (
	"context"
	"log/slog"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/quota"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/spans"
)

// Limits bound what one call may take or return. 0 stands for a field's default.
type Limits struct {
	Request      int   // bytes of one message; 8 MiB
	OpenPage     int64 // bytes of an entry document given at once; 32 KiB
	ReadPage     int64 // bytes of a page when the caller names no length; 10,000
	ReadPageMax  int64 // the longest page a caller may ask for; 1 MiB
	ReadFile     int64 // the largest file that is read at all; 64 MiB
	Frontmatter  int   // bytes of a skill's frontmatter; 64 KiB
	Description  int   // characters of a description that a model sees; 1,024
	EnabledTools int   // of one chat; 60
	Runs         int   // programs of one chat at a time; 4
	TimeoutMax   time.Duration
	Run          sandbox.Limits
	Together     sandbox.Together // of all processes of a run; none
}

func (l Limits) withDefaults() Limits {
	set := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	setInt := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	setInt(&l.Request, 8<<20)
	set(&l.OpenPage, 32<<10)
	set(&l.ReadPage, 10_000)
	set(&l.ReadPageMax, 1<<20)
	set(&l.ReadFile, 64<<20)
	setInt(&l.Frontmatter, frontmatter.MaxSize)
	setInt(&l.Description, 1024)
	setInt(&l.EnabledTools, 60)
	setInt(&l.Runs, 4)
	if l.TimeoutMax <= 0 {
		l.TimeoutMax = 300 * time.Second
	}
	l.Run = l.Run.WithDefaults()
	return l
}

// A Library returns the packs as they are now. A Catalog never changes; a call keeps
// the one it began with.
type Library interface {
	Catalog(context.Context) *packs.Catalog
	// Refresh looks for the packs again in some directories, absolute with symlinks
	// resolved; nil: everywhere. It reports whether the Catalog has changed.
	Refresh(ctx context.Context, dirs []string) (changed bool, err error)
}

// A Decider is the gate. It decides about calls, keeps the open questions, refuses
// answers to calls that cannot be made, records calls that were refused before they
// reached it, says what lists need not offer, and is told when chats end.
type Decider interface {
	calls.Gate
	// Abandon says that the client of a chat is gone, and EndChat that its calls
	// have ended as well.
	Abandon(chat string)
	EndChat(chat string)
	// LeaveChat forgets what this server has of a chat that other replicas may go on with.
	LeaveChat(chat string)
	// Layers says how runs can change these folders without writing to them.
	Layers(ctx context.Context, folders []string) []sandbox.Layer
	// ShowsInChat reports whether a caller's person is asked on cards in the chat,
	// InChat gives the card its questions, and DecideInChat takes its answer.
	ShowsInChat(gate.Caller) bool
	InChat(gate.Caller) []gate.ChatQuestion
	DecideInChat(c gate.Caller, secret, decision string) bool
	// Forbids reports whether the user's rules forbid every request of a kind about
	// a pack; with an empty kind, everything about it.
	Forbids(kind gate.Kind, pack string) bool
}

// Options are what a server is made of. Library and Gate are required.
type Options struct {
	Version string // of this program
	Library Library
	Gate    Decider
	Logger  *slog.Logger // nil discards
	// Tools compiles the tools of packs; nil: with the default limits.
	Tools *toolfiles.Files
	// Programs finds programs; nil: the server makes its own. If it is the runner's
	// too, each program is digested only once.
	Programs *program.Lookuper
	// Elsewhere is as in plan.Options.
	Elsewhere plan.Elsewheres
	// Workspaces is the folder in which each chat gets a workspace of its own.
	Workspaces string
	// SharedChat returns the id of the chat of a credential, 32 hexadecimal digits, if
	// several replicas go on with one chat; nil: this server is alone.
	SharedChat func(credential string) string
	// CommonChats keeps what replicas have in common of these chats. It is required with
	// SharedChat.
	CommonChats chats.Common
	// Workspace, when not empty, is the one workspace of every chat instead.
	Workspace string
	// Project is the folder that tools with cwd "project" work in; empty: the
	// workspace.
	Project string
	// Dir is where the server was started. Version managers choose a version by it if
	// there is no project.
	Dir string
	// Environ is the environment from which a run's own is chosen.
	Environ []string
	// Openings are what the user's configuration opens to tools.
	Openings []plan.Opening
	// Own are the absolute files and folders on which this program depends: writing there
	// could change what people are asked.
	Own []string
	// Private are the absolute folders and files with keys, tokens and the like. No
	// run may read them, or a folder that holds one.
	Private []string
	// Tokens give access to this server over HTTP. They are removed from results and
	// the log, and no call may have one in its arguments.
	Tokens []string
	// AuditLog is the absolute path of the log. No folder that is granted may contain
	// it. It is not in Own, because it grows while a program runs.
	AuditLog string
	// Mode is what tools are told about the mode they run in; empty: "Global".
	Mode string
	// Context holds the user's values for context.* placeholders.
	Context map[string]string
	// Dotted gives the base tools names with a dot. Calls under either name work.
	Dotted bool
	// Skills gives each attached pack a tool of its own, SKILL(arguments).
	Skills bool
	// Cards offers two more tools to clients that show cards and cannot ask.
	Cards bool
	// Asking is called before a person is asked, so that they can answer elsewhere
	// from the moment they see the question. shown reports whether the client shows
	// it. nil does nothing. It must be safe for concurrent use.
	Asking func(shown bool)
	// From returns where the pack in a folder, with a digest, was added from; nil:
	// nowhere. It must be safe for concurrent use.
	From func(dir, digest string) gate.From
	// Origin returns who offers the pack in a folder; nil: nobody does. It must be
	// safe for concurrent use, and must not ask another machine.
	Origin func(dir string) offer.Origin
	// Spans are told about every request; nil: nothing is traced or measured. The gate's log
	// belongs in its Recorder.
	Spans  *spans.Tracer
	Limits Limits
	// RunsOf and MemoryOf limit the programs that run, and the bytes of memory that these
	// may take, of each person and group in all of their chats.
	RunsOf, MemoryOf quota.Limits

	progress  time.Duration // how often a client that asked for progress is told what its call waits for; 0: progressEvery
	lookEvery time.Duration // how often the resources that clients subscribe to are looked at; 0: [subscriptions.Every]
}
