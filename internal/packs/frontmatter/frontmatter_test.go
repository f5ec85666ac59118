package frontmatter

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
)

// codes returns "line code" of each diagnostic.
func codes(problems []diag.Diagnostic) []string {
	var list []string
	for _, d := range problems {
		list = append(list, strings.TrimPrefix(d.String(), "f:"))
	}
	for i, s := range list {
		place, rest, _ := strings.Cut(s, ": ")
		code, _, _ := strings.Cut(rest, ":")
		list[i] = place + " " + code
	}
	return list
}

func TestParse(t *testing.T) {
	tests := []struct {
		name, src  string
		wantName   string
		wantText   string // description
		wantBody   string
		wantIssues []string
	}{
		{name: "plain", src: "---\nname: a\ndescription: b\n---\nbody\n", wantName: "a", wantText: "b", wantBody: "body\n"},
		{name: "crlf", src: "---\r\nname: a\r\ndescription: b\r\n---\r\nbody\r\n", wantName: "a", wantText: "b", wantBody: "body\r\n"},
		{name: "bom and spaces", src: "\ufeff---  \nname:   a \ndescription: \"b\"\t\n---\t\nbody", wantName: "a", wantText: "b", wantBody: "body"},
		{name: "no body", src: "---\nname: a\ndescription: b\n---", wantName: "a", wantText: "b"},
		{name: "marker in a value", src: "---\nname: a\ndescription: |\n  one\n  ---\n  two --- three\n---\n---\nbody", wantName: "a", wantText: "one\n---\ntwo --- three", wantBody: "---\nbody"},
		{name: "folded", src: "---\nname: a\ndescription: >-\n  one\n  two\n---\n", wantName: "a", wantText: "one two"},
		{name: "number", src: "---\nname: 12\ndescription: 1.50\n---\n", wantName: "12", wantText: "1.50", wantIssues: []string{"2:7 name-not-text", "3:14 description-not-text"}},
		{name: "true and date", src: "---\nname: true\ndescription: 2024-01-02\n---\n", wantName: "true", wantText: "2024-01-02", wantIssues: []string{"2:7 name-not-text", "3:14 description-not-text"}},
		{name: "duplicate", src: "---\nname: a\nname: c\ndescription: b\nx: {y: 1, y: 2}\n---\n", wantName: "c", wantText: "b", wantIssues: []string{"2:1 key-duplicate", "5:5 key-duplicate"}},
		{name: "alias", src: "---\nx: &t some text\nname: a\ndescription: *t\n---\n", wantName: "a", wantText: "some text"},

		{name: "colon", src: "---\nname: a\ndescription: use it: it's good\n---\n", wantName: "a", wantText: "use it: it's good", wantIssues: []string{"3:1 yaml-recovered"}},
		{name: "colon at the end", src: "---\ndescription: b\nname: a:\n---\n", wantName: "a:", wantText: "b", wantIssues: []string{"3:1 yaml-recovered"}},
		{name: "colon on a later line", src: "---\nname: a\ndescription: one\n  two: three\n\n  four\n---\n", wantName: "a", wantText: "one two: three\nfour", wantIssues: []string{"3:1 yaml-recovered"}},
		{name: "colon, nested", src: "---\nname: a\ndescription: b\nmetadata:\n  note: c: d\n  tags: [x]\n---\n", wantName: "a", wantText: "b", wantIssues: []string{"5:1 yaml-recovered"}},
		{name: "colon beside a block", src: "---\nname: a\ndescription: |\n  keep: this: as is\nauthor: x: y\n---\n", wantName: "a", wantText: "keep: this: as is", wantIssues: []string{"5:1 yaml-recovered"}},
		{name: "indicator with text", src: "---\nname: a\ndescription: | one\n  two\n---\n", wantName: "a", wantText: "one\ntwo", wantIssues: []string{"3:1 yaml-recovered"}},
		{name: "indicator with text alone", src: "---\nname: a\ndescription: > one\nversion: 1\n---\n", wantName: "a", wantText: "one", wantIssues: []string{"3:1 yaml-recovered"}},
		{name: "tabs", src: "---\nname: a\ndescription: b\nmetadata:\n\tx: 1\n\ty: 2\n---\n", wantName: "a", wantText: "b", wantIssues: []string{"5:1 yaml-recovered"}},
		{name: "surrogates", src: "---\nname: a\ndescription: \"x \\ud83e\\udde0 y\"\n---\n", wantName: "a", wantText: "x 🧠 y", wantIssues: []string{"3:1 yaml-recovered"}},
		{name: "escaped backslash is not a surrogate", src: "---\nname: a\ndescription: \"x \\\\ud83e\\\\udde0 y\"\n---\n", wantName: "a", wantText: `x \ud83e\udde0 y`},
		{name: "two repairs", src: "---\nname: a\ndescription: | use: one\n  two\nnote: b: c\n---\n", wantName: "a", wantText: "use: one\ntwo", wantIssues: []string{"5:1 yaml-recovered", "3:1 yaml-recovered"}},
		{name: "key by key", src: "---\nname: a\ndescription: **bold** text\n- item\nargument-hint: [x] [y]\n---\n", wantName: "a", wantText: "**bold** text\n- item", wantIssues: []string{"3:1 yaml-recovered", "5:1 yaml-recovered"}},
		{name: "key by key, repaired", src: "---\nname: a\ndescription: see: this\nhomepage: @x\n---\n", wantName: "a", wantText: "see: this", wantIssues: []string{"3:1 yaml-recovered", "4:1 yaml-recovered"}},
		{name: "key by key, text before", src: "---\n<<<<<<< HEAD\nname: a\ndescription: b\n---\n", wantName: "a", wantText: "b", wantIssues: []string{"2:1 yaml-recovered"}},
		{name: "control character", src: "---\nname: a\ndescription: b\x01c\n---\n", wantName: "a", wantText: "b\x01c", wantIssues: []string{"3:1 yaml-recovered"}},
		{name: "broken utf-8", src: "---\nname: a\ndescription: b\xffc\n---\n", wantName: "a", wantText: "b\ufffdc", wantIssues: []string{"3:1 yaml-recovered"}},
		{name: "list as key", src: "---\nname: a\ndescription: b\nmetadata: {[x]: y}\n---\n", wantName: "a", wantText: "b", wantIssues: []string{"4:1 yaml-recovered"}},

		{name: "heading behind the closing line", src: "---\nname: a\ndescription: b\n---# Title\nbody\n", wantName: "a", wantText: "b", wantBody: "# Title\nbody\n", wantIssues: []string{"4:1 yaml-recovered"}},
		{name: "second-level heading behind it", src: "---\nname: a\ndescription: b\n---## Title", wantName: "a", wantText: "b", wantBody: "## Title", wantIssues: []string{"4:1 yaml-recovered"}},
		{name: "a text that begins like it", src: "---\nname: a\ndescription: b\n---#tag\n---\n", wantName: "a", wantText: "b\n---#tag", wantIssues: []string{"3:1 yaml-recovered"}},
		{name: "keys of a text that is not indented", src: "---\nname: a\ndescription: Use it so:\n<example>\nuser: do @this\nname: other\n</example>\n---\n", wantName: "a", wantText: "Use it so:\n<example>", wantIssues: []string{"3:1 yaml-recovered", "6:1 yaml-recovered", "6:1 yaml-recovered"}},
		{name: "equal keys otherwise", src: "---\nname: a\nname: c\ndescription: b: d\n---\n", wantName: "c", wantText: "b: d", wantIssues: []string{"4:1 yaml-recovered", "2:1 key-duplicate"}},
		{name: "no indicator in a recovered text", src: "---\nname: a\ndescription: |\n  one\n two\n- three\n---\n", wantName: "a", wantText: "one\n two\n- three", wantIssues: []string{"3:1 yaml-recovered"}},
		{name: "no folded indicator either", src: "---\nname: a\ndescription: >-\n  one\n two\n- three\n---\n", wantName: "a", wantText: "one\n two\n- three", wantIssues: []string{"3:1 yaml-recovered"}},
		{name: "fence inside", src: "---\n```yaml\nname: a\ndescription: b\n```\n---\n", wantName: "a", wantText: "b", wantIssues: []string{"2:1 yaml-recovered"}},
		{name: "tag", src: "---\nname: a\ndescription: !Important read this\n---\n", wantName: "a", wantText: "read this", wantIssues: []string{"3:14 description-not-text"}},
		{name: "comment in a value", src: "---\nname: a\ndescription: Fixes issue #12 at once\n---\n", wantName: "a", wantText: "Fixes issue", wantIssues: []string{"3:26 value-comment"}},
		{name: "value is a comment", src: "---\nname: a\ndescription: #1 tool for x\n---\n", wantIssues: []string{"3:1 description-missing"}},
		{name: "latin-1", src: "---\nname: a\ndescription: Gr\xf6\xdfe\n---\nbody", wantName: "a", wantText: "Größe", wantBody: "body", wantIssues: []string{"1:1 document-charset"}},

		{name: "fence around", src: "```yaml\n---\nname: a\ndescription: b\n---\n```\n", wantIssues: []string{"1:1 frontmatter-missing"}},
		{name: "empty file", src: "", wantIssues: []string{"1:1 frontmatter-missing"}},
		{name: "no block", src: "# Title\n", wantIssues: []string{"1:1 frontmatter-missing"}},
		{name: "line before", src: "\n---\nname: a\n---\n", wantIssues: []string{"1:1 frontmatter-missing"}},
		{name: "four dashes", src: "----\nname: a\n----\n", wantIssues: []string{"1:1 frontmatter-missing"}},
		{name: "unclosed", src: "---\nname: a\ndescription: b\n", wantIssues: []string{"1:1 frontmatter-unclosed"}},
		{name: "only the opening", src: "---", wantIssues: []string{"1:1 frontmatter-unclosed"}},
		{name: "empty block", src: "---\n---\n", wantIssues: []string{"1:1 name-missing", "1:1 description-missing"}},
		{name: "list", src: "---\n- a\n- b\n---\n", wantIssues: []string{"2:1 frontmatter-not-mapping"}},
		{name: "text", src: "---\n\n# head\nsome words\n---\n", wantIssues: []string{"4:1 frontmatter-not-mapping"}},
		{name: "nothing to read", src: "---\n\n > [[a]], [b]]\n---\n", wantIssues: []string{"3:2 yaml-invalid"}},
		{name: "no name", src: "---\ndescription: b\n---\n", wantIssues: []string{"1:1 name-missing"}},
		{name: "empty name", src: "---\ndescription: b\nname:\n---\n", wantIssues: []string{"3:1 name-missing"}},
		{name: "name is a list", src: "---\nname: [a]\ndescription: b\n---\n", wantIssues: []string{"2:1 name-missing"}},
		{name: "description of spaces", src: "---\nname: a\ndescription: \"  \"\n---\n", wantIssues: []string{"3:1 description-missing"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc, problems := Parse("f", []byte(tt.src))
			if diff := cmp.Diff(tt.wantIssues, codes(problems)); diff != "" {
				t.Errorf("Parse(%q): diagnostics (-want +got):\n%s\n%v", tt.src, diff, problems)
			}
			if (doc == nil) != (tt.wantName == "") {
				t.Fatalf("Parse(%q) = %v, want a document: %v", tt.src, doc, tt.wantName != "")
			}
			if doc == nil {
				return
			}
			if doc.Name != tt.wantName || doc.Description != tt.wantText {
				t.Errorf("Parse(%q) = name %q, description %q, want %q, %q", tt.src, doc.Name, doc.Description, tt.wantName, tt.wantText)
			}
			if got := string(charset.Text([]byte(tt.src))[doc.BodyOffset:]); got != tt.wantBody {
				t.Errorf("Parse(%q): body %q, want %q", tt.src, got, tt.wantBody)
			}
		})
	}
}

