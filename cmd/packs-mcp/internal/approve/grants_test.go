package approve

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grantfile"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

const hostile = "a\x1b]0;PWN\x07b\u202ec\u009bd\U000e0041e\u3164f"

// granted is a home with a file of grants.
type granted struct {
	t     *testing.T
	home  string
	store *grantfile.Store
}

func newGranted(t *testing.T, given ...grants.Grant) *granted {
	t.Helper()
	home := t.TempDir()
	h := &granted{t: t, home: home, store: grantfile.Open(filepath.Join(home, "state", "grants.json"))}
	err := h.store.Update(func([]grants.Grant) ([]grants.Grant, error) { return given, nil })
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// again returns a separate home with the same file, since creating the file
// takes long.
func (h *granted) again() *granted {
	h.t.Helper()
	home := h.t.TempDir()
	if err := os.CopyFS(home, os.DirFS(h.home)); err != nil {
		h.t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"": 0o700, "grants.json": 0o600, "grants.key": 0o600} { // whatever the umask
		if err := os.Chmod(filepath.Join(home, "state", name), mode); err != nil {
			h.t.Fatal(err)
		}
	}
	return &granted{t: h.t, home: home, store: grantfile.Open(filepath.Join(home, "state", "grants.json"))}
}

// run runs grants or revoke, and returns the status and what was written.
func (h *granted) run(args ...string) (status int, stdout, stderr string) {
	h.t.Helper()
	var out, problems bytes.Buffer
	a := &app{Env: &cli.Env{Environ: []string{"PACKS_MCP_HOME=" + h.home, "HOME=" + h.home}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &problems}}
	cmd := &cobra.Command{Use: "approvals", SilenceErrors: true, SilenceUsage: true}
	cmd.AddCommand(a.grantsCommand(), a.revokeCommand())
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(&problems)
	status = a.Report(cmd.ExecuteContext(h.t.Context()))
	return status, out.String(), problems.String()
}

func (h *granted) ids() []string {
	h.t.Helper()
	given, err := h.store.Load()
	if err != nil {
		h.t.Fatal(err)
	}
	var ids []string
	for _, g := range given {
		ids = append(ids, g.ID)
	}
	return ids
}

// revoked returns the reasons of the revoke events in the audit log.
func (h *granted) revoked() []string {
	h.t.Helper()
	path := filepath.Join(h.home, "audit.jsonl")
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	var reasons []string
	for line, err := range audit.Read(path) {
		if err != nil {
			h.t.Fatal(err)
		}
		if line.Entry.Event == audit.EventRevoke {
			reasons = append(reasons, strings.TrimSpace(line.Entry.Pack+" "+line.Entry.Reason))
		}
	}
	return reasons
}

func someGrants() []grants.Grant {
	at := time.Date(2025, 1, 2, 3, 4, 5, 0, time.UTC)
	grant := func(id, pack string, kind call.Kind, tool string) grants.Grant {
		return grants.Grant{
			ID: id, Digest: "d" + id, Subject: "s" + id, Since: at, Kind: kind, Pack: pack, Dir: "/packs/" + pack, Tool: tool,
			Covers: "Always: what " + id + " says", Channel: "page", Facts: []call.Fact{{Name: "network", Values: []string{"none"}}},
		}
	}
	void := grant("BBBB2222", "triage", call.KindRun, "ticket")
	void.Void = &grants.Void{At: at.AddDate(0, 1, 0), Changes: []string{"the script scripts/ticket.py changed"}}
	command := grant("BBCC3333", "acme/billing", call.KindExec, "")
	command.Argv, command.Person = []string{"/usr/bin/git", "log -1"}, "anna"
	command.Policy = "first-run"
	return []grants.Grant{grant("AAAA1111", "triage", call.KindOpen, ""), void, command}
}

func TestGrantsList(t *testing.T) {
	h := newGranted(t, someGrants()...)
	local := func(s string) string {
		at, err := time.Parse(time.DateTime, s)
		if err != nil {
			t.Fatal(err)
		}
		return at.Local().Format(time.DateTime)
	}
	want := `AAAA1111  since ` + local("2025-01-02 03:04:05") + `  open triage
    allows   Always: what AAAA1111 says
    pack in  /packs/triage
BBBB2222  since ` + local("2025-01-02 03:04:05") + `  run ticket of triage
    allows   Always: what BBBB2222 says
    pack in  /packs/triage
    void     since ` + local("2025-02-02 03:04:05") + `; it allows nothing, and the next call asks
             the script scripts/ticket.py changed
BBCC3333  since ` + local("2025-01-02 03:04:05") + `  exec a command for acme/billing
    allows   Always: what BBCC3333 says
    runs     "/usr/bin/git" "log -1"
    pack in  /packs/acme/billing
    while    approval.policy is first-run
    for      anna
`
	status, out, problems := h.run("grants")
	if diff := cmp.Diff(want, out); diff != "" || status != 0 || problems != "" {
		t.Errorf("grants = %d, %q (-want +got):\n%s", status, problems, diff)
	}
	if _, out, _ := h.run("grants", "-v"); strings.Count(out, "    fact     network: none\n") != 3 {
		t.Errorf("grants -v = %s, want the facts", out)
	}
	if _, out, _ := h.run("grants", "--pack", "Triage"); !strings.Contains(out, "AAAA1111") || strings.Contains(out, "BBCC3333") {
		t.Errorf("grants --pack = %s, want those of triage", out)
	}
	if status, out, problems := h.run("grants", "--pack", "none"); status != 0 || out != "" || !strings.Contains(problems, "there are 3 of other packs") {
		t.Errorf("grants of a pack without any = %d, %q, %q", status, out, problems)
	}

	status, out, problems = h.run("grants", "--json", "--pack", "acme/billing")
	const wantJSON = `{
  "grants": [
    {
      "id": "BBCC3333",
      "since": "2025-01-02T03:04:05Z",
      "kind": "exec",
      "pack": "acme/billing",
      "dir": "/packs/acme/billing",
      "argv": [
        "/usr/bin/git",
        "log -1"
      ],
      "covers": "Always: what BBCC3333 says",
      "channel": "page",
      "policy": "first-run",
      "person": "anna"
    }
  ]
}
`
	if diff := cmp.Diff(wantJSON, out); diff != "" || status != 0 || problems != "" {
		t.Errorf("grants --json = %d, %q (-want +got):\n%s", status, problems, diff)
	}
	_, out, _ = h.run("grants", "--json", "--pack", "none")
	if out != "{\n  \"grants\": []\n}\n" {
		t.Errorf("grants --json of none = %s", out)
	}
	if status, out, problems := newGranted(t).run("grants"); status != 0 || out != "" || !strings.Contains(problems, "No grants") {
		t.Errorf("grants without a file = %d, %q, %q", status, out, problems)
	}
}

// What a person gave is taken back at once, as when they leave: their own answers, and
// those for others.
func TestRevokeByPerson(t *testing.T) {
	all := someGrants()
	all[0].Person, all[0].By = "anna", &approvers.Person{Name: "grace", Groups: []string{"sre"}}
	all[1].Person = "grace"
	h := newGranted(t, all...)
	if _, out, _ := h.run("grants"); !strings.Contains(out, "    for      anna\n    by       grace\n") {
		t.Errorf("grants = %s, want who gave each", out)
	}
	if _, out, _ := h.run("grants", "--json"); !strings.Contains(out, `"by": "grace"`) {
		t.Errorf("grants --json = %s, want who gave each", out)
	}
	if status, _, problems := h.run("revoke", "--by", "gra"); status != 1 || !strings.Contains(problems, `no grants that "gra" gave`) || len(h.ids()) != 3 {
		t.Errorf("revoke --by somebody else = %d, %q", status, problems)
	}
	if status, out, problems := h.run("revoke", "--by", "grace"); status != 0 || !slices.Equal(h.ids(), []string{"BBCC3333"}) {
		t.Errorf("revoke --by grace = %d, %q, %q; left are %q", status, out, problems, h.ids())
	}
	if status, _, _ := h.run("revoke", "--by", ""); status != 2 {
		t.Errorf("revoke --by nobody = %d, want a misuse", status)
	}
}

func TestGrantsCannotDriveATerminal(t *testing.T) {
	g := grants.Grant{
		ID: hostile, Digest: "d", Kind: call.KindRun, Pack: hostile, Tool: hostile, Dir: hostile, Covers: hostile, Person: hostile, Policy: hostile,
		Argv: []string{hostile}, Void: &grants.Void{Changes: []string{hostile}}, Facts: []call.Fact{{Name: hostile, Values: []string{hostile}}},
	}
	for _, args := range [][]string{{"grants", "-v"}, {"grants", "-v", "--json"}, {"revoke", "x"}, {"revoke", "--all"}} {
		h := newGranted(t, g)
		_, out, problems := h.run(args...)
		for line := range strings.Lines(out + problems) {
			if r := safetext.Inspect([]byte(strings.TrimSuffix(line, "\n"))); r.Total() != 0 {
				t.Errorf("%q prints %s: %q", args, r, line)
			}
		}
	}
}

func TestRevoke(t *testing.T) {
	const lists = "packs-mcp: hint: packs-mcp approvals grants lists the grants and their IDs\n"
	tests := []struct {
		args   []string
		status int
		out    string // standard output and error
		left   string
		logged int
	}{
		{[]string{"AAAA1111"}, 0, "revoked AAAA1111 (open triage)\n", "BBBB2222 BBCC3333", 1},
		{[]string{"a"}, 0, "revoked AAAA1111 (open triage)\n", "BBBB2222 BBCC3333", 1},
		{[]string{"BBC", "BBCC3333", "AAAA"}, 0, "revoked BBCC3333 (exec a command for acme/billing)\nrevoked AAAA1111 (open triage)\n", "BBBB2222", 2},
		{[]string{"--pack", "TRIAGE"}, 0, "revoked AAAA1111 (open triage)\nrevoked BBBB2222 (run ticket of triage)\n", "BBCC3333", 2},
		{[]string{"--all"}, 0, "revoked AAAA1111 (open triage)\nrevoked BBBB2222 (run ticket of triage)\nrevoked BBCC3333 (exec a command for acme/billing)\n", "", 3},
		{
			[]string{"BBBB", "--json"}, 0,
			"{\n  \"revoked\": [\n    {\n      \"id\": \"BBBB2222\",\n      \"kind\": \"run\",\n      \"pack\": \"triage\",\n      \"tool\": \"ticket\",\n      \"chat\": false\n    }\n  ],\n  \"caches_emptied\": 0,\n  \"moved_aside\": []\n}\n",
			"AAAA1111 BBCC3333", 1,
		},

		{[]string{"bb", "--json"}, 1, "packs-mcp: error: \"bb\" means 2 grants\npacks-mcp: hint: give more of the ID: BBBB2222, BBCC3333\n", "AAAA1111 BBBB2222 BBCC3333", 0},
		{[]string{"bb"}, 1, "packs-mcp: error: \"bb\" means 2 grants\npacks-mcp: hint: give more of the ID: BBBB2222, BBCC3333\n", "AAAA1111 BBBB2222 BBCC3333", 0},
		{[]string{"AAAA1111", "x"}, 1, "packs-mcp: error: no grant \"x\"\n" + lists, "AAAA1111 BBBB2222 BBCC3333", 0},
		{[]string{"AAAA11111"}, 1, "packs-mcp: error: no grant \"AAAA11111\"\npacks-mcp: hint: did you mean AAAA1111? packs-mcp approvals grants lists the grants and their IDs\n", "AAAA1111 BBBB2222 BBCC3333", 0},
		{[]string{"--pack", "tri"}, 1, "packs-mcp: error: no grants of the pack \"tri\"\n" + lists, "AAAA1111 BBBB2222 BBCC3333", 0},
		{nil, 2, "packs-mcp: error: revoke takes IDs, or --person NAME, or --by PERSON, or --pack ID, or --all\n" + lists, "AAAA1111 BBBB2222 BBCC3333", 0},
		{[]string{"a", "--all"}, 2, "packs-mcp: error: revoke takes IDs, or --person NAME, or --by PERSON, or --pack ID, or --all\n" + lists, "AAAA1111 BBBB2222 BBCC3333", 0},
		{[]string{"--pack", "triage", "--all"}, 2, "packs-mcp: error: revoke takes IDs, or --person NAME, or --by PERSON, or --pack ID, or --all\n" + lists, "AAAA1111 BBBB2222 BBCC3333", 0},
		{[]string{"AAAA1111", ""}, 2, "packs-mcp: error: an ID or a name is empty\n" + lists, "AAAA1111 BBBB2222 BBCC3333", 0},
		{[]string{"--pack", ""}, 2, "packs-mcp: error: an ID or a name is empty\n" + lists, "AAAA1111 BBBB2222 BBCC3333", 0},
	}
	some := newGranted(t, someGrants()...)
	for _, tt := range tests {
		h := some.again()
		status, out, problems := h.run(append([]string{"revoke"}, tt.args...)...)
		if diff := cmp.Diff(tt.out, out+problems); diff != "" || status != tt.status {
			t.Errorf("revoke %q = %d, want %d (-want +got):\n%s", tt.args, status, tt.status, diff)
		}
		if left := strings.Join(h.ids(), " "); left != tt.left {
			t.Errorf("revoke %q leaves %q, want %q", tt.args, left, tt.left)
		}
		if logged := h.revoked(); len(logged) != tt.logged {
			t.Errorf("revoke %q logged %q, want %d lines", tt.args, logged, tt.logged)
		}
	}

	h := some.again()
	h.run("revoke", "BBCC3333")
	if got, want := h.revoked(), []string{"acme/billing the grant BBCC3333 of 2025-01-02T03:04:05Z for anna"}; !slices.Equal(got, want) {
		t.Errorf("revoke logged %q, want %q", got, want)
	}
	if status, out, problems := newGranted(t).run("revoke", "--all"); status != 0 || out != "" || !strings.Contains(problems, "nothing to revoke") {
		t.Errorf("revoke --all of none = %d, %q, %q", status, out, problems)
	}

	// Nothing changes without a log entry.
	h = some.again()
	if err := os.Mkdir(filepath.Join(h.home, "audit.jsonl"), 0o700); err != nil {
		t.Fatal(err)
	}
	if status, _, problems := h.run("revoke", "--all"); status != 1 || !strings.Contains(problems, "audit log") || len(h.ids()) != 3 {
		t.Errorf("revoke without an audit log = %d, %q, leaves %q, want an error and all", status, problems, h.ids())
	}
}

func TestRefusedGrants(t *testing.T) {
	h := newGranted(t, someGrants()...)
	path := h.store.Path()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	edited := bytes.Replace(data, []byte("BBBB2222"), []byte("BBBB3333"), 1)
	if err := os.WriteFile(path, edited, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"grants"}, {"grants", "--json"}, {"revoke", "AAAA1111"}, {"revoke", "--pack", "triage"}} {
		status, out, problems := h.run(args...)
		if status != 1 || out != "" || !strings.Contains(problems, "seal does not fit") || !strings.Contains(problems, "hint: no grant counts, and every call is denied; look at the file") {
			t.Errorf("%q of a refused file = %d, %q, %q, want it refused and what to do", args, status, out, problems)
		}
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, edited) {
		t.Errorf("the refused file changed: %v", err)
	}

	status, out, problems := h.run("revoke", "--all")
	if status != 0 || strings.Count(out, "moved aside: ") != 2 || !strings.Contains(problems, "Nothing was removed") {
		t.Fatalf("revoke --all of a refused file = %d, %q, %q", status, out, problems)
	}
	aside, err := filepath.Glob(path + ".refused-*")
	if err != nil || len(aside) != 1 {
		t.Fatalf("%q were moved aside, want one", aside)
	}
	if now, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(now, edited) {
		t.Errorf("what was moved aside changed: %v", err)
	}
	if got := h.revoked(); len(got) != 1 || !strings.Contains(got[0], "seal does not fit") {
		t.Errorf("revoke logged %q, want one line that says why", got)
	}
	if status, out, _ := h.run("grants", "--json"); status != 0 || !json.Valid([]byte(out)) {
		t.Errorf("grants after the new start = %d, %q", status, out)
	}

	// Only the user can close a folder, and what is in it may be valid.
	if runtime.GOOS == "windows" {
		return
	}
	h = newGranted(t, someGrants()...)
	dir := filepath.Dir(h.store.Path())
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"grants"}, {"revoke", "--all"}, {"revoke", "a"}} {
		if status, out, problems := h.run(args...); status != 1 || out != "" || !strings.Contains(problems, "chmod 700") {
			t.Errorf("%q in a folder that is open = %d, %q, %q, want chmod", args, status, out, problems)
		}
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if len(h.ids()) != 3 {
		t.Errorf("%q are left, want all", h.ids())
	}
}
