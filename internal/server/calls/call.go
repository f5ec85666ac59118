package calls

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/server/callargs"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A Method is a tool, or a method other than tools/call that is handled the same way.
type Method struct {
	Name  string // of the tool, without a dot; or the method
	Input string // JSON Schema of the arguments; empty: arguments that cannot be decoded have none to show
	// Prepare decodes the arguments and finds out what the call would do. It changes
	// nothing.
	Prepare func(context.Context, *Call) (*Action, error)
}

// A Call is one tools/call, or another request that the gate decides about, while it
// is being handled.
type Call struct {
	ID      string // for the logs
	Method  *Method
	Chat    *chats.Chat
	Caller  gate.Caller
	Catalog *packs.Catalog // the catalog that this call keeps
	Args    *callargs.Arguments
	Meta    *mcp.Meta
	// Filled holds the values that a person gave for the context that the tool needs,
	// by the names of the question's fields; nil before that.
	Filled map[string]string
	// Missing is the context that the tool needs, for when nobody can be asked for
	// it; nil: nothing.
	Missing *tools.MissingContextError
	Ended   int    // how many runs had ended when the call was last prepared
	Opens   bool   // the call shows a pack's document from its beginning
	Note    string // what the model should know besides the result; empty: nothing

	checked   *checked             // see Check
	log       logged               // see Logged
	workspace *workspace.Workspace // the workspace that the call is about; nil: the chat's first

	telling sync.Mutex
	told    int // progress notifications sent so far; guarded by telling
}

// An Action is a call that was understood: what a person is asked about it, and the
// function that does the work, which needs the permit.
type Action struct {
	Request gate.Request
	// Fits returns why the work could not be done now, whatever a person said. nil: it
	// always can.
	Fits    func() error
	Perform func(context.Context, *gate.Permit) (any, error)
}

// ContextKey is the key under which a client may say what its user looks at.
const ContextKey = "packs-mcp/context"

// checked holds arguments that fit the tool's schema.
type checked struct {
	tool     *tools.Tool
	values   tools.Values
	expanded *plan.Expanded // filled into the tool's command; nil: not yet, see Expand
}

// Check checks the arguments for a pack's tool against its schema. It does that once
// for each declaration of the tool, however often the call is prepared. The caller
// passes the same args each time.
func (c *Call) Check(tool *tools.Tool, args *strictjson.Node) (tools.Values, error) {
	if c.checked == nil || c.checked.tool != tool {
		values, err := tool.Check(args)
		if err != nil {
			return tools.Values{}, err
		}
		c.checked = &checked{tool: tool, values: values}
	}
	return c.checked.values, nil
}

// Expand fills the values that Check last accepted into the tool's command. It does
// that once, and again only after a person filled something in: until then, the call
// and what is known of its context are the same each time the call is prepared.
func (c *Call) Expand(p *plan.Planner, of *plan.Call, tool *tools.Tool, values tools.Values) (*plan.Expanded, error) {
	if c.checked.expanded == nil {
		expanded, err := p.Expand(of, tool, values)
		if err != nil {
			return nil, err
		}
		c.checked.expanded = expanded
	}
	return c.checked.expanded, nil
}

// Logged returns what the log keeps of the arguments: those that Check last accepted
// if the tool is a pack's, otherwise all. The text is made again only if the
// arguments or the secrets to leave out have changed.
func (c *Call) Logged(secrets *redact.Secrets) strictjson.Compact {
	l := &c.log
	if l.text.IsZero() || l.of != c.checked || !l.secrets.Equal(secrets) {
		*l = logged{of: c.checked, secrets: secrets}
		if c.checked != nil {
			l.text = secrets.LoggedValue(c.checked.tool.Redact(c.checked.values))
		} else {
			l.text = secrets.LoggedValue(c.Args.Tree.Value())
		}
	}
	return l.text
}

// logged holds the log's version of the arguments.
type logged struct {
	text    strictjson.Compact
	of      *checked        // nil: made from the call's own arguments
	secrets *redact.Secrets // the secrets that were left out
}

// Decode decodes the arguments of a base tool into v; see
// [callargs.Arguments.Decode].
func (c *Call) Decode(v any) error {
	problem := c.Args.Decode(v)
	if problem == "" {
		return nil
	}
	e := toolerr.New(toolerr.CodeInvalidArguments, "Correct the arguments and call again.", "%s", problem)
	e.Schema = json.RawMessage(c.Method.Input)
	return e
}

// Require returns an error that names the empty values among name/value pairs.
func (c *Call) Require(pairs ...string) error {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			e := toolerr.New(toolerr.CodeInvalidArguments, "Give it and call again.", "%q is required", pairs[i])
			e.Schema = json.RawMessage(c.Method.Input)
			return e
		}
	}
	return nil
}
