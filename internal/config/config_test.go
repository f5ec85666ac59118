package config

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/config/problem"
	"github.com/packs-mcp/packs-mcp/internal/quota"
	"github.com/packs-mcp/packs-mcp/internal/rules"
)

// load loads a file with the given content. Home is /home/ann, and the working
// folder is /desk.
func load(t testing.TB, content string, change func(*Options)) (*Config, string, error) {
	t.Helper()
	dir := t.TempDir()
	o := Options{
		File:    filepath.Join(dir, "config.yaml"),
		Environ: []string{"HOME=/home/ann"},
		Dir:     "/desk",
		GOOS:    "linux",
	}
	if err := os.WriteFile(o.File, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&o)
	}
	c, err := Load(o)
	return c, dir, err
}

func TestLoadEverything(t *testing.T) {
	got, dir, err := load(t, `
packs:
  - ~/packs
  - path: more
    attach: all
  - path: /srv/packs
    attach: [acme/lint, refunds]
    trust: untrusted
    entry: {billing: GUIDE.md}
    docs:
      ./billing/: [docs/api.md, ./docs//more.md]
  - {path: x, attach: none}
compat: [stakpak, claude]
mode: Work
project: ../project
tool_names: dotted
approval: {policy: first-run, channels: [terminal, page], prompts: ask, notify: false, wait: 1m30s, pending: 1h}
rules:
  - deny: {argv: [git, push, "**"]}
    match: [[git, push, -f], {pack: a, kind: run, tool: t, argv: [/usr/bin/git, push]}]
    not_match: [[git, status], {kind: open}]
  - match: [{pack: acme/docs, kind: open}]
    allow: {pack: acme/*, kind: [open, read]}
  - ask: {tool: "*_prod", kind: run}
  - allow: {argv: [~/bin/x, -n, 5, 1.0, true, 2020-01-01]}
  - allow: {tool: acme/cc/*, argv: [cc, "**"], env: [CC, "C_*"], cwd: ~/src, stdin: true}
    match: [{pack: acme/cc, tool: t, argv: [cc], env: [C_X], cwd: ~/src, stdin: true}]
    not_match: [{argv: [cc], env: [X]}, {argv: [cc], cwd: project}, {kind: exec}]
sandbox:
  require: full
  timeout_max: 10m
  grants:
    - {pack: "acme/*", env: [GITHUB_TOKEN, LD_PRELOAD], read: [~/.config/gh, /srv//data/], home: true}
    - pack: "*"
      kind: exec
      write: [~/.cache/gh]
    - {tool: acme/*/open_*, kind: [run], home: true, review: all}
  protect: [deploy/**, "*.secret"]
  unprotect: [CODEOWNERS]
sources: {private: [127.0.0.1, Git.Example.org], rulebooks: "https://rules.example.org/api/", indexes: [acme/packs, "https://example.org"], sigstore: /etc/packs/trusted_root.json}
context: {url: "https://example.com", number: 5, flag: true}
limits: &l
  read_page: 20000
  output: 32KiB
  memory: 4 GiB
  processes: 10
  timeout: 45s
  cpu: 60s
  held: 2GiB
  held_age: 48h
  workspaces: 3GiB
  workspaces_age: 48h
approvers:
  - {packs: ["prod/*", billing], kinds: [run, exec], who: ["group:sre", "grace@example.com 3f9a1c2d5b60e4a781c0ffd2", "person:a:b"], not_self: true}
  - {who: [asker, operator]}
roles: {use: ["group:engineering"]}
http: {addr: "[::]:8443", tokens: [{name: Ada L., token: 1234567890123456, groups: [sre, on call]}, {name: bob@example.com, token: s3cret-s3cret-s3cret}], tls_cert: tls/cert.pem, tls_key: ~/key.pem, issuer: https://login.example/, calls: 50, calls_each: 5, calls_group: [sre=20, on call=5], runs_each: 6, runs_group: [sre=12], questions_each: 7, questions_group: [sre=14, on call=3], memory_each: 8GiB, memory_group: [on call=16GiB], drain: 1m,
  oidc: {issuer: https://login.example/, audience: packs, person: sub, groups: realm_access.roles, allow: [sre, "https://x.example/ops"], scopes: [], people: 200, client: terminals, client_secret: s3cret}}
audit: {path: ~/log/audit.jsonl, max_size: 0, full_arguments: true}
log: {level: debug, format: json}
expose: skills
`, nil)
	if err != nil {
		t.Fatalf("Load() = %v, want no error", err)
	}
	want := Default()
	want.File = filepath.Join(dir, "config.yaml")
	want.Paths = got.Paths
	want.Packs = []Root{
		{Path: "/home/ann/packs", Trust: TrustUser, Source: FromFile},
		{Path: filepath.Join(dir, "more"), Trust: TrustUser, Source: FromFile, Attach: Attach{All: true}},
		{Path: "/srv/packs", Trust: TrustUntrusted, Source: FromFile, Attach: Attach{IDs: []string{"acme/lint", "refunds"}},
			Entry: map[string]string{"billing": "GUIDE.md"}, Docs: map[string][]string{"billing": {"docs/api.md", "docs/more.md"}}},
		{Path: filepath.Join(dir, "x"), Trust: TrustUser, Source: FromFile},
	}
	want.Compat = []string{"stakpak", "claude"}
	want.Mode = "Work"
	want.Project = filepath.Join(filepath.Dir(dir), "project")
	want.ToolNames, want.Expose = Dotted, ExposeSkills
	want.Approval = Approval{PolicyFirstRun, []string{ChannelTerminal, ChannelPage}, PromptsAsk, false, 90 * time.Second, time.Hour}
	want.Rules = []rules.Rule{
		{Effect: rules.Deny, Argv: []string{"git", "push", "**"}, Where: "config.yaml:19"},
		{Effect: rules.Allow, Pack: "acme/*", Kinds: []string{"open", "read"}, Where: "config.yaml:22"},
		{Effect: rules.Ask, Tool: "*_prod", Kinds: []string{"run"}, Where: "config.yaml:24"},
		{Effect: rules.Allow, Argv: []string{"/home/ann/bin/x", "-n", "5", "1.0", "true", "2020-01-01"}, Where: "config.yaml:25"},
		{
			Effect: rules.Allow, Tool: "acme/cc/*", Argv: []string{"cc", "**"}, Env: []string{"CC", "C_*"}, Cwd: "/home/ann/src", Stdin: true,
			Where: "config.yaml:26",
		},
	}
	want.Sandbox = Sandbox{Require: RequireFull, TimeoutMax: 10 * time.Minute, Runner: RunnerLocal, Grants: []Opening{
		{Pack: "acme/*", Tool: "*", Env: []string{"GITHUB_TOKEN", "LD_PRELOAD"}, Read: []string{"/home/ann/.config/gh", "/srv/data"}, Home: true},
		{Pack: "*", Tool: "*", Kinds: []string{"exec"}, Write: []string{"/home/ann/.cache/gh"}},
		{Pack: "acme/*", Tool: "open_*", Kinds: []string{"run"}, Home: true, Review: true},
	}, Protect: []string{"deploy/**", "*.secret"}, Unprotect: []string{"CODEOWNERS"}}
	want.Approvers = []approvers.Rule{
		{Packs: []string{"prod/*", "billing"}, Kinds: []string{"run", "exec"}, NotSelf: true, Where: "config.yaml:54", Who: []approvers.Who{
			{Kind: approvers.Group, Name: "sre"}, {Kind: approvers.Named, Name: "grace@example.com 3f9a1c2d5b60e4a781c0ffd2"}, {Kind: approvers.Named, Name: "a:b"},
		}},
		{Who: []approvers.Who{{Kind: approvers.Asker}, {Kind: approvers.Operator}}, Where: "config.yaml:55"},
	}
	want.Roles = Roles{Use: []approvers.Who{{Kind: approvers.Group, Name: "engineering"}}}
	want.Sources = Sources{[]string{"127.0.0.1", "git.example.org"}, "https://rules.example.org/api", []string{"acme/packs", "https://example.org"}, "/etc/packs/trusted_root.json"}
	want.Context = map[string]string{"url": "https://example.com", "number": "5", "flag": "true"}
	want.Limits.ReadPage, want.Limits.Output, want.Limits.Memory, want.Limits.Processes = 20_000, 32*kib, 4*gib, 10
	want.Limits.Timeout, want.Limits.CPU = 45*time.Second, time.Minute
	want.Limits.Held, want.Limits.HeldAge = 2*gib, 48*time.Hour
	want.Limits.Workspaces, want.Limits.WorkspacesAge = 3*gib, 48*time.Hour
	want.HTTP = HTTP{
		Addr: "[::]:8443", Tokens: []Token{{"Ada L.", "1234567890123456", []string{"sre", "on call"}}, {"bob@example.com", "s3cret-s3cret-s3cret", nil}}, InFile: true,
		TLSCert: filepath.Join(dir, "tls", "cert.pem"), TLSKey: "/home/ann/key.pem", Issuer: "https://login.example/", Calls: 50, CallsOf: quota.Limits{Each: 5, Group: map[string]int64{"sre": 20, "on call": 5}}, RunsOf: quota.Limits{Each: 6, Group: map[string]int64{"sre": 12}}, WaitingOf: quota.Limits{Each: 7, Group: map[string]int64{"sre": 14, "on call": 3}}, MemoryOf: quota.Limits{Each: 8 << 30, Group: map[string]int64{"on call": 16 << 30}}, Drain: time.Minute,
		OIDC: OIDC{"https://login.example/", "packs", "sub", "realm_access.roles", []string{"sre", "https://x.example/ops"}, nil, 200, "terminals", "s3cret"},
	}
	want.Audit = Audit{"/home/ann/log/audit.jsonl", 0, true}
	want.Log = Log{slog.LevelDebug, FormatJSON}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Load() differs (-want +got):\n%s", diff)
	}
}

