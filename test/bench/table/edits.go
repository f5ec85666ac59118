package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

const (
	toolsChanged     = "notifications/tools/list_changed"
	promptsChanged   = "notifications/prompts/list_changed"
	resourcesChanged = "notifications/resources/list_changed"
)

// measureEdits measures the time from an edit to the last notification about it.
func (b *bench) measureEdits() ([]*table, error) {
	t := &table{
		title: "An edit → list_changed at the client",
		about: fmt.Sprintf("Of one file of one pack, written where it is, until the last notification about it was read: of prompts and resources for the\n"+
			"description, of tools for a tool of an enabled pack. %d edits each, at random moments.", b.edits),
		head: []string{"", "median", "95 of 100", "most", "budget", ""},
	}
	// The system limits the watches of all of a user's programs.
	servers := b.servers
	b.servers = nil
	if err := servers.dismiss(); err != nil {
		return nil, err
	}
	for _, n := range b.sizes {
		if n < 1_000 && n != b.largest() {
			continue
		}
		documents, tools, polled, err := b.edit(n)
		if err != nil {
			return nil, err
		}
		if polled {
			t.about += "\nOf " + count(n) + " packs without the system's events, since it has no more watches: others have them."
		}
		var most budget
		switch n {
		case 1_000:
			most = budget{150, "150 ms"}
		case 10_000:
			most = budget{60, "60 ms"}
		}
		for _, kind := range []struct {
			name  string
			times times
		}{{"a description", documents}, {"a tool", tools}} {
			p95 := kind.times.at(95)
			t.add(append([]string{count(n) + " packs: " + kind.name, ms(kind.times.median()), ms(p95), ms(kind.times.at(100))}, most.cells(float64(p95)/1e6)...)...)
		}
	}
	return []*table{t}, nil
}

// edit edits packs, alternating between a document and a file with tools, and reports
// whether the server had to poll.
func (b *bench) edit(n int) (documents, tools times, polled bool, err error) {
	home, err := b.indexed(n)
	if err != nil {
		return nil, nil, false, err
	}
	how := b.serve(n, home)
	how.env = append(how.env, "PACKS_MCP_LOG_LEVEL=warn")
	c, err := b.start(how)
	if err != nil {
		return nil, nil, false, err
	}
	defer func() {
		err = errors.Join(err, c.stop())
		polled = strings.Contains(c.stderr.String(), "scanned at intervals")
	}()
	documents, tools, err = b.editAll(c, n)
	return documents, tools, false, err
}

// editAll makes all edits.
func (b *bench) editAll(c *client, n int) (documents, tools times, err error) {
	if _, err := c.open(); err != nil {
		return nil, nil, err
	}
	packs := b.packs[n]
	id, err := packs.id(0) // every fourth pack has tools, including this one
	if err != nil {
		return nil, nil, err
	}
	if _, _, err := c.call(toolOn, map[string]any{"pack_id": id}); err != nil {
		return nil, nil, err
	}
	for _, list := range []string{"tools/list", "prompts/list", "resources/list"} {
		if _, _, err := c.request(list, struct{}{}); err != nil {
			return nil, nil, err
		}
	}
	if err := b.pause(b.idle); err != nil {
		return nil, nil, err
	}
	enabled := filepath.Join(packs.made[0], "tools.json")
	for i := range b.edits {
		document := filepath.Join(packs.made[1+i*(n-1)/b.edits], "SKILL.md")
		for _, e := range []struct {
			file  string
			wants []string
			times *times
		}{{document, []string{promptsChanged, resourcesChanged}, &documents}, {enabled, []string{toolsChanged}, &tools}} {
			// At a random moment of the server's timers, and not immediately after the effects of the
			// previous edit.
			if err := b.pause(50*time.Millisecond + rand.N(100*time.Millisecond)); err != nil {
				return nil, nil, err
			}
			took, err := c.editOnce(e.file, i, e.wants)
			if err != nil {
				return nil, nil, err
			}
			*e.times = append(*e.times, took)
		}
	}
	return documents, tools, nil
}

// described matches the beginning of the description, in a document and in a file with
// tools.
var described = regexp.MustCompile(`("description":"|description: "?(?:>\n  )?)`)

// edited returns text with another first description.
func edited(text []byte, i int) ([]byte, error) {
	at := described.FindIndex(text)
	if at == nil {
		return nil, errors.New("it has no description")
	}
	changed := fmt.Appendf(text[:at[1]:at[1]], "edit %d ", i)
	return append(changed, text[at[1]:]...), nil
}

// editOnce changes the first description in a file, and waits for all expected
// notifications.
func (c *client) editOnce(file string, i int, wants []string) (time.Duration, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	changed, err := edited(text, i)
	if err != nil {
		return 0, fmt.Errorf("editing %q: %w", file, err)
	}
	for drained := false; !drained; {
		select {
		case <-c.notes:
		default:
			drained = true
		}
	}
	waiting := make(map[string]bool)
	for _, w := range wants {
		waiting[w] = true
	}
	begin := time.Now()
	if err := os.WriteFile(file, changed, 0o644); err != nil {
		return 0, err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case n := <-c.notes:
			if delete(waiting, n.method); len(waiting) == 0 {
				return n.at.Sub(begin), nil
			}
		case <-c.read:
			return 0, errors.New("the server ended after an edit")
		case <-late.C:
			return 0, fmt.Errorf("after an edit of %q, not all of %q came within %s", file, wants, patience)
		}
	}
}