func TestParseFields(t *testing.T) {
	yes, no, ten, most := true, false, 10, 300
	tests := []struct {
		block      string
		want       Document
		wantIssues []string
	}{
		{block: "tags: [a, 1, \" c \"]\nmodes:\n  - Dev\n  - Global", want: Document{Tags: []string{"a", "1", "c"}, Modes: []string{"Dev", "Global"}}},
		{block: "tags: a, b\nmodes: Dev", want: Document{Tags: []string{"a", "b"}, Modes: []string{"Dev"}}, wantIssues: []string{"4:7 key-wrong-type", "5:8 key-wrong-type"}},
		{block: "tags: {a: b}\nmodes: [[Dev]]", wantIssues: []string{"4:7 key-wrong-type", "5:8 key-wrong-type"}},
		{block: "tags:\nmodes: []\ntimeout:\nread_only: ~\nlicense:"},
		{block: "license: MIT\ncompatibility: any\nversion: 1.0\nauthor: me\nallowed-tools: Read, Grep\nargument-hint: <file>",
			want: Document{License: "MIT", Compatibility: "any", Version: "1.0", Author: "me", AllowedTools: "Read, Grep", ArgumentHint: "<file>"}},
		{block: "allowed-tools: [Read, \"Bash(git:*)\"]\nargument-hint: [file]\nlicense: {x: y}\nversion: 2024-01-02",
			want: Document{AllowedTools: "Read, Bash(git:*)", ArgumentHint: "[file]", Version: "2024-01-02"}, wantIssues: []string{"6:10 key-wrong-type"}},
		{block: "read_only: true\nalways_ask: False\nnetwork: yes\ntimeout: 10\ndisable-model-invocation: true\nuser-invocable: false",
			want: Document{ReadOnly: &yes, AlwaysAsk: &no, Network: &yes, Timeout: &ten, DisableModelInvocation: true, UserInvocable: &no}},
		{block: "read_only: maybe\nalways_ask: \"true\"\nnetwork: [x]\ntimeout: soon\ndisable-model-invocation: 1",
			want:       Document{AlwaysAsk: &yes, DisableModelInvocation: true},
			wantIssues: []string{"4:12 key-wrong-type", "5:13 key-wrong-type", "6:10 key-wrong-type", "7:10 key-wrong-type", "8:27 key-wrong-type"}},
		// An unreadable safeguard restricts as if it were set.
		{block: "always_ask: perhaps\ndisable-model-invocation: yes please", want: Document{AlwaysAsk: &yes, DisableModelInvocation: true},
			wantIssues: []string{"4:13 key-wrong-type", "5:27 key-wrong-type"}},
		{block: "always_ask:\ndisable-model-invocation:", want: Document{AlwaysAsk: &yes, DisableModelInvocation: true},
			wantIssues: []string{"4:12 key-wrong-type", "5:26 key-wrong-type"}},
		{block: "cache: go-build", want: Document{Cache: "go-build"}},
		{block: "cache:\nversion: 1", want: Document{Version: "1"}},
		{block: "metadata: {author: me, version: \"1.2\"}\nversion: 2.0", want: Document{Version: "2.0", MetadataVersion: "1.2"}},
		{block: "metadata:\n  version: [1]", want: Document{}},
		{block: "metadata: none", want: Document{}},
		{block: "cache: ../x", wantIssues: []string{"4:8 key-wrong-type"}},
		{block: "cache: [go-build]", wantIssues: []string{"4:8 key-wrong-type"}},
		{block: "review: all", want: Document{Review: true}},
		{block: "review: false", want: Document{Review: true}, wantIssues: []string{"4:9 key-wrong-type"}},
		{block: "disable-model-invocation: {a: b}\nuser-invocable: perhaps", want: Document{DisableModelInvocation: true},
			wantIssues: []string{"4:27 key-wrong-type", "5:17 key-wrong-type"}},
		{block: "disable-model-invocation: true: x", want: Document{DisableModelInvocation: true}, wantIssues: []string{"4:1 yaml-recovered", "4:27 key-wrong-type"}},
		{block: "disable-model-invocation: off\nuser-invocable: no\nread_only:\nnetwork: ~", want: Document{UserInvocable: &no}},
		{block: "timeout: 0", wantIssues: []string{"4:10 key-wrong-type"}},
		{block: "timeout: 99999999999999999999", wantIssues: []string{"4:10 key-wrong-type"}},
		{block: "timeout: 301", want: Document{Timeout: &most}, wantIssues: []string{"4:10 key-wrong-type"}},
	}
	for _, tt := range tests {
		doc, problems := Parse("f", []byte("---\nname: a\ndescription: b\n"+tt.block+"\n---\n"))
		if doc == nil {
			t.Errorf("Parse(%q) = nil, %v", tt.block, problems)
			continue
		}
		if diff := cmp.Diff(tt.wantIssues, codes(problems)); diff != "" {
			t.Errorf("Parse(%q): diagnostics (-want +got):\n%s", tt.block, diff)
		}
		if diff := cmp.Diff(fieldsOf(&tt.want), fieldsOf(doc)); diff != "" {
			t.Errorf("Parse(%q): (-want +got):\n%s", tt.block, diff)
		}
	}
}

