// Package tour is an MCP client that uses packs the way a model would, so that
// a person at a terminal can watch: names and descriptions first, then a
// document, a file, the tools, and a run.
//
// It talks to a server over a pair of streams like any other client, and every call
// is approved like any other. It decides nothing and prints nothing; a [Guide] does
// both.
package tour

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// A Guide shows the tour to a person and asks them.
type Guide interface {
	// Stage begins one of the five stages.
	Stage(number int, title string)
	// Met shows what a model has from the start.
	Met(protocol string, tools []string, instructions string)
	// Tell says something about what happens.
	Tell(text string)
	// Calling shows a call that is about to be made, or asked about.
	Calling(tool string, arguments map[string]any)
	// Result shows the result of a call: its JSON, decoded.
	Result(result map[string]any, failed bool)
	// Ask puts a question of the server to the person and returns the value of the
	// choice they made; empty if there is nobody to ask. Any other value is a denial.
	Ask(ctx context.Context, question string, choices []Choice) string
	// Value asks for a required argument of a tool; ok is false if there is nobody to
	// ask.
	Value(ctx context.Context, name, about string) (value string, ok bool)
}

// A Choice is one answer to a question.
type Choice struct {
	Value string
	Title string
}

// Options choose what the tour visits.
type Options struct {
	Version string
	// Pack is the id of the pack to visit; empty: the first that has tools, or
	// else the first.
	Pack string
	// Tools are the tools to run, by declared name; empty: the first that needs
	// no arguments, or else the first.
	Tools []string
}

// ErrNoPacks is returned when the server has no packs to visit.
var ErrNoPacks = errors.New("there are no packs to try")

type visitor struct {
	client   *client.Client
	guide    Guide
	opts     Options
	announce func() // shows the current call, the first time it is called
}

// Take visits a server over its streams: in is what the server writes, out is what it
// reads. It closes out. An error is a failure of the tour itself; calls that the
// server or the person refused are shown, and are not errors.
func Take(ctx context.Context, in io.Reader, out io.WriteCloser, guide Guide, o Options) (err error) {
	v := &visitor{guide: guide, opts: o, announce: func() {}}
	c := client.NewClient(
		transport.NewIO(in, out, io.NopCloser(strings.NewReader(""))),
		client.WithElicitationHandler(asker{v}),
	)
	v.client = c
	if err := c.Start(ctx); err != nil {
		return fmt.Errorf("starting the client: %w", err)
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	pack, err := v.meet(ctx)
	if err != nil {
		return err
	}
	return v.visit(ctx, pack)
}

// meet connects and lists what a model has before it asks for anything.
func (v *visitor) meet(ctx context.Context) (map[string]any, error) {
	v.guide.Stage(1, "Metadata: what the model knows from the start")
	init, err := v.client.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ClientInfo: mcp.Implementation{Name: "packs-mcp-try", Version: v.opts.Version},
	}})
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	names, err := v.toolNames(ctx)
	if err != nil {
		return nil, err
	}
	v.guide.Met(init.ProtocolVersion, names, init.Instructions)
	listed, failed, err := v.call(ctx, "capability_packs_list", map[string]any{})
	if err != nil {
		return nil, err
	}
	all := objects(listed["packs"])
	if failed || len(all) == 0 {
		return nil, ErrNoPacks
	}
	pick := func(want func(map[string]any) bool) map[string]any {
		if i := slices.IndexFunc(all, want); i >= 0 {
			return all[i]
		}
		return nil
	}
	if v.opts.Pack != "" {
		p := pick(func(p map[string]any) bool { return p["pack_id"] == v.opts.Pack })
		if p == nil {
			return nil, fmt.Errorf("no pack is called %q", v.opts.Pack)
		}
		return p, nil
	}
	if p := pick(func(p map[string]any) bool { return p["has_tools_json"] == true }); p != nil {
		return p, nil
	}
	return all[0], nil
}

