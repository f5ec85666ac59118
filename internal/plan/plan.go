// Package plan works out what a call would run: from a pack's tool and its
// arguments, or a command that the model wrote, to the program, its arguments,
// environment and folders, what it may read and change, the files that an answer
// will be bound to, and the secrets in it.
//
// It decides nothing and runs nothing: it asks nobody, records nothing, and starts no
// program. Package gate decides about a plan, and runs it. The package knows neither
// MCP nor chats; a [Call] holds what it needs of one call. It reads files and changes
// none. A plan describes the files as they were when it was made: after a wait, make
// another.
package plan

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// A Planner makes plans. It never changes, so it is safe for concurrent use.
type Planner struct {
	opts   Options
	limits sandbox.Limits // of a run, with defaults
	homes  []string       // the user's home folder, as it is spelled and without links; empty: not known
}

// Options configure a Planner: what holds for every call.
type Options struct {
	// Layers says how runs can change folders without writing to them, as the runner
	// does. If it is nil, no run may change a folder of the user's.
	Layers func(ctx context.Context, folders []string) []sandbox.Layer
	// Elsewhere returns where the programs of a tool, or the model's own commands for
	// a pack, run, if not on this machine; nil: here. If Elsewhere is nil, all run
	// here.
	Elsewhere Elsewheres
	// Programs finds programs; nil: the planner makes its own.
	Programs *program.Lookuper
	// Workspace is the one workspace of every chat; empty: each has its own.
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
	Openings []Opening
	// Own are the absolute files and folders on which this program depends, and
	// AuditLog is its log. No folder that is opened for changes may contain them.
	Own      []string
	AuditLog string
	// Private are the absolute folders and files with keys, tokens and the like. No
	// run may read them, or a folder that holds one.
	Private []string
	// Mode is what tools are told about the mode they run in; empty: "Global".
	Mode string
	// Context holds the user's values for context.* placeholders.
	Context map[string]string
	// Secrets are removed from the result and the record of every run; nil: none.
	Secrets *redact.Secrets
	// Limits are the limits of a run. If CPU is 0, it is the run's timeout.
	Limits sandbox.Limits

	// Together bounds all processes of a run together, where the machine can.
	Together sandbox.Together
	// TimeoutMax is the longest timeout that a tool can have; 0: no bound on what it
	// asks for.
	TimeoutMax time.Duration
}

// Elsewheres chooses the place of a run; see [Options].
type Elsewheres func(pack *packs.Pack, kind call.Kind, tool string) Elsewhere

// An Elsewhere is a place for runs other than this machine, with programs of its own.
type Elsewhere interface {
	// Place identifies the place, as answers are bound to it. An error says why no
	// program can run there, and is a [*sandbox.ConfineError].
	Place(context.Context) (sandbox.Place, error)
	// Layers is as in Options.
	Layers(ctx context.Context, folders []string) []sandbox.Layer
	// Lookup finds a program there. The pack's folder is there too, with its digest.
	Lookup(ctx context.Context, name, packDir, packDigest string) (program.Program, error)
	// Environ returns the variables that every program has there.
	Environ(context.Context) ([]string, error)
}

// elsewhere returns where a run happens and how that is named; nil: here.
func (p *Planner) elsewhere(ctx context.Context, c *Call, kind call.Kind, tool string) (Elsewhere, sandbox.Place, error) {
	if p.opts.Elsewhere == nil {
		return nil, sandbox.Place{}, nil
	}
	at := p.opts.Elsewhere(c.Pack, kind, tool)
	if at == nil {
		return nil, sandbox.Place{}, nil
	}
	place, err := at.Place(ctx)
	return at, place, err
}

// New returns a planner. It fails if the project, the workspace or a private path is
// in a place where runs would read more than they may.
func New(o Options) (*Planner, error) {
	if o.Layers == nil {
		o.Layers = func(context.Context, []string) []sandbox.Layer { return nil }
	}
	if o.Programs == nil {
		o.Programs = new(program.Lookuper)
	}
	if o.Secrets == nil {
		o.Secrets = redact.New()
	}
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
	if o.Workspace != "" && slices.ContainsFunc(o.Private, func(own string) bool { return within(own, paths.WithoutLinks(o.Workspace)) }) {
		return nil, fmt.Errorf("the workspace %q holds packs-mcp's own keys or tokens; name another folder", o.Workspace)
	}
	resolve := func(all []string) []string {
		out := make([]string, len(all))
		for i, path := range all {
			out[i] = paths.WithoutLinks(path)
		}
		return out
	}
	o.Own, o.Private, o.AuditLog = resolve(o.Own), resolve(o.Private), paths.WithoutLinks(o.AuditLog)
	if err := checkPrivate(o.Private); err != nil {
		return nil, err
	}
	return &Planner{opts: o, limits: o.Limits.WithDefaults(), homes: homes}, nil
}

// A Call is what a plan needs to know about one call.
type Call struct {
	Pack *packs.Pack  // the pack of the tool, or for which the command runs
	Tree *packfs.Tree // the pack's files, as they were digested; [Planner.Expand] does not need it
	// All are all packs, and Hides reports whether one must not be named.
	All   []*packs.Pack
	Hides func(*packs.Pack) bool
	// Workspace is the chat's folder, and Folder describes it as it was when the chat
	// began. OwnFolder says that it was made for this chat.
	Workspace string
	Folder    fs.FileInfo
	OwnFolder bool
	// Context is what the client says about its user's context. Filled is what a
	// person filled in, by the names of fields; nil: nobody was asked.
	Context, Filled map[string]string
}

