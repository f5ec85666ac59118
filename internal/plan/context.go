package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// fieldPrefix begins the name of a field that asks for a context value.
const fieldPrefix = "context_"

// Expand fills the values into the tool's command. If the tool needs something from
// the user's context that is not known, the question asks for it. Until it is
// answered, a stand-in takes the value's place.
func (p *Planner) Expand(c *Call, tool *tools.Tool, values tools.Values) (*Expanded, error) {
	known := p.contextFor(c)
	inv, err := tool.Expand(values, known)
	missing, ok := errors.AsType[*tools.MissingContextError](err)
	switch {
	case err == nil:
		return &Expanded{Invocation: inv}, nil
	case !ok || c.Filled != nil:
		return nil, err
	}
	var fields []call.Field
	for _, name := range missing.Names {
		field := call.Field{Name: fieldPrefix + name, Title: "The " + name + " that the tool should work on"}
		fields = append(fields, field)
		known[name] = call.StandIn(field.Name)
		if strings.Contains(fmt.Sprint(values), known[name]) {
			return nil, err // the two could not be told apart
		}
	}
	inv, again := tool.Expand(values, known)
	if again != nil {
		return nil, err // no text would fit; the caller can pass a parameter
	}
	return &Expanded{Invocation: inv, Fields: fields, Missing: missing}, nil
}

// contextFor returns the values of context.* placeholders. What the client says with
// the call takes precedence over what the user configured. The working folder always
// comes from this program.
func (p *Planner) contextFor(c *Call) tools.Context {
	ctx := make(tools.Context)
	maps.Copy(ctx, p.opts.Context)
	maps.Copy(ctx, c.Context)
	for field, value := range c.Filled {
		ctx[strings.TrimPrefix(field, fieldPrefix)] = value
	}
	ctx["cwd"] = cmp.Or(p.opts.Project, c.Workspace)
	return ctx
}