// visit opens a pack, reads a file, enables tools and runs them.
func (v *visitor) visit(ctx context.Context, pack map[string]any) error {
	id, _ := pack["pack_id"].(string)
	v.guide.Stage(2, "Documents: the model opens the pack it finds relevant")
	opened, failed, err := v.call(ctx, "capability_packs_open_docs", map[string]any{"pack_id": id})
	if err != nil {
		return err
	}
	doc := ""
	if entry, ok := opened["entry_doc"].(map[string]any); ok && !failed {
		doc, _ = entry["content"].(string)
	}

	v.guide.Stage(3, "Files: it reads what the document points to")
	if err := v.read(ctx, id, doc); err != nil {
		return err
	}

	v.guide.Stage(4, "Tools: it asks for them when it needs to do something")
	if pack["has_tools_json"] != true {
		v.guide.Tell("This pack has no tools, so stages 4 and 5 have nothing to show.")
		return nil
	}
	before, err := v.toolNames(ctx)
	if err != nil {
		return err
	}
	enabled, failed, err := v.call(ctx, "capability_packs_enable_tools", map[string]any{"pack_id": id})
	if err != nil || failed {
		return err
	}
	names, err := v.toolNames(ctx)
	if err != nil {
		return err
	}
	added := slices.DeleteFunc(names, func(name string) bool { return slices.Contains(before, name) })
	v.guide.Tell("New in its list of tools: " + strings.Join(added, ", ") + ".")

	v.guide.Stage(5, "Runs: each one is approved, and written down")
	return v.run(ctx, objects(enabled["tools"]))
}

// mentioned finds texts in a document that look like paths of files.
var mentioned = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`[A-Za-z0-9_][A-Za-z0-9_./-]*\.[A-Za-z0-9]+`)
})

// read reads the first file that the document mentions and the pack has, or
// lists the pack.
func (v *visitor) read(ctx context.Context, id, doc string) error {
	tried := make(map[string]bool)
	for _, path := range mentioned().FindAllString(doc, 50) {
		if !strings.Contains(path, "/") || tried[path] {
			continue
		}
		tried[path] = true
		_, failed, err := v.try(ctx, "capability_packs_read_file", map[string]any{"pack_id": id, "path": path}, "not_found")
		if err != nil {
			return err
		}
		if !failed {
			return nil
		}
	}
	_, _, err := v.call(ctx, "capability_packs_read_file", map[string]any{"pack_id": id, "path": "."})
	return err
}

// run runs the chosen tools, and reads what they made.
func (v *visitor) run(ctx context.Context, enabled []map[string]any) error {
	listed, err := v.client.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return fmt.Errorf("listing tools: %w", err)
	}
	for _, name := range v.choose(enabled, listed.Tools) {
		i := slices.IndexFunc(listed.Tools, func(t mcp.Tool) bool { return t.Name == name })
		if i < 0 {
			return fmt.Errorf("the server does not list %q", name)
		}
		args, ok := v.arguments(ctx, listed.Tools[i])
		if !ok {
			v.guide.Tell(fmt.Sprintf("%s needs arguments, and there is nobody to give them.", name))
			continue
		}
		ran, _, err := v.call(ctx, name, args)
		if err != nil {
			return err
		}
		if made := firstMade(objects(ran["artifacts"])); made != "" {
			v.guide.Tell("The run left a file in the workspace; the model can read it.")
			if _, _, err := v.call(ctx, "capability_packs_read_file", map[string]any{"pack_id": "workspace", "path": made}); err != nil {
				return err
			}
		}
	}
	return nil
}

// firstMade returns the path of the first file that a program made itself; empty if
// there is none. Output that was too long for the result is also kept in a file.
func firstMade(artifacts []map[string]any) string {
	for _, a := range artifacts {
		if path, _ := a["path"].(string); !strings.HasPrefix(path, ".packs-mcp/") {
			return path
		}
	}
	return ""
}

