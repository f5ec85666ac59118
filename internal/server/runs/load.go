package runs

import (
	"cmp"
	"slices"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/quota"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// A load counts the programs that run, and the memory that is set aside for them, of each
// person and group in all of their chats.
type load struct {
	mu       sync.Mutex
	programs *quota.Tally
	memory   *quota.Tally // bytes
}

func newLoad(programs, memory quota.Limits) *load {
	return &load{programs: quota.New(programs), memory: quota.New(memory)}
}

// fits returns why a run may not start now, or nil. It sets nothing aside.
func (l *load) fits(req *gate.Request) *toolerr.Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.over(uses(req))
}

// take counts a run until release is called, once. If it may not start now, take says why.
func (l *load) take(req *gate.Request) (release func(), over *toolerr.Error) {
	program, memory := uses(req)
	l.mu.Lock()
	defer l.mu.Unlock()
	if over := l.over(program, memory); over != nil {
		return nil, over
	}
	l.programs.Add(program)
	l.memory.Add(memory)
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.programs.Remove(program)
		l.memory.Remove(memory)
	}, nil
}

// over is fits for the uses of a run. The caller holds mu.
func (l *load) over(program, memory quota.Use) *toolerr.Error {
	const hint = "Nothing was started. Call again when a program has ended, or tell the user."
	if e := l.programs.Over(program); e != nil {
		return toolerr.New(toolerr.CodeOverLimit, hint, "the limit for programs of %s that run at the same time is reached: %d (%s)", e.Who(), e.Most, e.Setting("runs"))
	}
	if e := l.memory.Over(memory); e != nil {
		return toolerr.New(toolerr.CodeOverLimit, hint, "the programs of %s may take %d MiB of memory together (%s); those that run may take %d, and this one %d",
			e.Who(), e.Most>>20, e.Setting("memory"), e.Used>>20, memory.Amount>>20)
	}
	return nil
}

// uses returns what a run counts as: one program, and as much memory as its limits let it
// take. Without a limit for all of its processes together, that is the limit of one.
func uses(req *gate.Request) (program, memory quota.Use) {
	program = quota.Use{Person: req.Caller.Person, Groups: slices.Clone(req.Caller.Groups), Amount: 1}
	memory = program
	memory.Amount = cmp.Or(req.Run.Policy.Together.Memory, req.Run.Policy.Limits.Memory)
	return program, memory
}
