package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcpgo "github.com/mark3labs/mcp-go/client"
	mcpgoway "github.com/mark3labs/mcp-go/client/transport"
	protocol "github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

// A mcpgoClient is the client of mcp-go, the library that the server uses, connected to its
// own server.
type mcpgoClient struct {
	*mcpgo.Client
	w       *world
	version string // of the protocol
	stderr  *logbuf.Buffer
	stop    func() error           // ends the HTTP server; nil on stdio
	base    atomic.Pointer[string] // where the HTTP server is
	changes chan struct{}          // has a value for each tools/list_changed
	hears   chan struct{}          // has a value for each subscription that the server took

	mu    sync.Mutex
	asked []string // the questions' titles
}

// Elicit is the person, who approves everything once.
func (c *mcpgoClient) Elicit(_ context.Context, q protocol.ElicitationRequest) (*protocol.ElicitationResult, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, titleOf(q.Params.Message))
	return &protocol.ElicitationResult{ElicitationResponse: protocol.ElicitationResponse{
		Action: protocol.ElicitationResponseActionAccept, Content: map[string]any{"decision": "once"},
	}}, nil
}

// questions returns the titles of the questions since its last call.
func (c *mcpgoClient) questions() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = nil
	return asked
}

// RoundTrip sends a request to the server's current address.
func (c *mcpgoClient) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Host = strings.TrimPrefix(*c.base.Load(), "http://")
	r.Host = r.URL.Host
	return http.DefaultTransport.RoundTrip(r)
}

// to returns a transport to the server; over HTTP it sends this token.
func (c *mcpgoClient) to(sent string) mcpgoway.Interface {
	web, headers := &http.Client{Transport: c}, map[string]string{"Authorization": "Bearer " + sent}
	var way mcpgoway.Interface
	var err error
	switch c.w.over {
	case overStdio:
		way = mcpgoway.NewStdioWithOptions(c.w.program, nil, c.w.serverArgs(), mcpgoway.WithCommandStderrWriter(c.stderr),
			mcpgoway.WithCommandFunc(func(context.Context, string, []string, []string) (*exec.Cmd, error) {
				return c.w.command(c.w.serverArgs()...), nil
			}))
	case overSSE:
		way, err = mcpgoway.NewSSE(*c.base.Load()+"/sse", mcpgoway.WithHTTPClient(web), mcpgoway.WithHeaders(headers))
	default:
		opts := []mcpgoway.StreamableHTTPCOption{mcpgoway.WithHTTPBasicClient(web), mcpgoway.WithHTTPHeaders(headers)}
		if c.version != v20260728 {
			//lint:ignore SA1019 the older era has no other stream for notifications
			opts = append(opts, mcpgoway.WithContinuousListening())
		}
		way, err = mcpgoway.NewStreamableHTTP(*c.base.Load()+"/mcp", opts...)
	}
	if err != nil {
		c.w.t.Fatal(err)
	}
	return way
}

// mcpgo starts a server and creates an unconnected client. Without canAsk it declares no
// support for elicitation.
func (w *world) mcpgo(version string, canAsk bool) *mcpgoClient {
	w.t.Helper()
	c := &mcpgoClient{w: w, version: version, stderr: new(logbuf.Buffer), changes: make(chan struct{}, 16), hears: make(chan struct{}, 16)}
	if w.over != overStdio {
		c.serve()
	}
	c.begin(token, canAsk)
	return c
}

// serve starts an HTTP server in place of the client's previous one.
func (c *mcpgoClient) serve() {
	c.w.t.Helper()
	c.stderr = new(logbuf.Buffer)
	base, stop := c.w.serve(c.stderr, token)
	c.base.Store(&base)
	c.stop = stop
}

// begin creates the client with this token.
func (c *mcpgoClient) begin(sent string, canAsk bool) {
	var opts []mcpgo.ClientOption
	if canAsk {
		opts = append(opts, mcpgo.WithElicitationHandler(c))
	}
	if c.version != v20260728 { // the newest is its default
		opts = append(opts, mcpgo.WithProtocolVersion(c.version))
	}
	c.Client = mcpgo.NewClient(c.to(sent), opts...)
	c.OnNotification(c.notified)
	c.w.t.Cleanup(func() { _ = c.Close() })
}