// Messages name the text that causes the problem.
func TestMessages(t *testing.T) {
	for src, want := range map[string][2]string{
		"```yaml\n---\nname: a\ndescription: b\n---\n```\n":  {"```yaml", "fence"},
		"---\n```\nname: a\ndescription: b\n```\n---\n":      {"```", "fence"},
		"!---\nname: a\ndescription: b\n---\n":               {`"!"`, "first line"},
		"# ---\nname: a\ndescription: b\n---\n":              {`"#"`, "first line"},
		"---\nname: #a\ndescription: b\n---\n":               {"begins with #", "quotes"},
		"---\nname: a\ndescription: !Use this\n---\n":        {"begins with !", "quotes"},
		"---\nname: a\ndescription: Fixes issue #12\n---\n":  {"#12", "quotes"},
		"---\nname: a\ndescription: b\n---# Title\n":         {`"# Title"`, "line of its own"},
		"---\r\nname: a\r\ndescription: b\r\n---# Title\r\n": {`"# Title"`, "line of its own"},
		"---\nname: a\ndescription: caf\xe9s\n---\n":         {"Latin-1", "UTF-8"},
		"\n\n---\nname: a\ndescription: b\n---\n":            {"before the line ---", "remove"},
		"```yaml\nname: a\ndescription: b\n```\n":            {"```yaml", "in place of both lines"},
		"# Title\n\n---\nname: a\ndescription: b\n---\n":     {`line 3, after "# Title"`, "beginning of the file"},
		"<!-- x -->\r\n---\r\nname: a\r\n---\r\n":            {`line 2, after "<!-- x -->"`, "beginning of the file"},
		"# Title\n\n```\n---\nname: a\n---\n```\n":           {"no frontmatter", "begin the file"},
		"----\nname: a\n----\n":                              {`is "----"`, "make the first line ---"},
		"---yaml\nname: a\n---\n":                            {`is "---yaml"`, "make the first line ---"},
		"+++\nname = \"a\"\n+++\n":                           {`"+++"`, "begin the file"},
		"---\nname: a\n--- # Title\nbody\n":                  {`line 3, "--- # Title", does not close it`, "only ---"},
		"---\nname: a\n...\nbody\n":                          {`line 3, "...", does not close it`, "only ---"},
		"---\r\nname: a\r\nx: y\r\n ---\r\nbody\r\n":         {`line 4, "---", does not close it`, "only ---"},
		"---\nname: a\nbody\n":                               {"no closing line ---", "only ---"},
		"# Title\n\n---\n\nText\n":                           {"no frontmatter", "begin the file"},
	} {
		_, problems := Parse("f", []byte(src))
		if len(problems) == 0 || !strings.Contains(problems[0].Message, want[0]) || !strings.Contains(problems[0].Message+problems[0].Hint, want[1]) {
			t.Errorf("Parse(%q) says %+v, want %q and %q", src, problems, want[0], want[1])
		}
	}
}