// example returns the file that docs/reference/configuration.md shows, with every
// key, its default and its purpose.
func example(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "\n```yaml\n")
	text, _, ok := strings.Cut(text, "```\n")
	if !ok {
		t.Fatal("the page shows no example")
	}
	return text
}

// The documented file gives the same configuration as no file.
func TestExampleIsDefault(t *testing.T) {
	want := Default()
	want.Context = map[string]string{}
	for name, content := range map[string]string{
		"example": example(t), "empty": "", "comments": "# nothing\n", "null": "~\n", "only marker": "---\n",
		"empty sections": "approval:\nlimits: # none\npacks:\ncontext:\nsandbox:\n  grants:\nrules:\n", "BOM": "\ufeffmode: Global\n", "CRLF": "mode: Global\r\nlog:\r\n  level: info\r\n",
	} {
		got, _, err := load(t, content, nil)
		if err != nil {
			t.Errorf("%s: Load() = %v, want no error", name, err)
			continue
		}
		want.File, want.Paths, want.Audit.Path = got.File, got.Paths, "/home/ann/.local/state/packs-mcp/audit.jsonl"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: Load() differs from Default() (-want +got):\n%s", name, diff)
		}
	}
	for line := range strings.SplitSeq(example(t), "\n") {
		if len(line) > 110 {
			t.Errorf("the example's line %q has %d characters, want at most 110", line, len(line))
		}
	}
}