// Expanded is a tool's command with its values filled in, as [Planner.Expand]
// returns it.
type Expanded struct {
	Invocation *tools.Invocation
	// Fields ask for what is not known yet; Missing says the same as an error.
	Fields  []call.Field
	Missing *tools.MissingContextError
}

// A Plan is a run for the gate to decide about.
type Plan struct {
	Run      call.Run
	Secrets  *redact.Secrets // what must not be in its result
	Unlogged *redact.Secrets // what must not be in the log

	unchanged func(byGrant bool) bool
	unmoved   func() bool // see permissions.unmoved
}

// Unchanged reports whether the files that an answer is bound to are as they were
// when the run was planned. With byGrant, these are the files of an answer for more
// than this call. It looks for the files again, as planning did. It also reports
// whether the paths that the run may read still lead to the same places. It checks
// nothing else.
func (p *Plan) Unchanged(byGrant bool) bool { return p.unmoved() && p.unchanged(byGrant) }

// Tool plans the run of a declared tool. Its errors are about what the call says or
// would use: [*FolderError], [*ForeignError], [ErrManyInputs], and those of packages
// program, packfs and sandbox.
func (p *Planner) Tool(ctx context.Context, c *Call, tool *tools.Tool, filled *Expanded) (*Plan, error) {
	inv := filled.Invocation
	dir, err := p.folder(c, inv.Cwd)
	if err != nil {
		return nil, err
	}
	usual, err := p.folder(c, tool.Command.UsualCwd)
	if err != nil {
		return nil, err
	}
	at, place, err := p.elsewhere(ctx, c, call.KindRun, tool.Name)
	if err != nil {
		return nil, err
	}
	may, err := p.permissions(ctx, c, at, call.KindRun, tool.Name, dir, tool.Policy)
	if err != nil {
		return nil, err
	}
	command, err := p.command(ctx, c, at, inv, dir, may)
	if err != nil {
		return nil, err
	}
	bound := command
	inputs, err := p.toolInputs(c, may, &bound, inv)
	if err != nil {
		return nil, err
	}
	unchanged := func(byGrant bool) bool {
		if !byGrant {
			return true // only an answer for more calls is bound to them
		}
		now, err := p.toolInputs(c, may, &bound, inv)
		return err == nil && now.same(inputs)
	}
	command.Join = tool.Output.Merged
	if tool.Command.SkillEnv {
		command.Env = sandbox.MergeEnv(command.Env, p.skillEnv(c.Pack))
	}
	secrets := p.opts.Secrets.With(slices.Concat(tool.DeclaredSecrets(inv.Values), may.secrets())...)
	// The log leaves out more than the result does: also values that are secrets by
	// their names alone.
	unlogged := secrets.With(tool.SecretValues(inv.Values)...)
	return &Plan{Secrets: secrets, Unlogged: unlogged, unchanged: unchanged, unmoved: may.unmoved(), Run: call.Run{
		Place: place, Tool: tool.Name, Definition: tool.Digest(), About: tool.Description,
		Command: command, UsualDir: dir == usual, Reads: inputs.files, OnceOnly: inputs.once, Policy: may.policy, Cache: tool.Policy.Cache, Project: may.project, Granted: may.granted,
		Env: may.shown(inv.Env), Logged: unlogged.LoggedArgs(command.Args), ReadOnly: tool.Policy.ReadOnly, DeclaresReadOnly: tool.Policy.DeclaresReadOnly,
	}}, nil
}

// Program plans the run of a program that the model chose, with its arguments. cwd is
// one of the words for folders; empty means the workspace. Its errors are those of
// [Planner.Tool].
func (p *Planner) Program(ctx context.Context, c *Call, name string, args []string, cwd string) (*Plan, error) {
	dir, err := p.folder(c, cwd)
	if err != nil {
		return nil, err
	}
	at, place, err := p.elsewhere(ctx, c, call.KindExec, "")
	if err != nil {
		return nil, err
	}
	may, err := p.permissions(ctx, c, at, call.KindExec, "", dir, tools.Policy{})
	if err != nil {
		return nil, err
	}
	command, err := p.command(ctx, c, at, &tools.Invocation{Program: name, Args: args}, dir, may)
	if err != nil {
		return nil, err
	}
	inputs, err := p.ownInputs(c, may, &command, true)
	if err != nil {
		return nil, err
	}
	unchanged := func(byGrant bool) bool {
		now, err := p.ownInputs(c, may, &command, byGrant)
		return err == nil && (now.same(inputs) || !byGrant && slices.Equal(now.files, inputs.files))
	}
	secrets := p.opts.Secrets.With(may.secrets()...)
	return &Plan{Secrets: secrets, Unlogged: secrets, unchanged: unchanged, unmoved: may.unmoved(), Run: call.Run{
		Place: place, Command: command, UsualDir: dir == c.Workspace, Inputs: inputs.files, Reads: inputs.reads, OnceOnly: inputs.once, Policy: may.policy, Project: may.project, Granted: may.granted,
		Logged: secrets.LoggedArgs(command.Args),
	}}, nil
}