// UTF-16 is read as any other text.
func TestUTF16(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		var src []byte
		for _, u := range utf16.Encode([]rune("\ufeff---\r\nname: a\r\ndescription: größe 🧠\r\n---\r\nbody")) {
			src = order.AppendUint16(src, u)
		}
		doc, problems := Parse("f", src)
		if doc == nil || doc.Description != "größe 🧠" || !slices.Equal(codes(problems), []string{"1:1 document-charset"}) {
			t.Errorf("%v: Parse = %+v, %v, want the description and a warning", order, doc, problems)
		}
	}
}

// fieldsOf returns what a document says, but for name and description.
// specs/skill-md-tools.md, "Example Frontmatter", and the fields of its two tables
// with their types.
func TestSpecificationExample(t *testing.T) {
	yes, ten := true, 10
	doc, problems := Parse("f", []byte(`---
name: git-status
version: 1.0.0
description: Show git working tree status. Use when user asks about git state, uncommitted changes, or branch info.
author: gibb.eri.sh
modes: [Dev, Global]
read_only: true
timeout: 10
---
`))
	if doc == nil || len(problems) > 0 {
		t.Fatalf("Parse = %v, %v, want a document and no problem", doc, problems)
	}
	want := Document{Version: "1.0.0", Author: "gibb.eri.sh", Modes: []string{"Dev", "Global"}, ReadOnly: &yes, Timeout: &ten}
	if diff := cmp.Diff(fieldsOf(&want), fieldsOf(doc)); diff != "" || doc.Name != "git-status" || !strings.HasPrefix(doc.Description, "Show git working tree status. Use when") {
		t.Errorf("Parse = %+v: -want +got\n%s", doc, diff)
	}
}