// Every key is in the example, and no value is zero by accident: no other test
// would notice a key that the example leaves out.
func TestExampleHasEveryKey(t *testing.T) {
	all := example(t)
	for _, path := range paths() {
		above := strings.Count(path, ".")
		want := "\n" + strings.Repeat("  ", above) + path[strings.LastIndexByte(path, '.')+1:] + ":"
		if !strings.Contains(all, want) {
			t.Errorf("the example has no %q for %s", want, path)
		}
	}
}

func TestFileProblems(t *testing.T) {
	for _, tc := range []struct {
		name, content, want string // FILE stands for the file
	}{
		{"approvers that name nobody", "approvers:\n  - {packs: [a]}\n", `FILE:2:5: approvers[0]: names nobody; add who, such as ["group:sre"]`},
		{"approvers that leave out whom they name", "approvers: [{who: [asker], not_self: true}]\n", `FILE:1:13: approvers[0]: lets nobody answer: it names the person who asks and leaves them out`},
		{"approvers of no pack", "approvers: [{packs: [], who: [ada]}]\n", `FILE:1:21: approvers[0].packs: is empty; name at least one, or remove it`},
		{"approvers of a kind that is none", "approvers: [{kinds: [runs], who: [ada]}]\n", `FILE:1:22: approvers[0].kinds[0]: is "runs"; want open, read, enable, run, exec or attach`},
		{"approvers of a team", "approvers: [{who: [\"team:sre\"]}]\n", `FILE:1:20: approvers[0].who[0]: is "team:sre"; it is none of asker, operator, group:NAME, person:NAME and the name of a person`},
		{"not_self in words", "approvers: [{who: [ada], not_self: yes please}]\n", `FILE:1:36: approvers[0].not_self: is the text "yes please"; want true or false`},
		{"a role that is none", "roles: {usr: [ada]}\n", `FILE:1:9: roles.usr: unknown key; did you mean use?`},
		{"rulebooks over ftp", "sources:\n  rulebooks: ftp://example.org\n", `FILE:2:14: sources.rulebooks: is "ftp://example.org"; want a URL such as https://host, without a user, a query or a fragment`},
		{"unknown key two levels down", "http:\n  oidc:\n    isuer: x\n", `FILE:3:5: http.oidc.isuer: unknown key; did you mean issuer?`},
		{"a provider and no audience", "http:\n  oidc:\n    issuer: https://login.example\n", `FILE:3:13: http.oidc.issuer: needs http.public_url, or http.oidc.audience: what the provider's tokens for this server are for`},
		{"two issuers", "http:\n  public_url: https://packs.example\n  issuer: https://a.example\n  oidc: {issuer: https://b.example}\n", `FILE:3:11: http.issuer: names another issuer than http.oidc.issuer; leave it out`},
		{"a provider that is a list", "http: {oidc: [x]}\n", `FILE:1:14: http.oidc: is a list; want a mapping of keys to values`},
		{"a group without a number", "http: {calls_group: [sre]}\n", `FILE:1:22: http.calls_group[0]: is "sre"; want a group and a number from 1 to 100000, such as contractors=20`},
		{"no calls of a group", "http: {calls_group: [sre=0]}\n", `FILE:1:22: http.calls_group[0]: is "sre=0"; want a group and a number from 1 to 100000, such as contractors=20`},
		{"no runs", "http: {runs_each: 0}\n", `FILE:1:19: http.runs_each: is "0"; want a number from 1 to 1024, or none`},
		{"fewer than no questions", "http: {questions_each: -1}\n", `FILE:1:24: http.questions_each: is "-1"; want a number from 1 to 2048, or none`},
		{"fewer than no runs of a group", "http: {runs_group: [sre=-1]}\n", `FILE:1:21: http.runs_group[0]: is "sre=-1"; want a group and a number from 1 to 100000, such as contractors=20`},
		{"no memory of a group", "http: {memory_group: [sre=0]}\n", `FILE:1:23: http.memory_group[0]: is "sre=0"; want a group and a size from 16MiB to 1TiB, such as contractors=16GiB`},
		{"memory of a group without a unit", "http: {memory_group: [sre=16]}\n", `FILE:1:23: http.memory_group[0]: is "sre=16"; want a group and a size from 16MiB to 1TiB, such as contractors=16GiB`},
		{"too little memory for one program", "http: {memory_each: 1GiB}\n", `FILE:1:21: http.memory_each: is 1GiB, and each program may take 2GiB; raise it, or lower limits.memory`},
		{"too little memory for one program of a group", "limits: {memory_together: 8GiB}\nhttp:\n  memory_group: [sre=9GiB, ops=4GiB]\n", `FILE:3:17: http.memory_group: is 4GiB, and each program may take 8GiB; raise it, or lower limits.memory`},
		{"a group twice", "http: {calls_group: [sre=1, sre=2]}\n", `FILE:1:29: http.calls_group[1]: is "sre=2"; name the group once`},
		{"a scope of two words", "http: {oidc: {scopes: [\"a b\"]}}\n", `FILE:1:24: http.oidc.scopes[0]: is "a b"; want a name of at most 256 bytes, without spaces, quotes and backslashes`},
		{"a private URL", "sources:\n  private: [https://example.org]\n", `FILE:2:13: sources.private[0]: is "https://example.org"; want the name or address of a host, without a scheme`},
		{"unknown key", "moode: x\n", `FILE:1:1: moode: unknown key; did you mean mode?`},
		{"unknown nested key", "approval:\n  wiat: 5s\n", `FILE:2:3: approval.wiat: unknown key; did you mean wait?`},
		{"key of a section", "wait: 5s\n", `FILE:1:1: wait: unknown key; did you mean approval.wait?`},
		{"far from any", "log: {colour: true}\n", `FILE:1:7: log.colour: unknown key; known here are level, format`},
		{"an index twice", "sources:\n  indexes: [acme/packs, acme/packs]\n", `FILE:2:25: sources.indexes[1]: is "acme/packs"; name it once`},
		{"an index with a space", "sources:\n  indexes: [\"acme packs\"]\n", `FILE:2:13: sources.indexes[0]: is "acme packs"; want an address of packs, as packs-mcp add takes it`},
		{"strange key", "\"a\\u202eb\": 1\n", `FILE:1:1: "a\u202eb": unknown key; known here are packs, rules, approvers, context, compat, mode, project, tool_names, expose, approval, roles, sandbox, sources, limits, http, audit, store, log`},
		{"key is a list", "[a]: 1\n", `FILE:1:1: a key is a list; want a word`},
		{"duplicate", "mode: a\nlog: {}\nmode: b\n", `FILE:3:1: mode: occurs twice; the first is in line 1`},
		{"duplicate section", "log: {level: info}\nlog: {level: warn}\n", `FILE:2:1: log: occurs twice; the first is in line 1`},
		{"http address", "http: {addr: \"evil:http\"}\n", `FILE:1:14: http.addr: is "evil:http"; want host:port, such as 127.0.0.1:8080, localhost:0 or 0.0.0.0:8443`},
		{"short token", "http: {token: s3cret}\n", `FILE:1:15: http.token: want at least 16 letters, digits or signs, without spaces, in quotes; a random one is best`},
		{"token of another kind", "http: {token: [s3cret]}\n", `FILE:1:15: http.token: want at least 16 letters, digits or signs, without spaces, in quotes; a random one is best`},
		{"public URL", "http: {public_url: packs.example}\n", `FILE:1:20: http.public_url: is "packs.example"; want a URL such as https://packs.example.com`},
		{"person without token", "http: {tokens: [{name: ada}]}\n", `FILE:1:17: http.tokens[0]: needs a name and a token`},
		{"short token of a person", "http: {tokens: [{name: ada, token: s3cret}]}\n", `FILE:1:36: http.tokens[0].token: want at least 16 letters, digits or signs, without spaces, in quotes; a random one is best`},
		{"hostile name", "http: {tokens: [{name: \"a\\nb\", token: s3cret-s3cret-s3cret}]}\n", `FILE:1:24: http.tokens[0].name: want a name of at most 64 letters, digits, spaces, or any of . _ @ -`},
		{"name of the operator", "http: {tokens: [{name: Operator, token: s3cret-s3cret-s3cret}]}\n", `FILE:1:24: http.tokens[0].name: is "Operator", which means somebody else in approvers and in the audit log; choose another name`},
		{"name of a provider's person", "http: {tokens: [{name: ada@example.com 3f9a1c2d5b60e4a781c0ffd2, token: s3cret-s3cret-s3cret}]}\n", `FILE:1:24: http.tokens[0].name: has the form of a name of an identity provider's person; leave out the digits at its end`},
		{"one token for two", "http: {tokens: [{name: ada, token: s3cret-s3cret-s3cret}, {name: bob, token: s3cret-s3cret-s3cret}]}\n", `FILE:1:59: http.tokens[1]: has the name or the token of another one; each person has their own`},
		{"token of a person for all", "http: {token: s3cret-s3cret-s3cret, tokens: [{name: ada, token: s3cret-s3cret-s3cret}]}\n", `FILE:1:15: http.token: is the token of a person in http.tokens too; each needs another one`},
		{"unknown program", "compat: [claude, vim]\n", `FILE:1:18: compat[1]: is "vim"; want agents, claude, codex, copilot, cursor, gemini, gibberish, goose, opencode or stakpak`},
		{"program twice", "compat: [claude, claude]\n", `FILE:1:18: compat[1]: is "claude"; name it once`},
		{"prompts", "approval: {prompts: yes}\n", `FILE:1:21: approval.prompts: is "yes"; want auto, allow or ask`},
		{"notify", "approval: {notify: often}\n", `FILE:1:20: approval.notify: is the text "often"; want true or false`},
		{"policy", "approval: {policy: never}\n", `FILE:1:20: approval.policy: is "never"; want every-call, first-run or balanced`},
		{"channel", "approval: {channels: [elicitation, mail]}\n", `FILE:1:36: approval.channels[1]: is "mail"; want elicitation, page, terminal or app`},
		{"protects everything", "sandbox: {protect: [a, \"**\"]}\n", `FILE:1:24: sandbox.protect[1]: is "**"; want a name or a path without its beginning, in which "*" is any text of one name, such as deploy/** or "*.secret"`},
		{"protects a path", "sandbox: {protect: [/etc/x]}\n", `FILE:1:21: sandbox.protect[0]: is "/etc/x"; want a name or a path without its beginning, in which "*" is any text of one name, such as deploy/** or "*.secret"`},
		{"protects no list", "sandbox: {protect: deploy}\n", `FILE:1:20: sandbox.protect: is "deploy"; want a list`},
		{"protects twice", "sandbox:\n  protect:\n    - a\n    - a\n", `FILE:4:7: sandbox.protect[1]: is "a"; name it once`},
		{"git is not taken out", "sandbox: {unprotect: [CODEOWNERS, .git]}\n", `FILE:1:35: sandbox.unprotect[1]: is ".git"; want a name of the list, spelled as the reason of a held change begins, such as CODEOWNERS or .vscode/**; what is .git cannot be taken out`},
		{"workspaces_age", "limits: {workspaces_age: 1h}\n", `FILE:1:26: limits.workspaces_age: is "1h"; want a time from 24h to 87600h with its unit, such as 45s or 5m`},
		{"held_age", "limits: {held_age: 1m}\n", `FILE:1:20: limits.held_age: is "1m"; want a time from 1h to 720h with its unit, such as 45s or 5m`},
		{"no channel", "approval: {channels: []}\n", `FILE:1:22: approval.channels: is an empty list; name at least one`},
		{"channel twice", "approval: {channels: [elicitation, elicitation]}\n", `FILE:1:36: approval.channels[1]: is "elicitation"; name it once`},
		{"channel no list", "approval: {channels: elicitation}\n", `FILE:1:22: approval.channels: is "elicitation"; want a list`},
		{"word", "log:\n  level: loud\n", `FILE:2:10: log.level: is "loud"; want debug, info, warn or error`},
		{"number for a word", "tool_names: 5\n", `FILE:1:13: tool_names: is the number "5"; want underscore or dotted`},
		{"number for text", "mode: 5\n", `FILE:1:7: mode: is the number "5"; want text, in quotes`},
		{"list for text", "mode: [a]\n", `FILE:1:7: mode: is a list; want text, in quotes`},
		{"empty text", "mode: \"\"\n", `FILE:1:7: mode: is ""; want text, in quotes`},
		{"no value", "mode:\n", `FILE:1:6: mode: has no value; give it one, or remove the line`},
		{"text for truth", "audit: {full_arguments: \"yes\"}\n", `FILE:1:25: audit.full_arguments: is the text "yes"; want true or false`},
		{"time without unit", "approval:\n  wait: 45\n", `FILE:2:9: approval.wait: is "45"; want a time from 1s to 10m with its unit, such as 45s or 5m, or auto`},
		{"time of a wrong kind", "approval: {wait: true}\n", `FILE:1:18: approval.wait: is the truth value "true"; want a time from 1s to 10m with its unit, such as 45s or 5m, or auto`},
		{"time out of range", "approval: {wait: 11m}\n", `FILE:1:18: approval.wait: is "11m"; want a time from 1s to 10m with its unit, such as 45s or 5m, or auto`},
		{"cpu", "limits: {cpu: never}\n", `FILE:1:15: limits.cpu: is "never"; want a time from 1s to 24h with its unit, such as 45s or 5m, or timeout`},
		{"size", "limits: {output: 16KB}\n", `FILE:1:18: limits.output: is "16KB"; want a size from 256 to 16MiB, such as 16KiB`},
		{"size too large", "limits: {request: 99999999TiB}\n", `FILE:1:19: limits.request: is "99999999TiB"; want a size from 64KiB to 1GiB, such as 64KiB`},
		{"size negative", "limits: {output: -1}\n", `FILE:1:18: limits.output: is "-1"; want a size from 256 to 16MiB, such as 16KiB`},
		{"max_size", "audit: {max_size: 10}\n", `FILE:1:19: audit.max_size: is "10"; want a size from 64KiB to 1TiB, such as 64KiB, or 0 for one file without end`},
		{"number", "limits: {runs: 65}\n", `FILE:1:16: limits.runs: is "65"; want a number from 1 to 64`},
		{"octal", "limits: {processes: 0o17}\n", `FILE:1:21: limits.processes: is "0o17"; want a number from 1 to 65536`},
		{"fraction", "limits: {runs: 1.5}\n", `FILE:1:16: limits.runs: is the number "1.5"; want a number from 1 to 64`},
		{"text for a number", "limits: {runs: \"4\"}\n", `FILE:1:16: limits.runs: is the text "4"; want a number from 1 to 64`},
		{"section no mapping", "limits: 5\n", `FILE:1:9: limits: is "5"; want a mapping of keys to values`},
		{"file no mapping", "- a\n", `FILE:1:1: is a list; want a mapping of keys to values`},
		{"merge", "log: &l {level: info}\naudit:\n  <<: *l\n", `FILE:3:3: audit."<<": merging is not supported; write the keys out`},
		{"home of another", "project: ~bob/x\n", `FILE:1:10: project: is "~bob/x"; only ~ and ~/ are replaced by a home folder; write the path in full, or ./~… for that very name`},
		{"packs no list", "packs: ~/packs\n", `FILE:1:8: packs: is "~/packs"; want a list`},
		{"pack number", "packs: [5]\n", `FILE:1:9: packs[0]: is the number "5"; want text`},
		{"pack empty", "packs: [\"\"]\n", `FILE:1:9: packs[0]: is ""; want a path`},
		{"pack without path", "packs:\n  - attach: all\n", `FILE:2:5: packs[0]: has no path; add path: FOLDER`},
		{"pack key", "packs:\n  - path: x\n    atach: all\n", `FILE:3:5: packs[0].atach: unknown key; did you mean attach?`},
		{"attach", "packs: [{path: x, attach: some}]\n", `FILE:1:27: packs[0].attach: is "some"; want all, none, or a list of pack ids`},
		{"trust", "packs: [{path: x, trust: bundled}]\n", `FILE:1:26: packs[0].trust: is "bundled"; want user or untrusted`},
		{"entry outside", "packs: [{path: x, entry: {a: ../b.md}}]\n", `FILE:1:30: packs[0].entry.a: is "../b.md"; want the relative path of a file of that folder`},
		{"entry folder outside", "packs: [{path: x, entry: {/a: b.md}}]\n", `FILE:1:27: packs[0].entry."/a": is "/a"; want the relative path of a folder below the root's path`},
		{"docs no list", "packs: [{path: x, docs: {a: b.md}}]\n", `FILE:1:29: packs[0].docs.a: is "b.md"; want a list`},
		{"context value", "context: {token: [s3cret]}\n", `FILE:1:18: context.token: want text, a number, or true or false`},
		{"two documents", "mode: a\n---\nmode: b\n", `FILE:2:1: a second document begins here; one file is one document`},
		{"no YAML", "mode: a\n  x: y\n", `FILE:2: is not YAML: mapping values are not allowed in this context`},
		{"a star without quotes", "rules:\n  - deny: {argv: [git, **]}\n", `FILE:2: is not YAML: did not find expected alphabetic or numeric character; a word that begins with * or & needs quotes, such as "*"`},
		{"wait as long as pending", "approval: {wait: 10m}\n", `FILE:1:18: approval.wait: is 10m, which is not less than the 10m of approval.pending`},
		{"unknown anchor", "mode: *a\n", `FILE: is not YAML: unknown anchor 'a' referenced`},
		{"not UTF-8", "mode: a\nlog: \xff\n", `FILE:2:6: is not UTF-8 text; save the file as UTF-8`},
		{"too large", strings.Repeat("#\n", mib/2+1), `FILE: is larger than 1MiB`},
		{"do not go together", "limits: {read_page: 2MiB}\napproval: {pending: 5s, wait: 6s}\nsandbox: {timeout_max: 10s}\n",
			"FILE:1:21: limits.read_page: is 2MiB, which is more than the 1MiB of limits.read_page_max\n" +
				"FILE:2:31: approval.wait: is 6s, which is more than the 5s of approval.pending\n" +
				"FILE:3:24: sandbox.timeout_max: is 10s, which is less than the 30s of limits.timeout"},
		{"all at once", "mode: 5\nlog: {level: x, colour: 1}\nlimits: {runs: 0}\n",
			"FILE:1:7: mode: is the number \"5\"; want text, in quotes\n" +
				"FILE:2:14: log.level: is \"x\"; want debug, info, warn or error\n" +
				"FILE:2:17: log.colour: unknown key; known here are level, format\n" +
				"FILE:3:16: limits.runs: is \"0\"; want a number from 1 to 64"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, dir, err := load(t, tc.content, nil)
			want := strings.ReplaceAll(tc.want, "FILE", filepath.Join(dir, "config.yaml"))
			if err == nil || err.Error() != want {
				t.Errorf("Load(%q) = %v\n%v\nwant\n%v", tc.content, c, err, want)
			}
			if _, ok := errors.AsType[*problem.Error](err); !ok {
				t.Errorf("Load(%q) = %T, want an *Error", tc.content, err)
			}
		})
	}
}

