package main

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// startBudgets returns the design's budgets for a number of packs.
func startBudgets(n int, warm bool) (overBare, overWalk budget) {
	switch {
	case n == 100:
		overBare = budget{1.5, "1.5 × bare"}
	case n == 10_000 && warm:
		overWalk = budget{1.2, "1.2 × walk"}
	case n == 10_000:
		overWalk = budget{4, "4 × walk"}
	}
	return overBare, overWalk
}

// A subject is the measurements of one way to start.
type subject struct {
	wall, cpu times
	bytes     int // size of what a model gets
}

// measureStart measures the time from the start of a process to the answer of the first
// tools/list, and what a model has received by then.
func (b *bench) measureStart() ([]*table, error) {
	type key struct {
		n    int
		what string
	}
	all := make(map[key]*subject)
	of := func(n int, what string) *subject {
		k := key{n, what}
		if all[k] == nil {
			all[k] = new(subject)
		}
		return all[k]
	}
	cold := make(map[int]string)
	var err error
	for _, n := range b.sizes {
		if cold[n], err = b.home(); err != nil {
			return nil, err
		}
		if _, err := b.indexed(n); err != nil {
			return nil, err
		}
	}
	var bare subject
	for round := range b.rounds {
		if err := b.startOnce(command{args: []string{b.bare}, env: os.Environ()}, &bare, nil); err != nil {
			return nil, err
		}
		for _, n := range b.sizes {
			if n >= 5_000 && round%2 > 0 {
				continue // they take most of the time
			}
			w, err := b.walk(n)
			if err != nil {
				return nil, err
			}
			if err := os.RemoveAll(filepath.Join(cold[n], "index")); err != nil {
				return nil, err
			}
			process, inside := of(n, "process"), of(n, "inside")
			process.wall = append(process.wall, w.process)
			inside.wall, inside.cpu = append(inside.wall, w.inside), append(inside.cpu, w.cpu)
			err = errors.Join(
				b.startOnce(b.serve(n, cold[n]), of(n, "cold"), &of(n, "cold query").wall),
				b.startOnce(b.serve(n, b.ready[n]), of(n, "warm"), &of(n, "warm query").wall))
			if err != nil {
				return nil, err
			}
		}
	}

	t := &table{
		title: "Start → the answer of the first tools/list",
		about: "From the start of the process. Walk: filepath.WalkDir over the folders, and 4 KiB of each entry document, with one processor,\n" +
			"without the start of its process. In turns; median and least by the clock on the wall; CPU: all processors together, median.",
		head: []string{"", "median", "least", "CPU", "to bare", "to walk", "CPU to walk", "budget", ""},
	}
	row := func(name string, s, walk *subject, overBare, overWalk budget) {
		m := s.wall.median()
		cells := []string{name, ms(m), ms(s.wall.least()), ms(s.cpu.median()), fold(ratio(m, bare.wall.median()))}
		mark := overBare.cells(ratio(m, bare.wall.median()))
		if walk == nil {
			cells = append(cells, none, none)
		} else {
			cells = append(cells, fold(ratio(m, walk.wall.median())), fold(ratio(s.cpu.median(), walk.cpu.median())))
			if overBare.words == "" {
				mark = overWalk.cells(ratio(m, walk.wall.median()))
			}
		}
		t.add(append(cells, mark...)...)
	}
	row("a bare server", &bare, nil, budget{}, budget{})
	model := &table{
		title: "What a model gets before its first call",
		about: "Names, descriptions and input schemas of the tools, and the instructions, as JSON.",
		head:  []string{"", "bytes", "budget", ""},
	}
	first := &table{
		title: "The first query, right after that answer",
		about: "list {query}, of a server that has no index yet, or both of them: that of packs, and that for queries.",
		head:  []string{"", "median", "least", "budget", ""},
	}
	for _, n := range b.sizes {
		walk, packs := of(n, "inside"), count(n)+" packs"
		row(packs+": walk, in its own process", of(n, "process"), walk, budget{}, budget{})
		row(packs+": walk", walk, walk, budget{}, budget{})
		for _, way := range []string{"cold", "warm"} {
			overBare, overWalk := startBudgets(n, way == "warm")
			name := packs + ": first start, no index"
			if way == "warm" {
				name = packs + ": next start, with the index"
			}
			row(name, of(n, way), walk, overBare, overWalk)
			q := of(n, way+" query").wall
			first.add(append([]string{name, ms(q.median()), ms(q.least())}, firstQueryBudget(n).cells(float64(q.median())/1e6)...)...)
		}
		got := of(n, "warm").bytes
		model.add(append([]string{packs, count(got)}, budget{8 << 10, "8 KiB"}.cells(float64(got))...)...)
	}
	return []*table{t, model, first}, nil
}