func fieldsOf(d *Document) any {
	return []any{d.Tags, d.Modes, d.License, d.Compatibility, d.ArgumentHint, d.Version, d.Author, d.AllowedTools,
		d.ReadOnly, d.AlwaysAsk, d.Network, d.Timeout, d.DisableModelInvocation, d.UserInvocable}
}

func TestLimits(t *testing.T) {
	block := func(n int) []byte {
		head := "name: a\ndescription: b\nx: "
		return []byte("---\n" + head + strings.Repeat("y", n-len(head)-1) + "\n---\n")
	}
	if doc, problems := Parse("f", block(MaxSize)); doc == nil || len(problems) > 0 {
		t.Errorf("Parse of a block of %d bytes = %v, want a document", MaxSize, problems)
	}
	for _, src := range [][]byte{block(MaxSize + 1), block(MaxSize + 1)[:MaxSize+5]} {
		if doc, problems := Parse("f", src); doc != nil || codes(problems)[0] != "1:1 frontmatter-too-large" {
			t.Errorf("Parse of %d bytes = %v, %v, want too large", len(src), doc, problems)
		}
	}

	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n"
	tests := map[string]string{
		"bomb":      bomb,
		"deep":      "a: " + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + "\n",
		"unclosed":  "a: " + strings.Repeat("[", 30_000) + "\n",
		"recursive": "a: &a\n  b: *a\n",
	}
	for name, block := range tests {
		doc, problems := Parse("f", []byte("---\nname: a\n"+block+"description: b\n---\n"))
		if doc == nil || doc.Description != "b" || len(problems) == 0 {
			t.Errorf("%s: Parse = %v, %v, want a document and a warning", name, doc, problems)
		}
	}
	many := "---\nname: a\ndescription: b\n" + strings.Repeat("x: y: z\n", 1000) + "---\n"
	if _, problems := Parse("f", []byte(many)); len(problems) > maxWarnings {
		t.Errorf("Parse = %d warnings, want at most %d", len(problems), maxWarnings)
	} else if last := problems[len(problems)-1]; strings.Count(fmt.Sprint(problems), "more problems are not shown") != 1 || !strings.Contains(last.Message, "more problems are not shown") {
		t.Errorf("the last of %d warnings = %v, want it to say that there are more", len(problems), last)
	}
}