func TestAnchors(t *testing.T) {
	got, _, err := load(t, "limits: {output: &s 32KiB, frontmatter: *s}\npacks: [&p {path: /a}, *p]\n", nil)
	if err != nil {
		t.Fatalf("Load() = %v, want no error", err)
	}
	if got.Limits.Output != 32*kib || got.Limits.Frontmatter != 32*kib || len(got.Packs) != 2 || got.Packs[1].Path != "/a" {
		t.Errorf("Load() = %+v, want what the anchors say", got)
	}
}

func TestPrecedence(t *testing.T) {
	file := "packs: [/file]\nlog: {level: error, format: json}\nlimits: {runs: 1, processes: 1}\napproval: {wait: 1s}\nproject: p\n"
	got, dir, err := load(t, file, func(o *Options) {
		o.Environ = append(o.Environ, "PACKS_MCP_LOG_LEVEL=warn", "PACKS_MCP_LIMITS_RUNS=2", "PACKS_MCP_PACKS=env1::~/env2",
			"PACKS_MCP_APPROVAL_CHANNELS=page, terminal", "PACKS_MCP_APPROVAL_POLICY=balanced", "PACKS_MCP_APPROVAL_PROMPTS=allow", "PACKS_MCP_APPROVAL_WAIT=", "PACKS_MCP_AUDIT_PATH=a.jsonl",
			"PACKS_MCP_LOG_LEVELS=x", "PACKS_MCP_TOKEN=s3cret-s3cret-s3cret", "PACKS_MCP_HTTP_ADDR=8080", "PACKS_MCP_HTTP_PUBLIC_URL=https://env.example", "PACKS_MCP_HTTP_OIDC_ALLOW=sre,ops", "PACKS_MCP_REQUIRE=corpora", "OTHER=1")
		o.Flags = map[string]string{"log.level": "debug", "audit.full_arguments": "true", "http.public_url": "https://packs.example/"}
		o.Packs = []string{"flag", "/a:b"}
	})
	if err != nil {
		t.Fatalf("Load() = %v, want no error", err)
	}
	user := func(path string, from Source) Root {
		return Root{Path: path, Trust: TrustUser, Source: from, Attach: Attach{All: from != FromFile}}
	}
	want := Default()
	want.File, want.Paths, want.Context = got.File, got.Paths, map[string]string{}
	want.Packs = []Root{user("/desk/flag", FromFlag), user("/a:b", FromFlag), user("/desk/env1", FromEnv), user("/home/ann/env2", FromEnv), user("/file", FromFile)}
	want.Log = Log{slog.LevelDebug, FormatJSON}
	want.Limits.Runs, want.Limits.Processes = 2, 1
	want.Approval = Approval{PolicyBalanced, []string{ChannelPage, ChannelTerminal}, PromptsAllow, true, time.Second, 10 * time.Minute}
	want.Audit.Path, want.Audit.FullArguments = "/desk/a.jsonl", true
	want.Project = filepath.Join(dir, "p")
	want.HTTP.Addr, want.HTTP.Token, want.HTTP.PublicURL = "127.0.0.1:8080", "s3cret-s3cret-s3cret", "https://packs.example"
	want.HTTP.OIDC.Allow = []string{"sre", "ops"}
	want.Warnings = []string{
		"unknown variable PACKS_MCP_LOG_LEVELS; did you mean PACKS_MCP_LOG_LEVEL?",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Load() differs (-want +got):\n%s", diff)
	}
}

