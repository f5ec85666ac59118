package churn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/test/served"
)

const (
	listTool   = "capability_packs_list"
	openDocs   = "capability_packs_open_docs"
	readFile   = "capability_packs_read_file"
	enableTool = "capability_packs_enable_tools"
	callTool   = "capability_packs_call_tool"
)

// A ran is a program whose end was reported to a client.
type ran struct {
	id, stdout string
	pack       *pack
}

// A reader is a client that keeps using packs, whatever happens to them.
type reader struct {
	*served.Client
	r     *rand.Rand
	packs []*pack // all packs that ever exist, by id
	hot   []*pack // those that change most
	own   []*pack // whose tools it enables

	answers map[string]int // :: tool, and code of the error → how often
	runs    []ran
	last    map[string]int // :: pack → generation of the last description it was told
	wrong   []string       // impossible answers

	mu     sync.Mutex
	relist int
	lists  lists // the last lists that it got, after a notification
}

// lists are a client's copies of a server's lists.
type lists struct{ Tools, Prompts, Resources string }

func newReader(c *served.Client, all, hot []*pack, n int) *reader {
	r := &reader{Client: c, r: rand.New(rand.NewPCG(uint64(n), 4)), packs: all, hot: hot, own: slices.Clone(hot), answers: make(map[string]int), last: make(map[string]int)}
	for i := n; i < len(all); i += 11 {
		if !slices.Contains(hot, all[i]) {
			r.own = append(r.own, all[i])
		}
	}
	return r
}