func TestInspect(t *testing.T) {
	doc, problems := Inspect("f", []byte("---\nname: a\n---\n"), MaxSize)
	if doc == nil || doc.Name != "a" || !diag.HasErrors(problems) {
		t.Errorf("Inspect = %v, %v, want the name and an error", doc, problems)
	}
}

func TestNode(t *testing.T) {
	tests := []string{
		"# hello\nname: a\ndescription: b\n\nX-Odd: {k: [1, two]}\n", // as it stands
		"name: a\ndescription: b: c\n\n\nX-Odd: {k: [1, two]}\n",     // repaired
		"name: a\ndescription: @c\n\n\nX-Odd: {k: [1, two]}\n",       // key by key
	}
	for _, block := range tests {
		doc, _ := Parse("f", []byte("---\n"+block+"---\n"))
		if doc == nil {
			t.Fatalf("Parse(%q) = nil", block)
		}
		if got := doc.KeyLine("X-Odd"); got != 6 {
			t.Errorf("KeyLine = %d, want 6 in %q", got, block)
		}
		if got := doc.KeyLine("absent"); got != 0 {
			t.Errorf("KeyLine = %d, want 0", got)
		}
		var got map[string]any
		if err := doc.Node().Decode(&got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]any{"k": []any{1, "two"}}, got["X-Odd"]); diff != "" {
			t.Errorf("Node of %q (-want +got):\n%s", block, diff)
		}
	}
}