func TestEnvironmentAndFlagProblems(t *testing.T) {
	_, dir, err := load(t, "mode: 5\n", func(o *Options) {
		o.Environ = append(o.Environ, "PACKS_MCP_LOG_LEVEL=s3cret", "PACKS_MCP_LIMITS_READ_PAGE=2MiB", "PACKS_MCP_PACKS=~bob",
			"PACKS_MCP_APPROVAL_CHANNELS=elicitation, mail", "PACKS_MCP_RULES=[]", "PACKS_MCP_RULES_ALLOW=x")
		o.Flags = map[string]string{"log.format": "loud", "limits.cpu": "x", "log.lvel": "x", "http.addr": "x", "sandbox.timeout_max": "5s"}
		o.Packs = []string{""}
	})
	want := strings.Join([]string{
		filepath.Join(dir, "config.yaml") + `:1:7: mode: is the number "5"; want text, in quotes`,
		`--packs: is ""; want a path`,
		`PACKS_MCP_APPROVAL_CHANNELS: want elicitation, page, terminal or app`,
		`PACKS_MCP_LOG_LEVEL: want debug, info, warn or error`,
		`PACKS_MCP_PACKS: only ~ and ~/ are replaced by a home folder; write the path in full, or ./~… for that very name`,
		`PACKS_MCP_RULES: rules are read from the configuration file only; write them there`,
		`PACKS_MCP_RULES_ALLOW: rules are read from the configuration file only; write them there`,
		`--http: is "x"; want host:port, such as 127.0.0.1:8080, localhost:0 or 0.0.0.0:8443`,
		`--limits-cpu: is "x"; want a time from 1s to 24h with its unit, such as 45s or 5m, or timeout`,
		`--log-format: is "loud"; want auto, text, json or pretty`,
		`--log-lvel: unknown key log.lvel; did you mean log.level?`,
		`PACKS_MCP_LIMITS_READ_PAGE: is 2MiB, which is more than the 1MiB of limits.read_page_max`,
		`--sandbox-timeout-max: is 5s, which is less than the 30s of limits.timeout`,
	}, "\n")
	if err == nil || err.Error() != want {
		t.Errorf("Load() =\n%v\nwant\n%v", err, want)
	}
}