// choose returns the listed names of the tools to run.
func (v *visitor) choose(enabled []map[string]any, listed []mcp.Tool) []string {
	var names, simple []string
	for _, e := range enabled {
		name, _ := e["name"].(string)
		declared, _ := e["tool"].(string)
		if slices.Contains(v.opts.Tools, declared) {
			names = append(names, name)
		}
		i := slices.IndexFunc(listed, func(t mcp.Tool) bool { return t.Name == name })
		if i >= 0 && len(listed[i].InputSchema.Required) == 0 {
			simple = append(simple, name)
		}
	}
	switch {
	case len(names) > 0:
		return names
	case len(simple) > 0:
		return simple[:1]
	case len(enabled) > 0:
		name, _ := enabled[0]["name"].(string)
		return []string{name}
	}
	return nil
}

// arguments asks for the required arguments of a tool. A value that is JSON of
// another type than text is passed as that type.
func (v *visitor) arguments(ctx context.Context, t mcp.Tool) (map[string]any, bool) {
	args := make(map[string]any)
	for _, name := range t.InputSchema.Required {
		schema, _ := t.InputSchema.Properties[name].(map[string]any)
		about, _ := schema["description"].(string)
		text, ok := v.guide.Value(ctx, name, about)
		if !ok {
			return nil, false
		}
		args[name] = text
		if schema["type"] != "string" {
			var value any
			if json.Unmarshal([]byte(text), &value) == nil {
				args[name] = value
			}
		}
	}
	return args, true
}

// call calls a tool and shows the result.
func (v *visitor) call(ctx context.Context, name string, args map[string]any) (map[string]any, bool, error) {
	return v.try(ctx, name, args, "")
}

// try is call, but a failure with the error code quiet is not shown.
func (v *visitor) try(ctx context.Context, name string, args map[string]any, quiet string) (map[string]any, bool, error) {
	v.announce = sync.OnceFunc(func() { v.guide.Calling(name, args) })
	reply, err := v.client.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: name, Arguments: args}})
	if err != nil {
		return nil, false, fmt.Errorf("calling %s: %w", name, err)
	}
	raw, err := json.Marshal(reply.StructuredContent)
	if err != nil {
		return nil, false, fmt.Errorf("reading the result of %s: %w", name, err)
	}
	var result map[string]any
	if err := json.Unmarshal(raw, &result); err != nil {
		return nil, false, fmt.Errorf("reading the result of %s: %w", name, err)
	}
	if e, ok := result["error"].(map[string]any); ok && quiet != "" && e["code"] == quiet {
		return result, true, nil
	}
	v.announce()
	v.guide.Result(result, reply.IsError)
	return result, reply.IsError, nil
}

func (v *visitor) toolNames(ctx context.Context) ([]string, error) {
	listed, err := v.client.ListTools(ctx, mcp.ListToolsRequest{})
	if err != nil {
		return nil, fmt.Errorf("listing tools: %w", err)
	}
	var names []string
	for _, t := range listed.Tools {
		names = append(names, t.Name)
	}
	return names, nil
}

func objects(v any) []map[string]any {
	list, _ := v.([]any)
	var out []map[string]any
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// asker answers elicitations: it passes the form to the guide.
type asker struct{ *visitor }

func (a asker) Elicit(ctx context.Context, req mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
	raw, err := json.Marshal(req.Params.RequestedSchema)
	if err != nil {
		return nil, fmt.Errorf("reading the question: %w", err)
	}
	var schema struct {
		Properties struct {
			Decision struct {
				Enum  []string `json:"enum"`
				Names []string `json:"enumNames"`
			} `json:"decision"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("reading the question: %w", err)
	}
	var choices []Choice
	for i, value := range schema.Properties.Decision.Enum {
		title := value
		if i < len(schema.Properties.Decision.Names) {
			title = schema.Properties.Decision.Names[i]
		}
		choices = append(choices, Choice{Value: value, Title: title})
	}
	answer := mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionDecline}
	a.announce()
	value := a.guide.Ask(ctx, req.Params.Message, choices)
	if slices.ContainsFunc(choices, func(c Choice) bool { return c.Value == value }) {
		answer = mcp.ElicitationResponse{Action: mcp.ElicitationResponseActionAccept, Content: map[string]any{"decision": value}}
	} else if value == "" {
		answer.Action = mcp.ElicitationResponseActionCancel
	}
	return &mcp.ElicitationResult{ElicitationResponse: answer}, nil
}
