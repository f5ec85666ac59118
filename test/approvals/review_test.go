//go:build unix

package approvals_test

import (
	"os"
	"path/filepath"
	"testing"
)

// A rule allows a tool unasked but holds its changes until a person has seen them. The
// changes of the same tool in a pack without such a rule are applied.
func TestReviewRule(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sly)
	v := newVictim(t, w)
	w.put("home/config.yaml", "rules:\n  - allow: {pack: sly, kind: [enable, run]}\n  - allow: {tool: sly/do}\n    review: all\n")
	c := w.connect(nil, "--project", v.dir)
	r := c.beginTool(enable, object{"pack_id": "sly"})
	r.outcome().want("")
	o := c.tool(v.do(`echo made >made; echo other >file`)).want("", "2 changes wait for the user", "you want to see every change")
	for name, want := range map[string]string{"file": "the user's\n", "made": ""} {
		if got, _ := os.ReadFile(filepath.Join(v.dir, name)); string(got) != want {
			t.Errorf("%s = %q before a person has seen it, want %q", name, got, want)
		}
	}
	run, _ := o.content["run_id"].(string)
	if out := w.ok("sandbox", "explain", run); !hasAll(out, "nothing that it changed is applied before you have seen it, by config.yaml:3; see: packs-mcp changes") {
		t.Errorf("sandbox explain does not say which rule holds the changes:\n%s", out)
	}
	sets, _ := o.content["changes"].([]any)
	id, _ := sets[0].(object)["set"].(string)
	w.ok("changes", "apply", id)
	for name, want := range map[string]string{"file": "other\n", "made": "made\n"} {
		if got, _ := os.ReadFile(filepath.Join(v.dir, name)); string(got) != want {
			t.Errorf("%s = %q after it was applied, want %q", name, got, want)
		}
	}
}