// firstQueryBudget returns the budget, in milliseconds, of a query right after the start.
func firstQueryBudget(n int) budget {
	if n < 10_000 {
		return budget{}
	}
	return budget{10, "10 ms"}
}

// startOnce starts a server, and stops it once it has listed its tools or, if query is not
// nil, has answered one query.
func (b *bench) startOnce(how command, s *subject, query *times) (err error) {
	c, err := b.start(how)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.stop()) }()
	g, err := c.open()
	if err != nil {
		return err
	}
	s.wall = append(s.wall, g.took)
	s.cpu = append(s.cpu, cpuTime(c.cmd.Process.Pid))
	s.bytes, err = g.size()
	if query == nil || err != nil {
		return err
	}
	_, took, err := c.call("capability_packs_list", map[string]any{"query": "invoice refund"})
	*query = append(*query, took)
	return err
}

// size returns how many bytes of JSON a model gets from a greeting.
func (g *greeting) size() (int, error) {
	n := 0
	add := func(v any) error {
		raw, err := strictjson.Encode(v)
		n += len(raw)
		return err
	}
	err := add(g.instructions)
	for _, t := range g.tools {
		err = errors.Join(err, add(t))
	}
	return n, err
}

// memory is a process's resident memory in bytes; all 0 if unknown.
type memory struct{ anonymous, file, peak int64 }

func (m memory) resident() int64 { return m.anonymous + m.file }

// measureMemory measures the memory of servers after they have listed their tools, and after
// an idle period.
func (b *bench) measureMemory() ([]*table, error) {
	t := &table{
		title: "Memory",
		about: "Resident: anonymous + of files, which is the program itself. At the answer of the first tools/list, and " + b.idle.String() + " later.\n" +
			"Peak: the most that was resident at any time until then.",
		head: []string{"", "at the answer", "", "idle", "", "peak", "idle, to bare", "budget", ""},
	}
	type running struct {
		name   string
		client *client
		atOnce memory
		budget budget
	}
	var all []running
	defer func() {
		for _, r := range all {
			_ = r.client.stop()
		}
	}()
	begin := func(name string, how command, most budget) error {
		c, err := b.start(how)
		if err != nil {
			return err
		}
		all = append(all, running{name: name, client: c, budget: most})
		if _, err := c.open(); err != nil {
			return err
		}
		all[len(all)-1].atOnce = memoryOf(c.cmd.Process.Pid)
		// Wait, so that the next server is not measured while this one prepares to serve.
		return b.pause(time.Second)
	}
	if err := begin("a bare server", command{args: []string{b.bare}, env: os.Environ()}, budget{}); err != nil {
		return nil, err
	}
	for _, n := range b.sizes {
		warm, err := b.indexed(n)
		if err != nil {
			return nil, err
		}
		cold, err := b.home()
		if err != nil {
			return nil, err
		}
		var most budget
		if n == 10_000 {
			most = budget{32 << 20, "32 MiB"}
		}
		err = errors.Join(
			begin(count(n)+" packs: first start", b.serve(n, cold), most),
			begin(count(n)+" packs: next start", b.serve(n, warm), most))
		if err != nil {
			return nil, err
		}
	}
	if err := b.pause(b.idle); err != nil {
		return nil, err
	}
	var bare int64
	for _, r := range all {
		idle := memoryOf(r.client.cmd.Process.Pid)
		if bare == 0 {
			bare = idle.resident()
		}
		t.add(append([]string{
			r.name, mib(r.atOnce.resident()), r.atOnce.parts(), mib(idle.resident()), idle.parts(), mib(idle.peak),
			fold(ratio(time.Duration(idle.resident()), time.Duration(bare))),
		}, r.budget.cells(float64(max(r.atOnce.resident(), idle.resident())))...)...)
	}
	return []*table{t}, nil
}

func (m memory) parts() string {
	if m.resident() == 0 {
		return none
	}
	return mib(m.anonymous) + " + " + mib(m.file)
}
