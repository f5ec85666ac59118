//go:build unix

package approvals_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/approvals"
)

func TestProbeLateRace(t *testing.T) {
	w := newWorld(t, triage, briefly)
	w.damaged = true
	c := w.connect(nil)
	s := c.server()
	bad, both := 0, 0
	for round := range 5 {
		var reqs []*request
		for i := range 30 {
			reqs = append(reqs, c.beginTool(echo(strings.Repeat("x", round*30+i+1))))
		}
		for _, r := range reqs {
			code := r.outcome().want("approval_pending").approvalCode()
			var wg sync.WaitGroup
			var e1, e2 error
			wg.Go(func() { _, e1 = s.Decide(t.Context(), approvals.Decision{Code: code, Decision: "always"}) })
			wg.Go(func() { _, e2 = s.Decide(t.Context(), approvals.Decision{Code: code, Decision: "deny"}) })
			wg.Wait()
			if e1 == nil && e2 == nil {
				both++
			}
		}
	}
	words, kept := w.keptWords()
	_ = words
	for _, d := range w.decisions() {
		if strings.Contains(d, "deny") { bad++ }
	}
	t.Logf("both counted %d, kept %d, denials %d", both, kept, bad)
}

func TestProbeMtime(t *testing.T) {
	w := newWorld(t, triage)
	w.put("bin/my-tool", "#!/bin/sh\necho aaaa\n")
	w.put("packs/p/SKILL.md", "---\nname: p\ndescription: d\n---\n")
	w.put("packs/p/tools.json", `{"tools": [{"name": "go", "command": ["my-tool"]}]}`)
	w.env = append(w.env, "PATH="+filepath.Join(w.root, "bin")+":"+os.Getenv("PATH"))
	c := w.connect(choose("always"))
	c.enable("triage")
	c.enable("p")
	run := object{"pack_id": "p", "tool": "go", "arguments": object{}}
	c.tool(greet("Ada")).want("")
	c.tool(callTool, run).want("")
	c.questions()
	for _, f := range []string{"packs/triage/scripts/greet.sh", "bin/my-tool"} {
		p := filepath.Join(w.root, f)
		fi, _ := os.Stat(p)
		data := strings.NewReplacer("hello", "evil!", "aaaa", "evil").Replace(w.read(f))
		fh, err := os.OpenFile(p, os.O_WRONLY, 0)
		if err != nil { t.Fatal(err) }
		fh.WriteString(data); fh.Close()
		os.Chtimes(p, fi.ModTime(), fi.ModTime())
	}
	c.answers(choose("deny"))
	t.Log(c.tool(greet("Ada")).content, len(c.questions()))
	t.Log(c.tool(callTool, run).content, len(c.questions()))
	w.damaged = true
}