func (r *reader) bad(format string, args ...any) {
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

// read uses packs until ctx ends, or something is wrong.
func (r *reader) read(ctx context.Context) {
	// At least a few of each, however slow the machine is.
	for i := range 5 {
		r.enable(ctx, r.own[i])
		r.run(ctx, r.own[i])
		r.open(ctx, r.own[i])
		r.file(ctx, r.own[i])
	}
	r.list(ctx)
	for ctx.Err() == nil && len(r.wrong) < 5 {
		p := pick(r.r, r.packs, r.hot)
		switch r.r.IntN(16) {
		case 0:
			r.list(ctx)
		case 1, 2:
			r.search(ctx, p)
		case 3, 4:
			r.open(ctx, p)
		case 5, 6:
			r.file(ctx, p)
		case 7, 8:
			r.enable(ctx, pick(r.r, r.own, r.hot))
		default:
			r.run(ctx, pick(r.r, r.own, r.hot))
		}
	}
}

// expected reports whether changing packs can cause an error.
func expected(code string) bool {
	return slices.Contains([]string{
		"not_found", "not_attached", "not_enabled", "invalid_tools", "path_denied", "denied", "program_not_found",
	}, code)
}

// ask calls a tool, and reports whether it succeeded.
func (r *reader) ask(ctx context.Context, tool string, args map[string]any, v any) bool {
	a, err := r.Call(context.WithoutCancel(ctx), tool, args)
	if err != nil {
		r.bad("%v", err)
		return false
	}
	key := strings.TrimPrefix(tool, "capability_packs_")
	if a.Code != "" {
		key += " " + a.Code
	}
	r.answers[key]++
	if a.Code != "" {
		if !expected(a.Code) {
			r.bad("%s %v = %s, %s", tool, args, a.Code, a.Message)
		}
		return false
	}
	if err := a.Into(v); err != nil {
		r.bad("%v", err)
		return false
	}
	return true
}

type listed struct {
	PackID       string `json:"pack_id"`
	Description  string
	HasToolsJSON bool     `json:"has_tools_json"`
	Enabled      []string `json:"enabled"`
	Problems     []string
}

type page struct {
	Packs      []listed
	NextCursor string `json:"next_cursor"`
}

// list looks through all pages.
func (r *reader) list(ctx context.Context) {
	cursor, before := "", ""
	for {
		args := map[string]any{}
		if cursor != "" {
			args["cursor"] = cursor
		}
		var got page
		if !r.ask(ctx, listTool, args, &got) {
			return
		}
		for _, l := range got.Packs {
			if l.PackID <= before {
				r.bad("%q is listed behind %q", l.PackID, before)
			}
			before = l.PackID
			r.listed(l)
		}
		if cursor = got.NextCursor; cursor == "" {
			return
		}
	}
}

func (r *reader) search(ctx context.Context, p *pack) {
	var got page
	if r.ask(ctx, listTool, map[string]any{"query": p.name}, &got) {
		for _, l := range got.Packs {
			r.listed(l)
		}
	}
}

// listed checks one pack of a list.
func (r *reader) listed(l listed) {
	i, found := slices.BinarySearchFunc(r.packs, l.PackID, func(p *pack, id string) int { return strings.Compare(p.id, id) })
	if !found {
		r.bad("there never was a pack %q", l.PackID)
		return
	}
	p := r.packs[i]
	p.mu.Lock()
	gen, known := p.told[l.Description]
	p.mu.Unlock()
	switch {
	case !known:
		r.bad("%s was never described as %q", p.id, l.Description)
	case gen < r.last[p.id]:
		r.bad("%s is generation %d, and was %d before", p.id, gen, r.last[p.id])
	case p.kind == whole && len(l.Problems) == 0 && !p.everHad(l.HasToolsJSON, gen):
		r.bad("generation %d of %s is said to have tools: %v", gen, p.id, l.HasToolsJSON)
	}
	r.last[p.id] = gen
}

type file struct {
	Path, Content string
	Truncated     bool
}

func (r *reader) open(ctx context.Context, p *pack) {
	var got struct {
		EntryDoc file `json:"entry_doc"`
	}
	if !r.ask(ctx, openDocs, map[string]any{"pack_id": p.id}, &got) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.opened[got.EntryDoc.Content]; !known {
		r.bad("the document of %s never was %q", p.id, got.EntryDoc.Content)
	}
}

func (r *reader) file(ctx context.Context, p *pack) {
	var got file
	if !r.ask(ctx, readFile, map[string]any{"pack_id": p.id, "path": "data.txt"}, &got) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.data[got.Content] {
		r.bad("data.txt of %s never was %q", p.id, got.Content)
	}
}

// enable enables what a pack has.
func (r *reader) enable(ctx context.Context, p *pack) {
	var got struct {
		Tools []struct{ Tool, Description string }
	}
	if !r.ask(ctx, enableTool, map[string]any{"pack_id": p.id}, &got) || p.kind != whole {
		return
	}
	for _, t := range got.Tools {
		if t.Description != got.Tools[0].Description {
			r.bad("the tools of %s are of two generations: %v", p.id, got.Tools)
		}
	}
	if gen, ok := generation(got.Tools[0].Description); !ok || len(got.Tools) == 2 != hasMore(gen) {
		r.bad("generation %d of %s has the tools %v", gen, p.id, got.Tools)
	}
}

func generation(text string) (int, bool) {
	m := regexp.MustCompile(`^Says generation (\d+)\.`).FindStringSubmatch(text)
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

func (r *reader) run(ctx context.Context, p *pack) {
	var got struct {
		RunID  string `json:"run_id"`
		Stdout string
	}
	if r.ask(ctx, callTool, map[string]any{"pack_id": p.id, "tool": "say", "arguments": map[string]any{}}, &got) {
		r.runs = append(r.runs, ran{got.RunID, got.Stdout, p})
	}
}

// follow lists again after each notification, as clients do, until ctx ends.
func (r *reader) follow(ctx context.Context) error {
	heard := make(map[string]int)
	for {
		// Read this before asking: later changes are notified again.
		next := make(map[string]int)
		for _, what := range []string{"tools", "prompts", "resources"} {
			method := "notifications/" + what + "/list_changed"
			next[what] = r.Heard(method)
		}
		now, err := r.listAll(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			// The library cancels the context of each of its requests. Very rarely, the next request
			// on the same connection reports that as its own error, which no server can cause.
			if errors.Is(err, context.Canceled) {
				continue
			}
			return err
		}
		r.mu.Lock()
		r.relist++
		for what, field := range map[string][2]*string{
			"tools": {&r.lists.Tools, &now.Tools}, "prompts": {&r.lists.Prompts, &now.Prompts}, "resources": {&r.lists.Resources, &now.Resources},
		} {
			// Only lists that it was notified of; the first time, all of them.
			if len(heard) == 0 || next[what] != heard[what] {
				*field[0] = *field[1]
			}
		}
		r.mu.Unlock()
		heard = next
		select {
		case <-r.Wake():
		case <-ctx.Done():
			return nil
		}
	}
}

// kept returns the client's lists, updated by notifications.
func (r *reader) kept() lists {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lists
}

// listAll requests all lists, and returns them as text.
func (r *reader) listAll(ctx context.Context) (lists, error) {
	ctx, cancel := context.WithTimeout(ctx, served.Patience)
	defer cancel()
	tools, err := r.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return lists{}, fmt.Errorf("listing tools: %w", err)
	}
	prompts, err := r.ListPrompts(ctx, mcp.ListPromptsRequest{})
	if err != nil {
		return lists{}, fmt.Errorf("listing prompts: %w", err)
	}
	resources, err := r.ListResources(ctx, mcp.ListResourcesRequest{})
	if err != nil {
		return lists{}, fmt.Errorf("listing resources: %w", err)
	}
	var errs []error
	text := func(v any) string {
		b, err := json.MarshalIndent(v, "", " ")
		errs = append(errs, err)
		return string(b)
	}
	out := lists{text(tools.Tools), text(prompts.Prompts), text(resources.Resources)}
	return out, errors.Join(errs...)
}

// packsNow returns all packs as listed, without the chat's enabled tools.
func (r *reader) packsNow(ctx context.Context) ([]listed, error) {
	var all []listed
	for cursor := ""; ; {
		args := map[string]any{}
		if cursor != "" {
			args["cursor"] = cursor
		}
		a, err := r.Call(ctx, listTool, args)
		var got page
		if err == nil {
			err = a.Into(&got)
		}
		if err != nil || a.Code != "" {
			return nil, errors.Join(err, errors.New(a.Message))
		}
		for _, l := range got.Packs {
			l.Enabled = nil
			all = append(all, l)
		}
		if cursor = got.NextCursor; cursor == "" {
			return all, nil
		}
	}
}
