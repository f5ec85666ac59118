package gate

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// changelogRun is the call that the documents show: a tool of the example pack
// git-helper.
func changelogRun() call.Request {
	const pack, project, workspace = "/home/ada/packs/git-helper", "/home/ada/src/shop", "/home/ada/.local/share/packs-mcp/workspaces/4f1c"
	r := toolRun()
	r.Caller.Client = "claude-code 2.1.0"
	r.Pack = call.Pack{ID: "git-helper", Dir: pack, Trust: call.TrustUser, Digest: "sha256:da783d41ce178b35", About: "Git, read only."}
	r.Arguments = call.ParseArguments([]byte(`{"to":"HEAD"}`))
	r.Workspace = workspace
	r.Run = &call.Run{
		Tool: "changelog", Definition: "d",
		About: "Turn the commits between two versions into a Markdown changelog, grouped into breaking changes, new, fixed and others. " +
			"Written to changelog.md in the workspace; the project is not changed.",
		Command: sandbox.Command{
			Program: program.Program{
				Name: "./scripts/changelog.sh", Path: pack + "/scripts/changelog.sh", Resolved: pack + "/scripts/changelog.sh", Digest: "01",
				Interpreters: []program.Interpreter{{Name: "/bin/sh", Path: "/bin/sh", Resolved: "/bin/sh", Digest: "02"}},
			},
			Args: []string{"--to=HEAD"}, Dir: project, Workspace: workspace,
		},
		Policy: sandbox.Policy{
			ReadOnly: []string{pack, project}, Writable: []string{workspace}, Limits: sandbox.Limits{Timeout: time.Minute},
		},
		Project: project, ReadOnly: true,
	}
	return r
}

// The documents show a question exactly as it is.
func TestDocumentsShowAQuestion(t *testing.T) {
	b := newBench(t, remembers, everywhere, func(o *Options) {
		o.Scan = func(*call.Pack) prompt.Scan { return prompt.Scan{Found: "nothing found"} }
	})
	b.runner.setLevel(sandbox.LevelFull)
	b.runner.box = sandbox.Report{NetworkEnforced: true}
	req := changelogRun()
	q := b.ask(req)
	showsAs(t, "changelog", q)
	var choices strings.Builder
	for _, c := range q.Choices {
		fmt.Fprintf(&choices, "( ) %s\n", c.Title)
	}
	form := strings.ReplaceAll(q.Form, q.Code, "K7QM-2F9X")
	top, _, _ := strings.Cut(form, "\n\n")
	for path, want := range map[string]string{
		"../../README.md":                   "```text\n" + top + "\n\n" + choices.String() + "```\n",
		"../../docs/reference/approvals.md": "```text\n" + form + "\n" + choices.String() + "```\n",
	} {
		documents(t, path, want)
	}
	documents(t, "../../docs/reference/approvals.md", "```text\n"+q.Card.Title+"\n"+q.Card.Summary(promptWidth, 0)+"\n"+q.Card.Details(promptWidth)+"```\n")
	b.approve(req, queue.Always)
	changed := b.ask(with(req, func(r *call.Request) { r.Pack.Digest = "sha256:77aa"; r.Pack.Files = nil }))
	top, _, _ = strings.Cut(changed.Form, "\n\n")
	documents(t, "../../docs/reference/approvals.md", "```text\n"+strings.ReplaceAll(top, changed.Code, "K7QM-2F9X")+"\n```\n")
}

// documents fails unless a document has this block.
func documents(t *testing.T, path, want string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), want) {
		t.Errorf("%s does not show a question as it is now; it should have\n%s", path, want)
	}
}
