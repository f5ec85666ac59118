package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
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
	Tools *packs.ToolFiles
	// Programs finds programs; nil: one of the server's own. Sharing the
	// runner's saves digesting each program twice.
	Programs *program.Lookuper
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
	// Grants are what the user's configuration opens to tools.
	Grants []Grant
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
	// Wait is how long a call waits for a person's answer; 0 is 45 seconds.
	Wait time.Duration
	// Unseen is called, by many at a time, when a question is open that the client
	// does not show. It must not wait; nil does nothing.
	Unseen func()
	// Spans are told of every request; nil: nobody is. The gate's log belongs in
	// its Recorder.
	Spans  *spans.Tracer
	Limits Limits
}

// A Server serves MCP clients. Make one with [New]; it is safe for concurrent
// use.
type Server struct {
	mcp     *mcpserver.MCPServer
	opts    Options
	limits  Limits
	logger  *slog.Logger
	base    map[string]*baseTool // :: plain name → tool; never modified after New
	digests *packfs.DigestCache
	trees   trees
	asFound asFound
	files   *packs.ToolFiles
	lookup  *program.Lookuper
	cpu     time.Duration // of a run; 0: its timeout
	every   time.Duration // see lookEvery; tests look more often
	secrets []string      // tokens, and values in the server's environment that are secrets by their names
	// progress is how often a client that wants to know is told what its call
	// waits for.
	progress time.Duration
	info     mcp.Implementation
	homes    []string // the user's home folder, as it is spelled and without links; empty: not known

	claims claims // of runs
	finder finder // of packs, by words
	common common // of chats

	mu      sync.Mutex
	chats   []*chat         // those that have not ended
	told    map[string]bool // :: folder of a pack → the log says why it is no skill
	looks   map[string]int  // :: person → resources that their chats look at
	shown   *packs.Catalog  // what Changes was told of last
	changed chan struct{}   // closed when chats, or the packs of one, change; nil: nobody waits for that
}

// New returns a server that serves nobody yet.
func New(o Options) (*Server, error) {
	if o.Library == nil || o.Gate == nil {
		return nil, errors.New("server: a library and a gate are required")
	}
	if o.Workspaces == "" && o.Workspace == "" {
		return nil, errors.New("server: a folder for workspaces is required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Wait <= 0 {
		o.Wait = 45 * time.Second
	}
	o.Own = slices.Clone(o.Own)
	homes := homeFolders(o.Environ)
	if o.Project != "" {
		// The folder itself: a run is refused in one that a link leads to.
		resolved, err := filepath.EvalSymlinks(o.Project)
		if err != nil {
			return nil, fmt.Errorf("finding the project: %w", err)
		}
		o.Project = resolved
	}
	for what, dir := range map[string]string{"project": o.Project, "workspace": o.Workspace} {
		if dir != "" && holdsHome(homes, dir) {
			return nil, fmt.Errorf("the %s %q holds your whole home folder, with keys and passwords; name a folder in it", what, dir)
		}
	}
	if o.Workspace != "" && slices.ContainsFunc(o.Private, func(own string) bool { return within(own, withoutLinks(o.Workspace)) }) {
		return nil, fmt.Errorf("the workspace %q holds packs-mcp's own keys or tokens; name another folder", o.Workspace)
	}
	for i, own := range o.Own {
		o.Own[i] = withoutLinks(own)
	}
	o.Private = slices.Clone(o.Private)
	for i, own := range o.Private {
		o.Private[i] = withoutLinks(own)
	}
	if err := checkPrivate(o.Private); err != nil {
		return nil, err
	}
	o.Tokens = slices.Clone(o.Tokens)
	o.AuditLog = withoutLinks(o.AuditLog)
	if o.Tools == nil {
		o.Tools = packs.NewToolFiles(tools.Limits{}, o.Mode)
	}
	if o.Programs == nil {
		o.Programs = new(program.Lookuper)
	}
	s := &Server{
		opts: o, limits: o.Limits.withDefaults(), logger: o.Logger,
		base:     make(map[string]*baseTool),
		digests:  new(packfs.DigestCache),
		lookup:   o.Programs,
		cpu:      o.Limits.Run.CPU,
		homes:    homes,
		files:    o.Tools,
		secrets:  secretsOf(&o),
		progress: progressEvery,
		info:     implementation(o.Version),
		every:    lookEvery,
	}

	hooks := &mcpserver.Hooks{}
	hooks.AddAfterInitialize(func(ctx context.Context, _ any, _ *mcp.InitializeRequest, r *mcp.InitializeResult) {
		r.Instructions = s.instructions(ctx)
		r.ServerInfo.Icons = icons()
	})
	hooks.AddAfterDiscover(func(ctx context.Context, _ any, _ *mcp.DiscoverRequest, r *mcp.DiscoverResult) {
		r.Instructions = s.instructions(ctx)
		info := s.info
		info.Icons = icons()
		r.EnsureResultMeta().SetServerInfo(info)
	})
	hooks.AddBeforeCallTool(s.rename)
	s.mcp = mcpserver.NewMCPServer(s.info.Name, s.info.Version,
		mcpserver.WithTitle(s.info.Title),
		mcpserver.WithDescription(s.info.Description),
		mcpserver.WithWebsiteURL(s.info.WebsiteURL),
		mcpserver.WithToolCapabilities(true),
		mcpserver.WithPromptCapabilities(true),
		mcpserver.WithResourceCapabilities(true, true),
		mcpserver.WithCompletions(),
		mcpserver.WithExtensions(map[string]any{extensionSkills: map[string]any{"directoryRead": true}}),
		mcpserver.WithHooks(hooks),
		mcpserver.WithToolFilter(s.listTools),
		// What a chat sees is its own, and changes when a person allows it.
		mcpserver.WithCacheHints(0, mcp.CacheScopePrivate),
	)
	for _, t := range s.baseTools() {
		var err error
		if t.arguments, err = argumentsOf(t.input); err != nil {
			return nil, err
		}
		s.base[t.name] = t
		s.mcp.AddTool(s.definition(t), s.call)
	}
	return s, nil
}

// implementation is what the server says of itself, in every result of
// 2026-07-28: without icons, which are said once.
func implementation(version string) mcp.Implementation {
	return mcp.Implementation{
		Name: "packs-mcp", Version: version, Title: "Capability packs",
		Description: "Folders of instructions, files and tools, each call approved by a person.",
		WebsiteURL:  "https://github.com/packs-mcp/packs-mcp",
	}
}

// icons are how clients can show the server. Tools, prompts and resources have
// none: it would be this one many times, and a pack's own could be anybody's.
func icons() []mcp.Icon {
	src := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(icon))
	return []mcp.Icon{{Src: src, MIMEType: "image/svg+xml", Sizes: []string{"any"}}}
}

// icon is a parcel, in a colour that is seen on light and dark.
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#c2762e" stroke-width="2" stroke-linejoin="round">` +
	`<path d="M12 2 21 7v10l-9 5-9-5V7z"/><path d="M3 7l9 5 9-5M12 12v10M7.5 4.5l9 5"/></svg>`
