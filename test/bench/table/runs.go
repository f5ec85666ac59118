package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"
)

// measureRuns measures runs of the program true.
func (b *bench) measureRuns() ([]*table, error) {
	c, err := b.company()
	if err != nil {
		return nil, err
	}
	run := func(p *place) func(int, *times) error {
		return func(_ int, t *times) error { return p.timed(toolCall, truth(), t) }
	}
	sync, done, err := b.syncs()
	if err != nil {
		return nil, err
	}
	defer done()
	ways := []*way{
		{name: "fork and exec of true, plain", do: plain},
		{name: "a run of true", do: run(c.ours), of: c.ours.client},
	}
	if c.quick != nil {
		ways = append(ways, &way{name: "a run of true, its log in memory", do: run(c.quick), of: c.quick.client})
	}
	ways = append(ways, &way{name: "a line of the log, written and synced", do: sync, apart: true})
	if err := turns(100, ways); err != nil {
		return nil, err
	}
	raw, _, err := c.ours.call(toolCall, truth())
	if err != nil {
		return nil, err
	}
	var r struct{ Sandbox string }
	if err := json.Unmarshal(raw, &r); err != nil {
		return nil, err
	}
	t := &table{
		title: "A run of /bin/true by a pack's tool",
		about: "Over stdio, from the call to its answer, under an answer for the chat: a copy of the pack, two lines of the log, confinement (level " + r.Sandbox +
			" here).\nIn turns; of 100 each. CPU: of the server without its helpers. make bench-sandbox has confinement alone, beside bubblewrap.",
		head: []string{"", "median", "95 of 100", "CPU", "over plain", "to plain", "budget", ""},
	}
	rows(t, ways)
	return []*table{t}, nil
}

// plain starts the program true, with two pipes as our runner does.
func plain(_ int, t *times) error {
	cmd := exec.Command("true")
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	begin := time.Now()
	err := cmd.Run()
	*t = append(*t, time.Since(begin))
	return err
}

// measureRates counts calls, made one or sixteen at a time.
func (b *bench) measureRates() ([]*table, error) {
	n := b.largest()
	c, err := b.company()
	if err != nil {
		return nil, err
	}
	type kind struct {
		name string
		do   func(i int) error
	}
	kinds := []kind{{"echo, a bare server", func(i int) error { return c.bare.echo(i, nil) }}}
	add := func(p *place, where string) {
		kinds = append(kinds, kind{"open_docs" + where, p.openDocs}, kind{"read_file" + where, p.readFile},
			kind{"a run of true" + where, func(int) error { return p.tellTruth() }})
	}
	add(c.ours, "")
	if c.quick != nil {
		add(c.quick, ", log in memory")
	}
	const rounds, each = 3, 500 * time.Millisecond
	rates := make(map[string]times) // as the time between two calls
	for range rounds {
		for _, k := range kinds {
			for _, at := range []int{1, 16} {
				between, err := rate(at, each, k.do)
				if err != nil {
					return nil, fmt.Errorf("%s, %d at a time: %w", k.name, at, err)
				}
				name := fmt.Sprint(k.name, at)
				rates[name] = append(rates[name], between)
			}
		}
	}
	t := &table{
		title: "Calls a second, of " + count(n) + " packs",
		about: "By one client over stdio, that makes the next call when it has the answer. The machine's processors do the client's work as well.\n" +
			"Of one chat, four programs run at a time.",
		head: []string{"", "1 at a time", "to echo", "16 at a time", "to echo"},
	}
	for _, k := range kinds {
		cells := []string{k.name}
		for _, at := range []int{1, 16} {
			m, base := rates[fmt.Sprint(k.name, at)].median(), rates[fmt.Sprint(kinds[0].name, at)].median()
			cells = append(cells, count(int(time.Second/m)), fmt.Sprintf("%.3f ×", ratio(base, m)))
		}
		t.add(cells...)
	}
	return []*table{t}, nil
}

// rate calls do from this many goroutines for a while, and returns the average time between
// two calls.
func rate(at int, while time.Duration, do func(i int) error) (time.Duration, error) {
	var calls atomic.Int64
	var failed atomic.Pointer[error]
	var all sync.WaitGroup
	begin := time.Now()
	for range at {
		all.Go(func() {
			for failed.Load() == nil && time.Since(begin) < while {
				if err := do(int(calls.Add(1))); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return time.Since(begin) / time.Duration(calls.Load()), nil
}
