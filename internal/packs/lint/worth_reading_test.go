package lint

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// Keys that other programs define are not reported; a mistyped key is reported with a
// suggestion.
func TestKeys(t *testing.T) {
	for key, want := range map[string]string{
		"model": "", "context": "", "when_to_use": "", "agent": "", "hooks": "", "argument-hint": "", "paths": "",
		"descriptio": `did you mean "description"?`, "licence": `did you mean "license"?`, "allowed_tools": `did you mean "allowed-tools"?`,
		"zzz": "metadata:",
	} {
		dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte("---\nname: p\ndescription: d\n" + key + ": x\n---\nbody\n")}})
		problems := check(t, dir+"/p", Options{}).Packs[0].Problems
		switch {
		case want == "" && len(problems) > 0:
			t.Errorf("%s: %v, want nothing", key, problems)
		case want != "" && (len(problems) != 1 || problems[0].Code != CodeKeyUnknown || !strings.Contains(problems[0].Hint, want)):
			t.Errorf("%s: %+v, want %s and %q", key, problems, CodeKeyUnknown, want)
		}
	}
}

// No profile says to move keys that another host defines.
func TestHostKeysStay(t *testing.T) {
	for _, profile := range append(Profiles(), Default) {
		for _, key := range knownKeys() {
			if key == "name" || key == "description" || key == "metadata" {
				continue
			}
			dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte("---\nname: p\ndescription: d\n" + key + ": x\n---\nbody\n")}})
			for _, d := range check(t, dir+"/p", Options{Profile: profile}).Packs[0].Problems {
				if d.Code == CodeKeyUnknown && (strings.Contains(d.Hint, "metadata:") || strings.Contains(d.Hint, "did you mean")) {
					t.Errorf("%s: the key %q gets the hint %q", profile, key, d.Hint)
				}
			}
		}
	}
}

// A mistyped placeholder or program is reported with a suggestion.
func TestNearNames(t *testing.T) {
	for command, want := range map[string]string{
		`["echo", "{{nme}}"]`:    "did you mean {{name}}?",
		`["./scripts/hallo.sh"]`: `did you mean "./scripts/hello.sh"?`,
		`["./hello.sh"]`:         `did you mean "./scripts/hello.sh"?`,
	} {
		dir := writeTree(t, []txtar.File{
			{Name: "p/SKILL.md", Data: []byte(validPack)}, {Name: "p/scripts/hello.sh", Data: []byte("#!/bin/sh\n")},
			{Name: "p/tools.json", Data: []byte(`[{"name": "t", "description": "d", "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}}, "command": ` + command + `}]`)},
		})
		problems := check(t, dir+"/p", Options{}).Packs[0].Problems
		if len(problems) == 0 || !strings.Contains(problems[0].Hint, want) {
			t.Errorf("%s: %+v, want first a hint with %q", command, problems, want)
		}
	}
}

// The folder tests may hold files of other programs.
func TestOthersTests(t *testing.T) {
	for _, text := range []string{"", "x", "- a", "cases: 3", "cases: [{input: x}]", "a: [", "cases:\n  - input: x\n    expected: y\n"} {
		dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte(validPack)}, {Name: "p/tests/a.yaml", Data: []byte(text)}})
		if problems := check(t, dir+"/p", Options{Strict: true}).Packs[0].Problems; len(problems) > 0 {
			t.Errorf("tests/a.yaml with %q: %v", text, problems)
		}
	}
}

