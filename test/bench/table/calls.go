package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"time"
)

// queryBudget returns the budget of a query in milliseconds.
func queryBudget(n int) budget {
	if n < 10_000 {
		return budget{}
	}
	return budget{5, "5 ms"}
}

// timed calls a tool and records the time.
func (c *client) timed(tool string, args map[string]any, t *times) error {
	_, took, err := c.call(tool, args)
	if err == nil && t != nil {
		*t = append(*t, took)
	}
	return err
}

// A way is one of several alternatives that are measured in turns.
type way struct {
	name   string
	do     func(i int, t *times) error
	budget func(own, base times) []string
	apart  bool    // not comparable with the first
	of     *client // whose processor time to report; nil: nobody's
	times  times
	cpu    times
}

// turns runs each way n times, in changing order.
func turns(n int, ways []*way) error {
	for i := range n {
		for k := range ways {
			w := ways[(k+i)%len(ways)]
			before := w.of.cpu()
			if err := w.do(i, &w.times); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			w.cpu = append(w.cpu, w.of.cpu()-before)
		}
	}
	return nil
}

// rows adds the results of turns to a table: median, 95th percentile, the server's processor
// time, and the ratio to the first way.
func rows(t *table, ways []*way) {
	base := ways[0].times
	for _, w := range ways {
		mark := []string{"", ""}
		if w.budget != nil {
			mark = w.budget(w.times, base)
		}
		over, to := none, none
		if !w.apart {
			over, to = ms(w.times.median()-base.median()), fold(ratio(w.times.median(), base.median()))
		}
		t.add(append([]string{w.name, ms(w.times.median()), ms(w.times.at(95)), ms(w.cpu.median()), over, to}, mark...)...)
	}
}

// echo calls the bare server's first tool.
func (c *client) echo(_ int, t *times) error {
	return c.timed("one", map[string]any{"text": "hello"}, t)
}

// syncs returns a function that writes a line as long as one of the log, and syncs it as the
// log does.
func (b *bench) syncs() (do func(int, *times) error, done func(), err error) {
	f, err := os.CreateTemp(b.dir, "sync-")
	if err != nil {
		return nil, nil, err
	}
	line := bytes.Repeat([]byte("x"), 600)
	return func(_ int, t *times) error {
		begin := time.Now()
		_, err := f.Write(line)
		err = errors.Join(err, f.Sync())
		*t = append(*t, time.Since(begin))
		return err
	}, func() { _ = f.Close() }, nil
}

// measureCalls measures calls that start no program, one at a time.
func (b *bench) measureCalls() ([]*table, error) {
	n := b.largest()
	c, err := b.company()
	if err != nil {
		return nil, err
	}
	sync, done, err := b.syncs()
	if err != nil {
		return nil, err
	}
	defer done()
	over := func(own, base times) []string {
		return budget{0.5, "0.5 ms over echo"}.cells(float64(own.median()-base.median()) / 1e6)
	}
	query := func(own, _ times) []string { return queryBudget(n).cells(float64(own.median()) / 1e6) }
	open := func(p *place) func(int, *times) error {
		return func(i int, t *times) error { return p.timed(toolOpen, p.pack(i), t) }
	}
	read := func(p *place) func(int, *times) error {
		return func(i int, t *times) error {
			return p.timed(toolRead, map[string]any{"pack_id": p.packs[i%len(p.packs)], "path": "SKILL.md"}, t)
		}
	}
	find := func(words string) func(int, *times) error {
		return func(_ int, t *times) error { return c.ours.timed(toolList, map[string]any{"query": words}, t) }
	}
	var first times
	if err := find("deploy pipeline")(0, &first); err != nil {
		return nil, err
	}
	ways := []*way{
		{name: "echo, a bare server", do: c.bare.echo, of: c.bare},
		{name: "open_docs", do: open(c.ours), of: c.ours.client, budget: over},
		{name: "read_file", do: read(c.ours), of: c.ours.client},
		{name: "a page of list", do: func(_ int, t *times) error { return c.ours.timed(toolList, map[string]any{}, t) }, of: c.ours.client},
		{name: "list {query}: a word", do: find("invoice"), of: c.ours.client, budget: query},
		{name: "list {query}: a letter wrong", do: find("invioce"), of: c.ours.client, budget: query},
		{name: "list {query}: five words, two wrong", do: find("deplyo pipelin for the custmer"), of: c.ours.client, budget: query},
		{name: "a line of the log, written and synced", do: sync, apart: true},
	}
	if c.quick != nil {
		ways = append(ways,
			&way{name: "open_docs, its log in memory", do: open(c.quick), of: c.quick.client, budget: over},
			&way{name: "read_file, its log in memory", do: read(c.quick), of: c.quick.client})
	}
	if err := turns(200, ways); err != nil {
		return nil, err
	}
	t := &table{
		title: "Calls, one at a time, of " + count(n) + " packs",
		about: "Over stdio, until the last byte of the answer was read; under answers for the chat, so nobody is asked. In turns; of 200 each. CPU: of the server.",
		head:  []string{"", "median", "95 of 100", "CPU", "over echo", "to echo", "budget", ""},
	}
	rows(t, ways)
	idle := ms(first.median())
	t.add(append([]string{"list {query}: the first, after a pause", idle, none, none, none, none}, query(first, nil)...)...)
	return []*table{t}, nil
}