func TestFind(t *testing.T) {
	tests := []struct {
		src  string
		want State
	}{
		{"---\n---\n", Closed}, {"---\na: b\n---", Closed}, {"---\na: b\n ---\n", Unclosed}, {"---\n", Unclosed},
		{" ---\n---\n", NotFound}, {"-- -\n", NotFound}, {"\ufeff---\n---", Closed}, {"---\na: b\n--- x\n", Unclosed},
	}
	for _, tt := range tests {
		if _, got := Find([]byte(tt.src)); got != tt.want {
			t.Errorf("Find(%q) = %v, want %v", tt.src, got, tt.want)
		}
	}
}

// render writes the document's frontmatter anew.
func render(t *testing.T, doc *Document) []byte {
	t.Helper()
	node := doc.Node()
	plain(node)
	text, err := yaml.Marshal(node)
	if err != nil {
		t.Fatalf("rendering: %v", err)
	}
	return append(append([]byte("---\n"), text...), "---\n"...)
}

// plain quotes every text, so that the rendering does not depend on which
// style yaml.v3 can write.
func plain(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		n.Style = yaml.DoubleQuotedStyle
	}
	if n.Kind == yaml.ScalarNode && n.Tag == "!!null" {
		n.Value = "null"
	}
	for _, c := range n.Content {
		plain(c)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"---\nname: a\ndescription: b\n---\nbody", "---\r\nname: 1\r\ndescription: x: y\r\n---\r\n", "---\nname: a\ndescription: | x\n  y\ntags: [a]\n---\n",
		"---\nname: \"\\ud83e\\udde0\"\ndescription: **b**\nread_only: \"yes\"\n---\n", "---\na: &a {b: *a}\n<<: *a\nname: [x] y\ndescription: @\n---\n",
		"---\n\tname: a\n---\n", "---\n? [a]\n: b\nname: a\ndescription: b\n---", "---\nname: !!binary aGk=\ndescription: !x y\ntimeout: 0x10\n---\n", "---\n\"name\": a\n'description': b\nname: c\n---\n",
		"---\nname: a\ndescription: \"b: c # d\"\r\nlicense: 'é'\nargument-hint: b\u00a0c #d\n---\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		if b, state := Find(src); state == Closed {
			checkPlain(t, string(src[b.Start:b.End]))
		}
		doc, problems := Parse("f", src)
		if (doc == nil) != diag.HasErrors(problems) {
			t.Fatalf("Parse(%q) = %v, %v: a document or an error, never both", src, doc, problems)
		}
		if doc == nil {
			return
		}
		if doc.BodyOffset < 0 || doc.BodyOffset > len(charset.Text(src)) || doc.Name == "" || doc.Description == "" {
			t.Fatalf("Parse(%q) = %+v", src, doc)
		}
		text := render(t, doc)
		if len(text) > MaxSize {
			return // escapes may make it longer
		}
		again, problems := Parse("f", text)
		if again == nil {
			t.Fatalf("Parse(%q), rendered from %q: %v", text, src, problems)
		}
		if doc.Name != again.Name || doc.Description != again.Description || !cmp.Equal(fieldsOf(doc), fieldsOf(again)) {
			t.Fatalf("Parse(%q) = %+v, rendered as %q, %+v", src, doc, text, again)
		}
		if third := render(t, again); string(third) != string(text) {
			t.Fatalf("rendered as %q, then as %q", text, third)
		}
	})
}