// An error about invalid JSON has a place and a cure.
func TestJSONErrorsSayWhere(t *testing.T) {
	for src, want := range map[string]struct {
		line          int
		message, hint string
	}{
		"[\n {\n  \"name\": \"a\"\n  \"description\": \"d\"\n }\n]": {3, "a comma is missing at the end of line 3", "comma"},
		"[\n {\"name\": \"a\" \"title\": \"b\"}\n]":                 {2, "a comma is missing before column 15 of line 2", "comma"},
		"[\n {\"name\": \"a\"}\n {\"name\": \"b\"}\n]":              {2, "a comma is missing at the end of line 2", "comma"},
		"[\n {\"name\" \"a\"}\n]":                                   {2, "a colon is missing", "colon"},
		"[\n {name: \"a\"}\n]":                                      {2, "a key must be in double quotes", "double quotes"},
		"[\n {\"name\": a}\n]":                                      {2, "not in double quotes, on line 2", "double quotes"},
		"[\n {\"name\": \"a\n b\"}\n]":                              {2, "begins on line 2 does not end", "close it"},
		"[\n {\"name\": \"C:\\dir\"}\n]":                            {2, "begins no escape", "backslash"},
		"[\n {\"name\": \"a\"}":                                     {2, "ends in the middle", "close"},
		"[\n {\"name\": \"a\"},\n]":                                 {2, "a comma before the closing bracket", "remove"},
	} {
		dir := writeTree(t, []txtar.File{{Name: "tools.json", Data: []byte(src)}})
		problems := check(t, dir+"/tools.json", Options{}).Packs[0].Problems
		if len(problems) != 1 || problems[0].Line != want.line || !strings.Contains(problems[0].Message, want.message) || !strings.Contains(problems[0].Hint, want.hint) {
			t.Errorf("%q: %+v, want line %d, %q and %q", src, problems, want.line, want.message, want.hint)
		}
	}
}

// The message for one character uses the singular.
func TestOneCharacter(t *testing.T) {
	for text, want := range map[string]string{"a\u200bb": "1 character seen by nobody", "a\u200bb\u200bc": "2 characters seen by nobody"} {
		dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte(validPack + text)}})
		problems := check(t, dir+"/p", Options{}).Packs[0].Problems
		if len(problems) != 1 || !strings.Contains(problems[0].Message, want) {
			t.Errorf("%q: %v, want %q", text, problems, want)
		}
	}
}

// The message about a description that is too long has both numbers.
func TestDescriptionLimitSaysBoth(t *testing.T) {
	for profile, want := range map[Profile]string{
		SkillMD:     "the description has 1100 characters, and the specification reads only 256",
		AgentSkills: "the description has 1100 characters, and the specification allows 1024",
	} {
		dir := writeTree(t, []txtar.File{{Name: "p/SKILL.md", Data: []byte("---\nname: p\nversion: 1.0.0\ndescription: " + strings.Repeat("x", 1100) + "\n---\n")}})
		problems := check(t, dir+"/p", Options{Profile: profile}).Packs[0].Problems
		if !slices.ContainsFunc(problems, func(d diag.Diagnostic) bool { return d.Message == want }) {
			t.Errorf("profile %s: %v, want %q", profile, problems, want)
		}
	}
}

// An unknown key of a tool is reported with a suggestion, unless the suggested key is
// there as well.
func TestKeysOfTools(t *testing.T) {
	const tool = `[{"name": "a", "description": "d", "inputSchema": {"type": "object"}, "command": {"program": "true", %s}, "policy": {%s}, "output": {%s}, %s}]`
	for _, tt := range []struct{ command, policy, output, own, want string }{
		{`"argz": []`, `"read_only": true`, `"speak": true`, `"modes": []`, `did you mean "args"?`},
		{`"args": []`, `"timeout_sec": 5`, `"speak": true`, `"modes": []`, `did you mean "timeout_secs"?`},
		{`"args": []`, `"read_only": true`, `"extract_feild": "x"`, `"modes": []`, `did you mean "extract_field"?`},
		{`"args": []`, `"read_only": true`, `"speak": true`, `"exmaples": []`, `did you mean "examples"?`},
		{`"args": []`, `"read_only": true`, `"speak": true`, `"descriptio": "d"`, "remove it, or check its spelling"},
		{`"args": []`, `"read_only": true`, `"speak": true`, `"zzzzzz": "d"`, "remove it, or check its spelling"},
	} {
		src := fmt.Sprintf(tool, tt.command, tt.policy, tt.output, tt.own)
		dir := writeTree(t, []txtar.File{{Name: "tools.json", Data: []byte(src)}})
		problems := check(t, dir+"/tools.json", Options{}).Packs[0].Problems
		if len(problems) != 1 || problems[0].Code != tools.CodeUnknownKey || !strings.Contains(problems[0].Hint, tt.want) {
			t.Errorf("%s: %+v, want %s with %q", src, problems, tools.CodeUnknownKey, tt.want)
		}
	}
}
