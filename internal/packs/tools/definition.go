package tools

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/schema"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Definition returns everything about the tool that an approval covers, as one
// canonical JSON object: two tools are the same exactly if the bytes are. It does not
// include where the tool was declared. In a list, it is a tools.json that compiles to
// the same tool.
func (t *Tool) Definition() []byte {
	def := map[string]any{
		"name":        t.Name,
		"inputSchema": rawValue(t.InputSchema),
		"policy":      t.Policy.definition(),
	}
	put(def, "title", t.Title, t.Title != "")
	put(def, "description", t.Description, t.Description != "")
	put(def, "version", t.Version, t.Version != "")
	put(def, "sources", t.sources(), len(t.Sources) > 0)
	put(def, "examples", t.Examples, len(t.Examples) > 0)
	put(def, "modes", t.Modes, len(t.Modes) > 0)
	if t.OutputSchema != nil {
		def["outputSchema"] = rawValue(t.OutputSchema)
	}
	if o := t.Output.definition(); len(o) > 0 {
		def["output"] = o
	}
	if t.Command != nil {
		def["command"] = t.Command.definition()
	}
	return strictjson.Canonical(def)
}

// Digest returns the SHA-256 of [Tool.Definition] in hexadecimal.
func (t *Tool) Digest() string {
	sum := sha256.Sum256(t.Definition())
	return hex.EncodeToString(sum[:])
}

func (c *Command) definition() map[string]any {
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = a.String()
	}
	def := map[string]any{"program": c.Program, "args": args, "cwd": c.Cwd}
	if c.Cwd == "" {
		def["cwd"] = CwdWorkspace
	}
	if len(c.Env) > 0 {
		env := make(map[string]string, len(c.Env))
		for name, a := range c.Env {
			env[name] = a.String()
		}
		def["env"] = env
	}
	put(def, "stdin", c.Stdin, c.Stdin != "")
	put(def, "skill_env", true, c.SkillEnv)
	return def
}

func (p Policy) definition() map[string]any {
	network := any(string(cmp.Or(p.Network, NetworkNone)))
	if p.Network == NetworkHosts {
		network = map[string]any{"hosts": p.HostNames()}
	}
	codes := p.AllowedExitCodes
	if codes == nil {
		codes = []int{0}
	}
	def := map[string]any{
		"read_only":          p.ReadOnly,
		"confirm_before_run": p.AlwaysAsk,
		"network":            network,
		"allowed_exit_codes": codes,
	}
	put(def, "review", ReviewAll, p.Review)
	put(def, "cache", p.Cache, p.Cache != "")
	put(def, "timeout_secs", int(p.Timeout/time.Second), p.Timeout > 0)
	return def
}

func (o Output) definition() map[string]any {
	def := make(map[string]any)
	put(def, "format", o.Format, o.Format != "")
	put(def, "extract_field", o.ExtractField, o.ExtractField != "")
	put(def, "template", o.Template, o.Template != "")
	put(def, "max_chars", o.MaxChars, o.MaxChars > 0)
	put(def, "speak", true, o.Speak)
	put(def, "merged", true, o.Merged)
	return def
}

func put(def map[string]any, key string, value any, when bool) {
	if when {
		def[key] = value
	}
}

// rawValue decodes JSON that was read before. Invalid JSON becomes a string, so that
// it still makes a difference.
func rawValue(raw json.RawMessage) any {
	if len(raw) == 0 {
		raw = json.RawMessage(schema.Empty)
	}
	n, e := strictjson.Parse(raw)
	if e != nil {
		return string(raw)
	}
	return n.Value()
}
