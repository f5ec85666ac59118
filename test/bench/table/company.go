package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	toolList = "capability_packs_list"
	toolOpen = "capability_packs_open_docs"
	toolRead = "capability_packs_read_file"
	toolOn   = "capability_packs_enable_tools"
	toolCall = "capability_packs_call_tool"
)

// A place is a server that is ready for calls, and the arguments for these.
type place struct {
	*client
	packs []string // ids of some packs
}

// placeOf starts a server with n packs, one of which has a tool that runs the program true,
// and has its user allow the calls to be measured. The log is in home, unless log names
// another file.
func (b *bench) placeOf(n int, log string) (*place, error) {
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	own := filepath.Join(home, "own", "truth")
	if err := os.MkdirAll(own, 0o755); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{
		"SKILL.md":   "---\nname: truth\ndescription: Runs true.\n---\nRuns true.\n",
		"tools.json": `{"tools":[{"name":"tell","description":"Runs true.","inputSchema":{"type":"object"},"command":{"program":"true"}}]}`,
	} {
		if err := os.WriteFile(filepath.Join(own, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	how := b.serve(n, home, filepath.Dir(own))
	if log != "" {
		how.env = append(how.env, "PACKS_MCP_AUDIT_PATH="+log)
	}
	c, err := b.start(how)
	if err != nil {
		return nil, err
	}
	p := &place{client: c}
	if err := p.settle(b, n); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return p, nil
}

// settle makes the first calls, which cause questions.
func (p *place) settle(b *bench, n int) error {
	if _, err := p.open(); err != nil {
		return err
	}
	const some = 10
	for i := range some {
		id, err := b.packs[n].id(i * (n / some))
		if err != nil {
			return err
		}
		p.packs = append(p.packs, id)
		if err := errors.Join(p.openDocs(i), p.readFile(i)); err != nil {
			return err
		}
	}
	if _, _, err := p.call(toolOn, map[string]any{"pack_id": "truth"}); err != nil {
		return err
	}
	return p.tellTruth()
}

// id returns the id of the pack that was written as number i.
func (c *collection) id(i int) (string, error) {
	dir := c.made[i]
	text, err := os.ReadFile(filepath.Join(dir, "SKILL.md"))
	if err != nil {
		return "", err
	}
	_, after, _ := strings.Cut(string(text), "name: ")
	name, _, _ := strings.Cut(after, "\n")
	above, err := filepath.Rel(c.root, filepath.Dir(dir))
	return filepath.ToSlash(filepath.Join(above, name)), err
}

func (p *place) openDocs(i int) error { return p.timed(toolOpen, p.pack(i), nil) }
func (p *place) readFile(i int) error {
	return p.timed(toolRead, map[string]any{"pack_id": p.packs[i%len(p.packs)], "path": "SKILL.md"}, nil)
}
func (p *place) pack(i int) map[string]any { return map[string]any{"pack_id": p.packs[i%len(p.packs)]} }

func (p *place) tellTruth() error {
	raw, _, err := p.call(toolCall, truth())
	if err != nil {
		return err
	}
	var r struct{ OK bool }
	if err := json.Unmarshal(raw, &r); err != nil || !r.OK {
		return fmt.Errorf("the run of true gave %.300s", raw)
	}
	return nil
}

func truth() map[string]any {
	return map[string]any{"pack_id": "truth", "tool": "tell", "arguments": map[string]any{}}
}

// bareClient starts a bare server.
func (b *bench) bareClient() (*client, error) {
	c, err := b.start(command{args: []string{b.bare}, env: os.Environ()})
	if err != nil {
		return nil, err
	}
	if _, err := c.open(); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// elsewhere returns a folder in memory, where syncing a log waits for no disk; empty if
// there is none.
func elsewhere() (dir string, remove func()) {
	dir, err := os.MkdirTemp("/dev/shm", "packs-bench-")
	if err != nil {
		return "", func() {}
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}

// A company is the set of servers to which calls are made.
type company struct {
	bare   *client
	ours   *place
	quick  *place // with its log in memory; nil if there is no such folder
	remove func()
}

// company returns the servers with the largest number of packs. They are started on first
// use and run until the end.
func (b *bench) company() (_ *company, err error) {
	if b.servers != nil {
		return b.servers, nil
	}
	n := b.largest()
	memory, remove := elsewhere()
	b.servers = &company{remove: remove}
	if b.servers.bare, err = b.bareClient(); err != nil {
		return nil, err
	}
	if b.servers.ours, err = b.placeOf(n, ""); err != nil {
		return nil, err
	}
	if memory != "" {
		if b.servers.quick, err = b.placeOf(n, filepath.Join(memory, "audit.jsonl")); err != nil {
			return nil, err
		}
	}
	// Wait until the servers are idle.
	return b.servers, b.pause(b.idle)
}

// dismiss stops the servers.
func (c *company) dismiss() (err error) {
	if c == nil {
		return nil
	}
	for _, p := range []*place{c.ours, c.quick} {
		if p != nil {
			err = errors.Join(err, p.stop())
		}
	}
	if c.bare != nil {
		err = errors.Join(err, c.bare.stop())
	}
	c.remove()
	return err
}
