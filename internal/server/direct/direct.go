// Package direct is an MCP client for a person who calls a tool of a pack
// themself, without a model.
//
// It talks to a server over a pair of streams like any other client, and the server's
// gate decides about every call. This client cannot show questions, so the server
// asks elsewhere. It prints nothing.
package direct

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// A Client is a connection, which is one chat with a workspace of its own. Make one
// with [Connect]; the caller closes it.
type Client struct{ mcp *client.Client }

// A Call is one call of a pack's tool.
type Call struct {
	Pack string // id
	Tool string // as declared
	// Arguments are a JSON object, passed on as they are.
	Arguments json.RawMessage
	// Context is what the client tells the server about its user's context; it may be
	// nil.
	Context map[string]string
}

// A Result is what the server returned for a call. Its texts are safe to show.
type Result struct {
	// JSON is the structured content, whole.
	JSON json.RawMessage
	// Failed says that the call did not succeed: it was refused or denied, or the
	// program failed.
	Failed bool
	Run    Run
	Error  Error // zero if the call was not refused
}

// A Run says what a program did, as far as it ran.
type Run struct {
	OK         bool        `json:"ok"`
	ID         string      `json:"run_id"` // empty if nothing was started
	ExitCode   int         `json:"exit_code"`
	Signal     string      `json:"signal"`
	Stdout     string      `json:"stdout"`
	Stderr     string      `json:"stderr"`
	Output     *string     `json:"output"` // what the tool makes of its standard output; nil if it does nothing with it
	Truncated  bool        `json:"truncated"`
	DurationMS int64       `json:"duration_ms"`
	Notes      []string    `json:"notes"`
	Artifacts  []Artifact  `json:"artifacts"`
	Changes    []ChangeSet `json:"changes"`
	Sandbox    string      `json:"sandbox"`
	Workspace  string      `json:"workspace"` // its handle
}

// Out returns what the tool returns as its output: Output, or else the program's
// standard output.
func (r *Run) Out() string {
	if r.Output != nil {
		return *r.Output
	}
	return r.Stdout
}

// An Artifact is a file that a run made or changed in its workspace.
type Artifact struct {
	Path string `json:"path"` // within the workspace
	File string `json:"file"` // absolute
	Size int64  `json:"size_bytes"`
}

// A ChangeSet is what a run changed in a folder of the user's.
type ChangeSet struct {
	Set     string   `json:"set"` // its id
	Folder  string   `json:"folder"`
	Applied []string `json:"applied"` // paths in Folder
	Held    []Change `json:"held"`    // wait for the user
	Refused []Change `json:"refused"` // never applied
}

// A Change is one path that was not simply applied.
type Change struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// An Error says why a call was refused, or why its program failed.
type Error struct {
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Hint    string   `json:"hint"`
	Near    []string `json:"near"`
}

// Connect connects to a server: in is what it writes, out is what it reads.
func Connect(ctx context.Context, in io.Reader, out io.WriteCloser, version string) (*Client, error) {
	c := client.NewClient(transport.NewIO(in, out, io.NopCloser(strings.NewReader(""))))
	if err := c.Start(ctx); err != nil {
		return nil, fmt.Errorf("starting the client: %w", err)
	}
	_, err := c.Initialize(ctx, mcp.InitializeRequest{Params: mcp.InitializeParams{
		ClientInfo: mcp.Implementation{Name: "packs-mcp on the command line", Version: version},
	}})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connecting: %w", err), c.Close())
	}
	return &Client{c}, nil
}

// Close ends the connection, and with it the chat.
func (c *Client) Close() error { return c.mcp.Close() }

// Enable makes a tool of a pack callable in this chat.
func (c *Client) Enable(ctx context.Context, pack, tool string) (*Result, error) {
	return c.do(ctx, "capability_packs_enable_tools", map[string]any{"pack_id": pack, "tools": []string{tool}}, nil)
}

// Call calls an enabled tool.
func (c *Client) Call(ctx context.Context, call Call) (*Result, error) {
	var meta *mcp.Meta
	if len(call.Context) > 0 {
		said := make(map[string]any, len(call.Context))
		for name, value := range call.Context {
			said[name] = value
		}
		meta = mcp.NewMetaFromMap(map[string]any{"packs-mcp/context": said})
	}
	return c.do(ctx, "capability_packs_call_tool", map[string]any{"pack_id": call.Pack, "tool": call.Tool, "arguments": call.Arguments}, meta)
}

func (c *Client) do(ctx context.Context, method string, args map[string]any, meta *mcp.Meta) (*Result, error) {
	reply, err := c.mcp.CallTool(ctx, mcp.CallToolRequest{Params: mcp.CallToolParams{Name: method, Arguments: args, Meta: meta}})
	if err != nil {
		return nil, fmt.Errorf("calling %s: %w", method, err)
	}
	raw, err := json.Marshal(reply.StructuredContent)
	if err != nil {
		return nil, fmt.Errorf("reading the result of %s: %w", method, err)
	}
	r := &Result{JSON: raw, Failed: reply.IsError}
	var says struct {
		// A Markdown tool's run has its message here, and the rest in failure.
		Error   json.RawMessage `json:"error"`
		Failure *Error          `json:"failure"`
	}
	if err := errors.Join(json.Unmarshal(raw, &r.Run), json.Unmarshal(raw, &says)); err != nil {
		return nil, fmt.Errorf("reading the result of %s: %w", method, err)
	}
	switch {
	case says.Failure != nil:
		r.Error = *says.Failure
	case len(says.Error) > 0:
		if err := json.Unmarshal(says.Error, &r.Error); err != nil {
			return nil, fmt.Errorf("reading the result of %s: %w", method, err)
		}
	}
	return r, nil
}