// connect connects the client and listens for notifications.
func (c *mcpgoClient) connect() *protocol.InitializeResult {
	c.w.t.Helper()
	if err := c.Start(c.w.t.Context()); err != nil {
		c.w.t.Fatalf("Start() = %v; the server logged:\n%s", err, c.stderr)
	}
	result, err := c.initialize()
	if err != nil {
		c.w.t.Fatalf("Initialize() = %v; the server logged:\n%s", err, c.stderr)
	}
	if got := c.ProtocolVersion(); got != c.version {
		c.w.t.Fatalf("the client speaks %q, want %q", got, c.version)
	}
	if c.version != v20260728 {
		return result
	}
	stop, err := c.ListenAsync(c.w.t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true}, nil)
	if err != nil {
		c.w.t.Fatal(err)
	}
	c.w.t.Cleanup(stop)
	c.wait(c.hears, "the subscription is acknowledged")
	return result
}

func (c *mcpgoClient) initialize() (*protocol.InitializeResult, error) {
	var q protocol.InitializeRequest
	q.Params.ClientInfo = protocol.Implementation{Name: "e2e", Version: "1.2"}
	return c.Initialize(c.w.t.Context(), q)
}

func (c *mcpgoClient) notified(n protocol.JSONRPCNotification) {
	switch n.Method {
	case "notifications/tools/list_changed":
		c.changes <- struct{}{}
	case "notifications/subscriptions/acknowledged":
		c.hears <- struct{}{}
	}
}

func (c *mcpgoClient) wait(what <-chan struct{}, want string) {
	c.w.t.Helper()
	select {
	case <-what:
	case <-time.After(patience):
		c.w.t.Fatalf("after %s: want: %s; the server logged:\n%s", patience, want, c.stderr)
	}
}

