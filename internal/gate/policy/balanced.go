package policy

import (
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// OnlyReads reports whether the request is a run that the policy balanced does not
// ask about once its pack is in use. It asks about a run that could do anything
// beyond reading its pack, the system and the project.
func (c *Case) OnlyReads() bool {
	r := c.Call
	if r.Kind != call.KindRun || !r.Lasting() || c.Always {
		return false
	}
	run, policy := r.Run, &r.Run.Policy
	return run.ReadOnly && run.DeclaresReadOnly &&
		r.Level() == sandbox.LevelFull &&
		policy.Network == sandbox.NetworkNone &&
		opensNothing(run) &&
		changesNothing(r) &&
		c.startsWhatWasApproved() &&
		!hides(r)
}

// opensNothing reports whether the user's configuration adds nothing to the run. A
// grant that cannot be given now counts as well, since it may become possible
// later.
func opensNothing(run *call.Run) bool {
	g, p := run.Granted, run.Policy
	return len(g.Env)+len(g.Unset)+len(g.Folders)+len(g.LeftOut) == 0 && g.Home == "" && !p.GitWrite
}

// changesNothing reports whether the run can change nothing but its cache and the
// workspace made for its chat. A folder of the user's would be a layer.
func changesNothing(r *call.Call) bool {
	p := r.Run.Policy
	return len(p.Layers) == 0 && !slices.ContainsFunc(p.Writable, func(dir string) bool { return dir != r.Workspace })
}

// startsWhatWasApproved reports whether the run starts only approved bytes of its
// pack and programs of the system. A program in the user's home, the project or the
// workspace is neither. The digest of a loose tool leaves out the files beside it,
// and without private copies the pack can change after it was approved.
func (c *Case) startsWhatWasApproved() bool {
	pack, p := c.Call.Pack, c.Call.Run.Command.Program
	if pack.Loose || !c.Copies || p.Shim != "" || len(p.Needs) > 0 {
		return false
	}
	approved := func(files ...string) bool {
		return !slices.ContainsFunc(files, func(file string) bool { return !paths.IsSystem(file) && !paths.Inside([]string{pack.Dir}, file) })
	}
	for _, i := range p.Interpreters {
		if !approved(i.Path, i.Resolved) {
			return false
		}
	}
	return approved(p.Path, p.Resolved)
}

// hides reports whether something that the program gets has invisible or misleading
// characters, whether it came from the caller or from what the client says about
// its user's context.
func hides(r *call.Call) bool {
	hidden := func(text string) bool { return safetext.Inspect([]byte(text)).Total() > 0 }
	return r.Hidden != "" || hidden(r.Arguments.Canonical()) || slices.ContainsFunc(r.Run.Command.Args, hidden) || slices.ContainsFunc(r.Run.Env, hidden)
}
