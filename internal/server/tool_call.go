package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

const toolCall = basePrefix + "call_tool"

type callToolParams struct {
	PackID    string          `json:"pack_id"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Workspace string          `json:"workspace"`
}

func callTool() *baseTool {
	no, yes := false, true
	return &baseTool{
		name:        toolCall,
		title:       "Call a pack's tool",
		description: fixed("Call an enabled tool of a pack. The same as calling PACK__TOOL, for clients that do not show new tools."),
		input: `{"type":"object","properties":{"pack_id":{"type":"string"},` +
			`"tool":{"type":"string","description":"as declared or as listed"},` +
			`"arguments":{"type":"object","description":"as in the tool's signature"},` +
			`"workspace":{"type":"string","description":"handle that a run returned; new for another"}},"required":["pack_id","tool","arguments"],"additionalProperties":false}`,
		output:      anyEnvelopeSchema,
		annotations: mcp.ToolAnnotation{Title: "Call a pack's tool", ReadOnlyHint: &no, DestructiveHint: &yes, IdempotentHint: &no, OpenWorldHint: &yes},
		prepare:     (*Server).prepareCallTool,
	}
}

func (s *Server) prepareCallTool(ctx context.Context, c *call) (*action, error) {
	var p callToolParams
	if err := c.decode(&p); err != nil {
		return nil, err
	}
	if err := c.requireText("tool", p.Tool); err != nil {
		return nil, err
	}
	if p.PackID == "" {
		ref, err := oneTool(p.Tool, s.toolsNamed(c.catalog, c.chat, p.Tool))
		if err != nil {
			return nil, err
		}
		p.PackID, p.Tool = ref.pack, ref.tool
	}
	if err := s.runsIn(c, p.Workspace); err != nil {
		return nil, err
	}
	pack, err := s.pack(c, p.PackID)
	if err != nil {
		return nil, err
	}
	tool, err := s.enabledTool(c, pack, p.Tool)
	if err != nil {
		return nil, err
	}
	values, err := tool.Check(p.Arguments)
	if err != nil {
		return nil, err
	}
	inv, fields, err := s.expand(c, tool, values)
	if err != nil {
		return nil, err
	}
	facts, tree, err := s.factsAndTree(ctx, pack)
	if err != nil {
		return nil, err
	}
	dir, err := s.folder(c, pack, inv.Cwd)
	if err != nil {
		return nil, err
	}
	usual, err := s.folder(c, pack, tool.Command.UsualCwd)
	if err != nil {
		return nil, err
	}
	may, err := s.permissions(ctx, c, pack, gate.KindRun, tool.Name, dir, tool.Policy)
	if err != nil {
		return nil, err
	}
	command, err := s.command(c, pack, inv, dir, may)
	if err != nil {
		return nil, err
	}
	if err := deniedIn(tree, pack, &command); err != nil {
		return nil, err
	}
	inputs, err := s.toolInputs(c, pack, may, &command, inv)
	if err != nil {
		return nil, err
	}
	command.Join = tool.Output.Merged
	if tool.Command.SkillEnv {
		command.Env = sandbox.MergeEnv(command.Env, s.skillEnv(pack))
	}
	r := &run{
		server: s, call: c, pack: pack, output: tool.Output, allows: tool.Policy.Allows,
		secrets: slices.Concat(tool.DeclaredSecrets(inv.Values), may.secrets(), s.secrets),
	}
	// The log leaves out more than the result: also what only has the name of a secret.
	unlogged := slices.Concat(tool.SecretValues(inv.Values), r.secrets)
	return r.action(gate.Request{
		Caller: c.caller, Kind: gate.KindRun, Method: c.tool.name, Pack: facts,
		Arguments: c.arguments(p.Arguments), Logged: redactExec(tool.Redact(p.Arguments), unlogged), AlwaysAsk: tool.Policy.AlwaysAsk, Fields: fields,
		Workspace: c.in().workspace, Scratch: c.in().ownFolder,
		Run: &gate.Run{
			Tool: tool.Name, Definition: tool.Digest(), About: tool.Description,
			Command: command, UsualDir: dir == usual, Reads: inputs.files, OnceOnly: inputs.once, Policy: may.policy, Cache: tool.Policy.Cache, Project: may.project, Granted: may.granted,
			Env: may.shown(inv.Env), Logged: loggedArgs(command.Args, unlogged), ReadOnly: tool.Policy.ReadOnly,
		},
	}), nil
}

// enabledTool finds a tool by its declared or its listed name.
func (s *Server) enabledTool(c *call, pack *packs.Pack, name string) (*tools.Tool, error) {
	set, err := s.toolSet(pack)
	if err != nil {
		return nil, err
	}
	tool := set.Lookup(name)
	if ref, ok := c.chat.listedAs(name); ok && ref.pack == pack.ID {
		listed := set.Lookup(ref.tool)
		if tool != nil && tool != listed {
			return nil, failf(codeInvalidArguments, "Give the name of the one as it is declared, or of the other as it is listed.",
				"%q is the declared name of one tool of pack %q and the listed name of another, %q", name, pack.ID, ref.tool)
		}
		tool = listed
	}
	if tool == nil {
		meant := slices.DeleteFunc(s.toolsNamed(c.catalog, c.chat, name), func(ref toolRef) bool { return ref.pack != pack.ID })
		if len(meant) == 1 {
			tool = set.Lookup(meant[0].tool)
		}
	}
	if tool == nil {
		e := failf(codeNotFound, "Call capability_packs_enable_tools for the pack's tools.", "pack %q has no tool %q", pack.ID, name)
		e.Near = nearTools(name, set)
		return nil, e
	}
	if tool.Command == nil {
		return nil, failf(codeNotExecutable, "Read the pack's documents for how it is meant to be used.", "tool %q of pack %q is only declared: %s", tool.Name, pack.ID, tool.DeclaredOnly)
	}
	if !s.isEnabled(c, pack.ID, tool.Name) {
		return nil, failf(codeNotEnabled, "Call capability_packs_enable_tools with this pack_id first.", "tool %q of pack %q is not enabled in this chat", tool.Name, pack.ID)
	}
	return tool, nil
}

// fieldPrefix begins the name of a field that asks for a context value.
const fieldPrefix = "context_"

// expand fills the values into the tool's command. What the tool needs to know
// of the user's context, and nobody has said, is asked for in the question: as
// long as nobody has answered, a stand-in is in its place.
func (s *Server) expand(c *call, tool *tools.Tool, values tools.Values) (*tools.Invocation, []gate.Field, error) {
	known := s.contextFor(c)
	inv, err := tool.Expand(values, known)
	missing, ok := errors.AsType[*tools.MissingContextError](err)
	if !ok || c.filled != nil {
		return inv, nil, err
	}
	var fields []gate.Field
	for _, name := range missing.Names {
		field := gate.Field{Name: fieldPrefix + name, Title: "The " + name + " that the tool is to work on"}
		fields = append(fields, field)
		known[name] = gate.StandIn(field.Name)
		if strings.Contains(fmt.Sprint(values), known[name]) {
			return nil, nil, err // nobody could tell the two apart
		}
	}
	inv, again := tool.Expand(values, known)
	if again != nil {
		return nil, nil, err // no text will do; the caller can give a parameter
	}
	c.missing = missing
	return inv, fields, nil
}

// contextKey is where a client may say what its user looks at.
const contextKey = "packs-mcp/context"

// contextFor is what context.* placeholders stand for: what the client says
// with the call, before what the user configured. The working folder is ours to
// say.
func (s *Server) contextFor(c *call) tools.Context {
	ctx := make(tools.Context)
	maps.Copy(ctx, s.opts.Context)
	if c.meta != nil {
		if said, ok := c.meta.AdditionalFields[contextKey].(map[string]any); ok {
			for k, v := range said {
				if text, ok := v.(string); ok && text != "" {
					ctx[k] = text
				}
			}
		}
	}
	for field, value := range c.filled {
		ctx[strings.TrimPrefix(field, fieldPrefix)] = value
	}
	ctx["cwd"] = s.opts.Project
	if ctx["cwd"] == "" {
		ctx["cwd"] = c.in().workspace
	}
	return ctx
}

// folder is where a tool runs.
func (s *Server) folder(c *call, pack *packs.Pack, cwd string) (string, error) {
	switch cwd {
	case "", tools.CwdWorkspace:
		return c.in().workspace, nil
	case tools.CwdPackRoot:
		return pack.Dir, nil
	case tools.CwdProject:
		if s.opts.Project == "" {
			return c.in().workspace, nil
		}
		return s.opts.Project, nil
	}
	// A placeholder gave it, and the caller's values must not choose freely.
	clean := filepath.Clean(cwd)
	for _, root := range []string{c.in().workspace, s.opts.Project, pack.Dir} {
		if root == "" {
			continue
		}
		full := clean
		if !filepath.IsAbs(full) {
			full = filepath.Join(root, full)
		}
		resolved, err := filepath.EvalSymlinks(full)
		if err == nil && within(resolved, root) {
			return resolved, nil
		}
	}
	return "", failf(codePathDenied, "Name a folder inside the workspace, the project or the pack.", "the working folder %q is none of them", cwd)
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// command finds the program and gives it its environment.
func (s *Server) command(c *call, pack *packs.Pack, inv *tools.Invocation, dir string, may *permissions) (sandbox.Command, error) {
	exclude := []string{pack.Dir, c.in().workspace}
	program, err := s.lookup.Lookup(inv.Program, program.LookupOptions{
		Path: s.environ("PATH"), Exclude: exclude, PackDir: pack.Dir,
		Environ: s.opts.Environ, Dir: cmp.Or(s.opts.Project, s.opts.Dir),
	})
	if err != nil {
		return sandbox.Command{}, err
	}
	owner := s.owner(c, pack)
	for _, path := range programFiles(program) {
		if err := owner.refuse(path); err != nil {
			return sandbox.Command{}, err
		}
	}
	home := cmp.Or(may.granted.Home, c.in().workspace)
	base := sandbox.BaseEnv(s.opts.Environ, sandbox.EnvOptions{Home: home, Exclude: exclude})
	folder, err := os.Lstat(dir)
	if err != nil {
		return sandbox.Command{}, failf(codePathDenied, "Tell the user; the folder is gone or cannot be read.", "the working folder %q cannot be used", dir)
	}
	ours := []string{"PACKS_PACK_ID=" + pack.ID, "PACKS_PACK_DIR=" + pack.Dir, "PACKS_WORKSPACE=" + c.in().workspace}
	command := sandbox.Command{
		Program: program, Args: inv.Args, Dir: dir, Stdin: inv.Stdin,
		Env:       sandbox.MergeEnv(putFirst(base, program.PathDirs()), inv.Env, may.env, ours),
		Workspace: c.in().workspace, DirID: folder, WorkspaceID: c.in().folder,
	}
	return command, command.CheckSearch()
}

// putFirst returns env with dirs before the others of its PATH.
func putFirst(env, dirs []string) []string {
	if len(dirs) == 0 {
		return env
	}
	path := strings.Join(dirs, string(filepath.ListSeparator))
	if old := variable(env, "PATH"); old != "" {
		path += string(filepath.ListSeparator) + old
	}
	return sandbox.MergeEnv(env, []string{"PATH=" + path})
}

// skillEnv is what specs/skill-md-tools section 5.2 promises to tools.
func (s *Server) skillEnv(pack *packs.Pack) []string {
	return []string{
		"GIBBERISH_SKILL_NAME=" + strings.ReplaceAll(pack.Name, "\x00", ""),
		"GIBBERISH_SKILL_DIR=" + pack.Dir,
		"GIBBERISH_MODE=" + cmp.Or(s.opts.Mode, "Global"),
	}
}