// names lists the tools.
func (c *mcpgoClient) names() []string {
	c.w.t.Helper()
	tools, err := c.ListTools(c.w.t.Context(), protocol.ListToolsRequest{})
	if err != nil {
		c.w.t.Fatalf("ListTools() = %v", err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// call calls a tool and returns its result, whose text is its JSON.
func (c *mcpgoClient) call(ctx context.Context, name string, args map[string]any) (out map[string]any, links []string, err error) {
	c.w.t.Helper()
	var q protocol.CallToolRequest
	q.Params.Name, q.Params.Arguments = name, args
	result, err := c.CallTool(ctx, q)
	if err != nil {
		return nil, nil, err
	}
	for _, content := range result.Content {
		switch content := content.(type) {
		case protocol.TextContent:
			if err := json.Unmarshal([]byte(content.Text), &out); err != nil {
				c.w.t.Errorf("CallTool(%q): the text %q is not JSON: %v", name, content.Text, err)
			}
		case protocol.ResourceLink:
			links = append(links, content.URI)
		}
	}
	if diff := cmp.Diff(result.StructuredContent, any(out)); diff != "" {
		c.w.t.Errorf("CallTool(%q): the text differs from the structured content (-structured +text):\n%s", name, diff)
	}
	return out, links, nil
}

// ok calls a tool that must succeed.
func (c *mcpgoClient) ok(name string, args map[string]any) (out map[string]any, links []string) {
	c.w.t.Helper()
	out, links, err := c.call(c.w.t.Context(), name, args)
	if err != nil || out["error"] != nil {
		c.w.t.Fatalf("CallTool(%q, %v) = %v, %v, want success; the server logged:\n%s", name, args, out, err, c.stderr)
	}
	return out, links
}

// end closes the client, and checks that the server ends well.
func (c *mcpgoClient) end() {
	c.w.t.Helper()
	if err := c.Close(); err != nil {
		c.w.t.Errorf("Close() = %v, want the server to end with status 0", err)
	}
	if c.stop != nil {
		if err := c.stop(); err != nil {
			c.w.t.Errorf("the server ended with %v; it logged:\n%s", err, c.stderr)
		}
	}
	if log := c.stderr.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "DATA RACE") {
		c.w.t.Errorf("the server logged errors:\n%s", log)
	}
}

func (c *mcpgoClient) wholeWay() {
	c.w.t.Helper()
	first := c.connect()
	if first.ServerInfo.Name != "packs-mcp" || !strings.Contains(first.Instructions+"\n", metadata) {
		c.w.t.Errorf("the server calls itself %q and says %q, want packs-mcp and the names of the packs", first.ServerInfo.Name, first.Instructions)
	}
	check(c.w.t, "the tools at first", c.names(), baseTools)
	c.ok("capability_packs_list", map[string]any{})
	check(c.w.t, "the questions for a list", c.questions(), []string(nil))
	out, _ := c.ok("capability_packs_open_docs", map[string]any{"pack_id": "field-notes"})
	check(c.w.t, "the document", out["entry_doc"], any(map[string]any{
		"path": "SKILL.md", "content": "# Field notes\n\nRead `docs/guide.md`, then call the tool `note`.\n",
	}))
	c.ok("capability_packs_enable_tools", map[string]any{"pack_id": "field-notes"})
	c.wait(c.changes, "tools/list_changed")
	check(c.w.t, "the tools after enable_tools", c.names(),
		append(slices.Clone(baseTools), "field-notes__fail", "field-notes__hold", "field-notes__note"))
	out, links := c.ok("field-notes__note", map[string]any{"file": "first", "text": "rain"})
	check(c.w.t, "the run", out["parsed"], any(map[string]any{"file": "first", "stars": 3.0}))
	check(c.w.t, "the questions", c.questions(), []string{
		"Open the documents of pack field-notes?", "Enable 3 tools of pack field-notes?", "Run tool note of pack field-notes?",
	})
	check(c.w.t, "the links", links, []string{"workspace://" + out["workspace"].(string) + "/notes/first.txt"})

	check(c.w.t, "the file", c.resource(links[0]), "rain\n3 stars\n")
	check(c.w.t, "the skill's document", strings.Contains(c.resource("skill://plain/SKILL.md"), "Nothing to run here."), true)
	check(c.w.t, "the questions for resources", len(c.questions()), 2)
	c.lists()

	if c.w.over != overSSE { // over SSE, this client does not report a cancellation
		c.cancels()
	}
}

// resource reads a text.
func (c *mcpgoClient) resource(uri string) string {
	c.w.t.Helper()
	var q protocol.ReadResourceRequest
	q.Params.URI = uri
	result, err := c.ReadResource(c.w.t.Context(), q)
	if err != nil || len(result.Contents) != 1 {
		c.w.t.Fatalf("ReadResource(%q) = %+v, %v, want one content", uri, result, err)
	}
	text, ok := result.Contents[0].(protocol.TextResourceContents)
	if !ok {
		c.w.t.Fatalf("ReadResource(%q) gave %T, want a text", uri, result.Contents[0])
	}
	return text.Text
}

// lists checks the lists that people and clients choose from.
func (c *mcpgoClient) lists() {
	c.w.t.Helper()
	ctx := c.w.t.Context()
	resources, err := c.ListResources(ctx, protocol.ListResourcesRequest{})
	if err != nil {
		c.w.t.Fatal(err)
	}
	var uris []string
	for _, r := range resources.Resources {
		uris = append(uris, r.URI)
	}
	for _, want := range []string{"skill://field-notes/SKILL.md", "skill://plain/SKILL.md"} {
		if !slices.Contains(uris, want) {
			c.w.t.Errorf("ListResources() = %q, want %q in it", uris, want)
		}
	}
	if templates, err := c.ListResourceTemplates(ctx, protocol.ListResourceTemplatesRequest{}); err != nil || len(templates.ResourceTemplates) == 0 {
		c.w.t.Errorf("ListResourceTemplates() = %+v, %v, want some", templates, err)
	}
	prompts, err := c.ListPrompts(ctx, protocol.ListPromptsRequest{})
	if err != nil {
		c.w.t.Fatal(err)
	}
	var names []string
	for _, p := range prompts.Prompts {
		names = append(names, p.Name)
	}
	slices.Sort(names)
	check(c.w.t, "the prompts", names, []string{"attach", "detach", "field-notes", "plain"})
	var q protocol.GetPromptRequest
	q.Params.Name, q.Params.Arguments = "field-notes", map[string]string{"arguments": "about the rain"}
	prompt, err := c.GetPrompt(ctx, q)
	if err != nil || len(prompt.Messages) == 0 {
		c.w.t.Fatalf("GetPrompt() = %+v, %v, want a message", prompt, err)
	}
	if text, ok := prompt.Messages[0].Content.(protocol.TextContent); !ok || !strings.Contains(text.Text, "# Field notes") || !strings.Contains(text.Text, "about the rain") {
		c.w.t.Errorf("GetPrompt() = %+v, want the document and what was said", prompt.Messages[0])
	}
	var complete protocol.CompleteRequest
	complete.Params.Ref = protocol.PromptReference{Type: "ref/prompt", Name: "detach"}
	complete.Params.Argument = protocol.CompleteArgument{Name: "pack_id", Value: "fi"}
	completed, err := c.Complete(ctx, complete)
	if err != nil {
		c.w.t.Fatal(err)
	}
	check(c.w.t, "the completion", completed.Completion.Values, []string{"field-notes"})
}

// cancels cancels a call, which ends its program.
func (c *mcpgoClient) cancels() {
	c.w.t.Helper()
	pipe := c.w.newPipe()
	ctx, cancel := context.WithCancel(c.w.t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, _, err := c.call(ctx, "field-notes__hold", map[string]any{"pipe": pipe.name})
		ended <- err
	}()
	pipe.wait(pipe.holding, "the program runs")
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		c.w.t.Errorf("the cancelled call = %v, want %v", err, context.Canceled)
	}
	pipe.wait(pipe.gone, "the program and its child are gone")
	c.ok("capability_packs_list", map[string]any{}) // the connection still works
}

// A complete conversation with mcp-go's client: metadata, a document, tools, a run, prompts,
// resources.
func TestMCPGo(t *testing.T) {
	for _, way := range []struct {
		over    transport
		version string
	}{
		{overStdio, v20251125}, {overStdio, v20260728}, {overHTTP, v20251125}, {overHTTP, v20260728},
		{overSSE, v20260728}, // in the older era it has no elicitation over SSE: TestMCPGoThatCannotAsk
	} {
		t.Run(string(way.over)+"/"+way.version, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.over = way.over
			c := w.mcpgo(way.version, true)
			c.wholeWay()
			c.end()
		})
	}
}

