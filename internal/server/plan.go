package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// A planner turns a declared tool and its arguments, or a command that the model
// wrote, into the run that the gate decides about: its program, folder,
// environment, permissions and inputs. It knows neither MCP nor chats, asks
// nobody and starts nothing. It never changes.
type planner struct {
	opts   planOptions
	limits sandbox.Limits // of a run, with defaults
	homes  []string       // the user's home folder, as it is spelled and without links; empty: not known
}

// planOptions are what a planner is made of. They mean what they mean in
// [Options].
type planOptions struct {
	// Layers says how runs can change folders without writing to them.
	Layers   func(ctx context.Context, folders []string) []sandbox.Layer
	Programs *program.Lookuper
	// Workspace is the one workspace of every chat; empty: each has its own.
	Workspace    string
	Project, Dir string
	Environ      []string
	Openings     []Opening
	Own, Private []string
	AuditLog     string
	Mode         string
	Context      map[string]string
	Secrets      *redact.Secrets // what is in no result and no record of any run
	Limits       sandbox.Limits  // of a run; with no CPU, that is the run's timeout
	TimeoutMax   time.Duration
}

// newPlanner returns a planner. It is an error when the project, the workspace or
// what is private lies where runs would read more than they may.
func newPlanner(o planOptions) (*planner, error) {
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
	resolve := func(all []string) []string {
		out := make([]string, len(all))
		for i, path := range all {
			out[i] = withoutLinks(path)
		}
		return out
	}
	o.Own, o.Private, o.AuditLog = resolve(o.Own), resolve(o.Private), withoutLinks(o.AuditLog)
	if err := checkPrivate(o.Private); err != nil {
		return nil, err
	}
	return &planner{opts: o, limits: o.Limits.WithDefaults(), homes: homes}, nil
}

// checkPrivate makes sure that no run reads what is private because it lies where
// every run reads.
func checkPrivate(private []string) error {
	for _, path := range private {
		if everyRunReads(path) {
			return fmt.Errorf("%q is for packs-mcp alone, and in a folder of the system's, which every program of a pack may read; keep it elsewhere", path)
		}
	}
	return nil
}

// everyRunReads reports whether a path is in a folder of the system's that runs
// are shown. Of /etc, runs of root's get only what everybody may read.
func everyRunReads(path string) bool {
	if path == "" || !paths.IsSystem(path) {
		return false
	}
	if runtime.GOOS == "linux" && os.Getuid() == 0 && within(path, "/etc") {
		info, err := os.Stat(path)
		return err != nil || info.Mode()&0o004 != 0
	}
	return true
}

// A planCall is what one call has.
type planCall struct {
	Pack *packs.Pack
	Tree *packfs.Tree // the pack's files, when they were digested
	// All are the packs there are, and Hides reports whether one must not be named.
	All   []*packs.Pack
	Hides func(*packs.Pack) bool
	// Workspace is the chat's folder, Folder what it was when the chat began.
	// OwnFolder says that it was made for this chat.
	Workspace string
	Folder    fs.FileInfo
	OwnFolder bool
	// Context is what the client says of its user's context, and Filled what a
	// person filled in, by the names of fields; nil: nobody was asked.
	Context, Filled map[string]string
}

// expanded is a tool's command with the values filled in.
type expanded struct {
	Invocation *tools.Invocation
	// Fields ask for what nobody has said; Missing says the same as an error.
	Fields  []gate.Field
	Missing *tools.MissingContextError
}

// A plan is a run for the gate to decide about.
type plan struct {
	Run      gate.Run
	Secrets  *redact.Secrets // what must not be in its result
	Unlogged *redact.Secrets // what must not be in the log
}

