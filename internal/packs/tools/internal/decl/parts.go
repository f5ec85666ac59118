package decl

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// inputKeys are the possible keys of an input schema.
var inputKeys = [...]string{"inputSchema", "input_schema", flatKey}

// flatKey is the key of a flat map in a tool pack.
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

// objectSchema returns the value of "schema" in a tool if it can only be the schema of its
// arguments.
func objectSchema(tool *strictjson.Node) *strictjson.Node {
	if s := tool.Get("schema"); s != nil && s.StringAt("type") == "object" && s.Get("properties") != nil {
		return s
	}
	return nil
}

// execKeys are the keys under which other programs say how to run a tool. They are not
// read; they only make a message clearer.
var execKeys = [...]string{"handler", "runner", "http", "endpoint", "url", "entrypoint", "execute", "execution", "exec", "run", "script", "implementation"}

// CommandOf returns the command of a tool, or why it has none that can be run. It guesses
// nothing.
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