// A client that cannot ask, and a person in a terminal.
func TestMCPGoThatCannotAsk(t *testing.T) {
	for _, over := range []transport{overStdio, overHTTP, overSSE} {
		t.Run(string(over), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.asks("terminal")
			w.over = over
			c := w.mcpgo(v20251125, false)
			c.connect()
			person := w.answerAll("approve")
			c.ok("capability_packs_open_docs", map[string]any{"pack_id": "plain"})
			check(t, "how many calls the person approved", person.count(), 1)
			c.end()
			w.decided("terminal", "open once")
		})
	}
}

// A wrong token yields the client's own error for that. After the server restarts, the same
// client continues: once it has initialized, or at once without sessions. Over SSE its
// stream is gone, so a new client is needed.
func TestMCPGoAgain(t *testing.T) {
	for _, way := range []struct {
		over    transport
		version string
	}{
		{overHTTP, v20251125}, {overHTTP, v20260728}, {overSSE, v20251125},
	} {
		t.Run(string(way.over)+"/"+way.version, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.over = way.over
			c := w.mcpgo(way.version, true)
			c.connect()
			if way.over != overSSE {
				c.ok("capability_packs_enable_tools", map[string]any{"pack_id": "field-notes"})
			}
			known := c.Client

			c.begin("not-the-token", true)
			err := c.Start(t.Context())
			if err == nil {
				_, err = c.initialize()
			}
			if !errors.Is(err, mcpgoway.ErrUnauthorized) && !errors.Is(err, mcpgoway.ErrAuthorizationRequired) {
				t.Errorf("with another token = %v, want that it is not authorized", err)
			}

			c.Client = known
			if err := c.stop(); err != nil {
				t.Errorf("the server ended with %v", err)
			}
			c.serve()
			_, _, err = c.call(t.Context(), "capability_packs_list", map[string]any{})
			switch {
			case way.over == overSSE:
				if err == nil {
					t.Error("a call without a stream got an answer")
				}
				c.begin(token, true)
				c.connect()
			case way.version == v20251125:
				if !errors.Is(err, mcpgoway.ErrSessionTerminated) {
					t.Errorf("the first call = %v, want that the session is gone", err)
				}
				if _, err := c.initialize(); err != nil {
					t.Fatal(err)
				}
			case err != nil:
				t.Errorf("the first call = %v, want that it goes on", err)
			}
			check(t, "the tools of the new chat", c.names(), baseTools)
			c.end()
		})
	}
}