// tool plans the run of a declared tool.
func (p *planner) tool(ctx context.Context, c *planCall, tool *tools.Tool, filled *expanded) (*plan, error) {
	inv := filled.Invocation
	dir, err := p.folder(c, inv.Cwd)
	if err != nil {
		return nil, err
	}
	usual, err := p.folder(c, tool.Command.UsualCwd)
	if err != nil {
		return nil, err
	}
	may, err := p.permissions(ctx, c, gate.KindRun, tool.Name, dir, tool.Policy)
	if err != nil {
		return nil, err
	}
	command, err := p.command(c, inv, dir, may)
	if err != nil {
		return nil, err
	}
	if err := deniedIn(c, &command); err != nil {
		return nil, err
	}
	inputs, err := p.toolInputs(c, may, &command, inv)
	if err != nil {
		return nil, err
	}
	command.Join = tool.Output.Merged
	if tool.Command.SkillEnv {
		command.Env = sandbox.MergeEnv(command.Env, p.skillEnv(c.Pack))
	}
	secrets := p.opts.Secrets.With(slices.Concat(tool.DeclaredSecrets(inv.Values), may.secrets())...)
	// The log leaves out more than the result: also what only has the name of a secret.
	unlogged := secrets.With(tool.SecretValues(inv.Values)...)
	return &plan{Secrets: secrets, Unlogged: unlogged, Run: gate.Run{
		Tool: tool.Name, Definition: tool.Digest(), About: tool.Description,
		Command: command, UsualDir: dir == usual, Reads: inputs.files, OnceOnly: inputs.once, Policy: may.policy, Cache: tool.Policy.Cache, Project: may.project, Granted: may.granted,
		Env: may.shown(inv.Env), Logged: unlogged.LoggedArgs(command.Args), ReadOnly: tool.Policy.ReadOnly,
	}}, nil
}

// program plans the run of a program that the model chose, with its arguments. Cwd
// is one of the words for folders; empty is the workspace.
func (p *planner) program(ctx context.Context, c *planCall, name string, args []string, cwd string) (*plan, error) {
	dir, err := p.folder(c, cwd)
	if err != nil {
		return nil, err
	}
	may, err := p.permissions(ctx, c, gate.KindExec, "", dir, tools.Policy{})
	if err != nil {
		return nil, err
	}
	command, err := p.command(c, &tools.Invocation{Program: name, Args: args}, dir, may)
	if err != nil {
		return nil, err
	}
	if err := deniedIn(c, &command); err != nil {
		return nil, err
	}
	inputs, err := p.ownInputs(c, may, &command)
	if err != nil {
		return nil, err
	}
	secrets := p.opts.Secrets.With(may.secrets()...)
	return &plan{Secrets: secrets, Unlogged: secrets, Run: gate.Run{
		Command: command, UsualDir: dir == c.Workspace, Inputs: inputs.files, Reads: inputs.reads, OnceOnly: inputs.once, Policy: may.policy, Project: may.project, Granted: may.granted,
		Logged: secrets.LoggedArgs(command.Args),
	}}, nil
}

// errManyInputs says that arguments name more files than an answer can be bound to.
var errManyInputs = errors.New("the arguments name too many files")

// A folderProblem is why a run may not have a folder.
type folderProblem int

const (
	folderOutside      folderProblem = iota // it is in no folder of the call's
	folderHoldsHome                         // the user's whole home is in it
	folderHoldsPrivate                      // keys or tokens of this program are in it
	folderUnusable                          // it is gone, or cannot be read
)

// A folderError says that a run may not have a folder.
type folderError struct {
	Folder  string
	Pack    string // whose folder it is; empty: the run works in it
	Problem folderProblem
}

func (e *folderError) Error() string {
	switch e.Problem {
	case folderHoldsHome:
		return fmt.Sprintf("the folder of pack %q holds the user's whole home folder, so no program may read it", e.Pack)
	case folderHoldsPrivate:
		what := "folder"
		if e.Pack != "" {
			what = "pack's folder"
		}
		return fmt.Sprintf("the %s %q holds keys or tokens of packs-mcp itself, so no program may read it", what, e.Folder)
	case folderUnusable:
		return fmt.Sprintf("the working folder %q cannot be used", e.Folder)
	}
	return fmt.Sprintf("the working folder %q is none of them", e.Folder)
}

// A foreignError says that a path leads into another pack than the call's.
type foreignError struct {
	Path, Own string
	Other     string // the other pack; empty: it must not be named
	Attached  bool   // the other pack can be called
}

func (e *foreignError) Error() string {
	switch {
	case e.Other == "":
		return fmt.Sprintf("%q belongs to a pack that cannot be used", e.Path)
	case !e.Attached:
		return fmt.Sprintf("%q belongs to pack %q, which is not attached, and not to pack %q", e.Path, e.Other, e.Own)
	}
	return fmt.Sprintf("%q belongs to pack %q, and not to pack %q", e.Path, e.Other, e.Own)
}