func TestWhichFile(t *testing.T) {
	dir := t.TempDir()
	usual := filepath.Join(dir, "home", "config.yaml")
	other := filepath.Join(dir, "other.yaml")
	for path, content := range map[string]string{usual: "mode: usual\n", other: "mode: other\n"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	home := "PACKS_MCP_HOME=" + filepath.Dir(usual)
	for _, tc := range []struct {
		name     string
		environ  []string
		file     string
		required bool
		mode     string
		want     string
	}{
		{"usual place", []string{home}, "", false, "usual", ""},
		{"variable", []string{home, "PACKS_MCP_CONFIG=other.yaml"}, "", false, "other", ""},
		{"flag", []string{home, "PACKS_MCP_CONFIG=nowhere"}, other, true, "other", ""},
		{"nothing in the usual place", []string{"HOME=" + dir}, "", false, "Global", ""},
		{"not required", []string{home}, "nowhere.yaml", false, "Global", ""},
		{"flag to nothing", []string{home}, "nowhere.yaml", true, "", "nowhere.yaml: there is no such file"},
		{"variable to nothing", []string{home, "PACKS_MCP_CONFIG=nowhere.yaml"}, "", false, "", "nowhere.yaml: there is no such file"},
		{"folder", []string{home}, ".", false, "", ".: is a folder; name a file"},
		{"device", []string{home}, os.DevNull, false, "", os.DevNull + ": is not a regular file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Load(Options{Environ: tc.environ, File: tc.file, FileRequired: tc.required, Dir: dir, GOOS: "linux"})
			switch {
			case tc.want != "":
				if err == nil || err.Error() != tc.want {
					t.Errorf("Load() = %v, want %v", err, tc.want)
				}
			case err != nil || c.Mode != tc.mode:
				t.Errorf("Load() = %+v, %v, want mode %q", c, err, tc.mode)
			case (c.File != "") != (tc.mode != "Global"):
				t.Errorf("Load().File = %q with mode %q", c.File, c.Mode)
			}
		})
	}
}

