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
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/spans"
)

// Limits bounds what one call may take or give. A field that is 0 stands for
// its default.
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

// A Library gives the packs as they are now. A Catalog never changes; a call
// keeps the one it began with.
type Library interface {
	Catalog(context.Context) *packs.Catalog
	// Refresh looks for the packs anew in some directories, absolute with symlinks
	// resolved; nil: everywhere. It reports whether the Catalog is another one now.
	Refresh(ctx context.Context, dirs []string) (changed bool, err error)
}

// A Decider is the gate: it decides about a call, keeps the questions that are
// open, refuses the answer to a call that cannot be made, records calls that were
// refused before they came to it, says what lists need not offer, and hears of chats
// that end.
type Decider interface {
	Check(context.Context, gate.Request, *gate.Answer) (*gate.Permit, *gate.Question, error)
	Refuse(gate.Request, *gate.Answer, string) error
	Refused(gate.Refusal)
	// Answered is what was decided about a question on another channel than the
	// client; nil when nothing was yet.
	Answered(*gate.Question) *gate.Answer
	// Postpone leaves a question open whose call has waited long enough.
	Postpone(*gate.Question) (*gate.Answer, error)
	// Abandon says that the client of a chat is gone, and EndChat that its calls
	// have ended as well.
	Abandon(chat string)
	EndChat(chat string)
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
	// Tools compiles the tools of packs; nil: with the usual limits.
	Tools *toolfiles.Files
	// Programs finds programs; nil: one of the server's own. Sharing the
	// runner's saves digesting each program twice.
	Programs *program.Lookuper
	// Elsewhere is as in plan.Options.
	Elsewhere plan.Elsewheres
	// Workspaces is the folder in which each chat gets a workspace of its own.
	Workspaces string
	// Workspace, when not empty, is the one workspace of every chat instead.
	Workspace string
	// Project is the folder that tools with cwd "project" work in; empty: the
	// workspace.
	Project string
	// Dir is where the server was started: what version managers choose a
	// version for when there is no project.
	Dir string
	// Environ is the environment that a run's own is picked from.
	Environ []string
	// Openings are what the user's configuration opens to tools.
	Openings []plan.Opening
	// Own are the absolute files and folders that this program goes by: what may
	// write there could change what is asked.
	Own []string
	// Private are the absolute folders and files with keys, tokens and the like: no
	// run may read them, nor a folder that holds one.
	Private []string
	// Tokens let somebody use this server over HTTP. They are taken out of results
	// and the log, and no call may have one in its arguments.
	Tokens []string
	// AuditLog is the absolute path of the log. Nothing that is granted holds it;
	// it is not in Own, since it grows while a program runs.
	AuditLog string
	// Mode is what a tool is told of the mode it runs in; empty: "Global".
	Mode string
	// Context holds the user's values for context.* placeholders.
	Context map[string]string
	// Dotted gives the base tools names with a dot. Calls under either name work.
	Dotted bool
	// Skills gives each attached pack a tool of its own, SKILL(arguments).
	Skills bool
	// Cards offers two tools more to clients that show cards and cannot ask.
	Cards bool
	// Asking is called, by many at a time, before a person is asked, so that they can
	// answer elsewhere from the moment they see the question. shown reports whether
	// the client shows it. nil does nothing.
	Asking func(shown bool)
	// From says where the pack in a folder, with a digest, was added from; nil:
	// nowhere. It may be called by many at a time.
	From func(dir, digest string) gate.From
	// Origin says who offers the pack in a folder; nil: nobody else does. It may be
	// called by many at a time, and asks no other machine.
	Origin func(dir string) Origin
	// Spans are told of every request; nil: nobody is. The gate's log belongs in
	// its Recorder.
	Spans  *spans.Tracer
	Limits Limits
}

// An Origin says of a pack that was added from elsewhere who offers it. The zero value
// is a pack of this machine's.
type Origin struct {
	Label     string // "[rulebook]" or "[pak]", or ""
	CreatedAt string // RFC 3339, as its provider has it; "" for none
	UpdatedAt string
}
