package approvals_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// RP-04: the script is exchanged as fast as possible while approved calls run. Each
// run prints what was approved, or is refused; what was not approved never runs.
func TestExchangedScript(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	w.damaged = true // refusals after the answer are not denials in the log
	good := filepath.Join(w.packs, "triage", "scripts", "greet.sh")
	evil := filepath.Join(w.root, "evil.sh")
	w.put("evil.sh", "#!/bin/sh\n: >\"$PACKS_WORKSPACE/evil\"\necho evil\n")
	c := w.connect(choose("once"))
	c.enable("triage")
	c.tool(greet("Ada")).want("", "hello Ada")
	// The question says by a digest which bytes it is about: this person allows only
	// the bytes that they know.
	known := digestIn(c.questions()[1])
	if known == "" {
		t.Fatal("the question has no digest")
	}
	c.answers(func(question string) object {
		if digestIn(question) != known {
			return accept("deny")
		}
		return accept("once")
	})

	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			if err := unix.Renameat2(unix.AT_FDCWD, good, unix.AT_FDCWD, evil, unix.RENAME_EXCHANGE); err != nil {
				t.Errorf("exchanging the script: %v", err)
				return
			}
		}
	})
	count := make(map[string]int)
	for range 10 {
		var all []*request
		for range 4 {
			all = append(all, c.beginTool(greet("Ada")))
		}
		for _, r := range all {
			o := r.outcome()
			count[o.code]++
			if o.code == "" && o.content["stdout"] != "hello Ada\n" {
				t.Errorf("a call printed %v, which nobody approved", o.content)
			}
		}
	}
	close(done)
	wg.Wait()
	evils, err := filepath.Glob(filepath.Join(w.home, "workspaces", "*", "evil"))
	if err != nil || len(evils) > 0 {
		t.Errorf("the other script has run")
	}
	t.Logf("the calls ended with %v", count)
}

// digestIn returns the pack's digest in a question.
func digestIn(question string) string {
	for line := range strings.Lines(question) {
		if digest, ok := strings.CutPrefix(strings.TrimSpace(line), "▸ digest: "); ok {
			return strings.TrimSpace(digest)
		}
	}
	return ""
}