// Every key can be set outside the file, and a problem names where it was set.
func TestEveryKeyHasAVariableAndAFlag(t *testing.T) {
	values := map[string]string{
		"project": "/p", "audit.path": "/p", "http.tls_cert": "/p", "http.tls_key": "/p", "http.addr": ":0", "http.token": "s3cret-s3cret-s3cret",
		"expose": "skills", "http.public_url": "https://packs.example", "http.issuer": "https://login.example",
		"sources.rulebooks": "https://rules.example", "sandbox.runner": "local", "sandbox.container.image": digest,
	}
	for _, k := range keys() {
		value := values[k.path]
		for _, v := range []string{"true", "warn", "text", "none", "claude", "every-call", "auto", "elicitation", "underscore", "60", "100", "64KiB", "64MiB", "46s", "1m", "48h"} {
			c := Default()
			c.Approval.Channels = nil
			if value == "" && k.set(c, v, places.Base{Dir: "/", GOOS: "linux"}) == "" {
				value = v
			}
		}
		if _, _, err := load(t, "", func(o *Options) { o.Environ = append(o.Environ, envName(k.path)+"="+value) }); err != nil {
			t.Errorf("Load() with %s=%s = %v, want no error", envName(k.path), value, err)
		}
		if _, _, err := load(t, "", func(o *Options) { o.Flags = map[string]string{k.path: value} }); err != nil {
			t.Errorf("Load() with %s %s = %v, want no error", flagName(k.path), value, err)
		}
	}
}

