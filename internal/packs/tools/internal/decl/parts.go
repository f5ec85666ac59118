package decl

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// inputKeys are the names under which an input schema is found.
var inputKeys = [...]string{"inputSchema", "input_schema", flatKey}

// flatKey is the one under which a tool pack has a flat map.
const flatKey = "parameters"

// InputOf returns the input schema of a tool, or nil.
func InputOf(tool *strictjson.Node) *strictjson.Node {
	for _, key := range inputKeys {
		if n := tool.Get(key); n != nil {
			return n
		}
	}
	return objectSchema(tool)
}

// objectSchema returns "schema" of a tool if it cannot be anything but the
// schema of its arguments.
func objectSchema(tool *strictjson.Node) *strictjson.Node {
	if s := tool.Get("schema"); s != nil && s.StringAt("type") == "object" && s.Get("properties") != nil {
		return s
	}
	return nil
}

// execKeys are the names under which other programs say how a tool is carried
// out. None of them is read; they only make a reason clearer.
var execKeys = [...]string{"handler", "runner", "http", "endpoint", "url", "entrypoint", "execute", "execution", "exec", "run", "script", "implementation"}

// CommandOf returns the command of a tool, or why there is none that can be
// run. Nothing is guessed.
func CommandOf(tool *strictjson.Node) (command *strictjson.Node, why string) {
	c := tool.Get("command")
	switch {
	case c == nil:
		for _, key := range execKeys {
			if tool.Get(key) != nil {
				return nil, fmt.Sprintf("it declares no command, and %q is not read", key)
			}
		}
		return nil, "it declares no command"
	case c.Kind == strictjson.List, c.Kind == strictjson.Object && c.Get("program") != nil:
		return c, ""
	case c.Kind == strictjson.Object:
		return nil, `its command has no "program"`
	default:
		return nil, fmt.Sprintf("its command is %s", c.Kind)
	}
}
