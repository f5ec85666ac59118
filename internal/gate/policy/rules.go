package policy

import (
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// RuleCall returns the request as the rules see it.
func RuleCall(r *call.Request) rules.Call {
	asked := rules.Call{Pack: r.Pack.ID, Kind: string(r.Kind)}
	if r.Run != nil {
		p := r.Run.Command.Program
		asked.Tool = r.Run.Tool
		asked.Program = []string{p.Name, p.Path, p.Resolved}
		if p.Shim != "" {
			asked.Program = append(asked.Program, p.Shim)
		}
		asked.Bare = isBare(p)
		asked.Args = r.Run.Command.Args
		asked.Env = call.EnvNames(r.Run.Env)
		asked.Dir, asked.Usual = r.Run.Command.Dir, r.Run.UsualDir
		asked.Within = func(folder string) bool { return paths.Within(folder, asked.Dir) }
		asked.Folders = map[string]string{"workspace": r.Workspace, "pack_root": r.Pack.Dir, "project": r.Run.Project}
		asked.Stdin = len(r.Run.Command.Stdin) > 0
	}
	return asked
}

// isBare reports whether a program was asked for by its name alone.
func isBare(p program.Program) bool {
	for _, r := range p.Name {
		if r == '/' || r == '\\' || r == ':' {
			return false
		}
	}
	return p.Name != ""
}