func FuzzFile(f *testing.F) {
	// Small seeds: a fuzzer spends its time on making large ones small.
	f.Add([]byte("mode: a\nlog: {level: info}\naudit:\n  max_size: 1MiB # x\n"))
	f.Add([]byte("packs: [&a {path: x, attach: [b], entry: {c: d}, docs: {e: [f]}}, *a]\ncontext: {a: 1}\n"))
	f.Add([]byte("sandbox: {grants: [{pack: a, tool: '*', env: [B], read: [/c], home: true}]}\n"))
	f.Add([]byte("rules: [{deny: {kind: [run], argv: [b, '**']}, match: [[b]], not_match: [{kind: open}]}, {allow: {tool: c}}]\n"))
	f.Add([]byte("a: &a [*a]\n? [b]\n: c\n<<: {}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		read := func() *loader {
			l := &loader{cfg: Default(), keys: keys(), cwd: places.Base{Dir: "/", Home: "/h", GOOS: "linux"}, origin: map[string]string{}}
			l.cfg.Context = map[string]string{}
			l.file("f", "/d", b)
			l.together()
			return l
		}
		first, second := read(), read()
		if !reflect.DeepEqual(first.cfg, second.cfg) || !slices.Equal(first.problems, second.problems) {
			t.Fatalf("reading twice differs: %+v, %v and %+v, %v", first.cfg, first.problems, second.cfg, second.problems)
		}
		for _, p := range first.problems {
			if p.Message == "" || strings.ContainsAny(p.Key, "\n\x1b") {
				t.Fatalf("problem %q is not fit for people", p)
			}
		}
	})
}

// An address that reaches beyond this machine must be given explicitly.
func TestListenAddr(t *testing.T) {
	for in, want := range map[string]string{
		"8080": "127.0.0.1:8080", ":8080": "127.0.0.1:8080", "localhost:0": "localhost:0", "0.0.0.0:80": "0.0.0.0:80", "[::]:80": "[::]:80", "[::1]:80": "[::1]:80", "packs.lan:443": "packs.lan:443",
		"": "", "x": "", "localhost": "", "::1": "", "a:b": "", "a:65536": "", "a:080": "", "http://a:80": "", "a:-1": "", "a b:80": "",
	} {
		if got, ok := listenAddr(in); got != want || ok != (want != "") {
			t.Errorf("listenAddr(%q) = %q, %v, want %q", in, got, ok, want)
		}
	}
}

// Load warns about a file with tokens that others can read, and never shows the
// tokens.
func TestReadableTokens(t *testing.T) {
	if os.PathSeparator != '/' {
		t.Skip("files have no such modes on this system")
	}
	for _, content := range []string{"http: {token: s3cret-s3cret-s3cret}\n", "http: {tokens: [{name: ada, token: s3cret-s3cret-s3cret}]}\n"} {
		got, _, err := load(t, content, func(o *Options) {
			if err := os.Chmod(o.File, 0o644); err != nil {
				t.Fatal(err)
			}
		})
		if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "chmod 600") || strings.Contains(got.Warnings[0], "s3cret") {
			t.Errorf("Load(%q) warns %q, %v, want one that says chmod 600", content, got.Warnings, err)
		}
	}
}
