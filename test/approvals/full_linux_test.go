package approvals_test

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// limit sets the largest size of the files that a server writes, which acts like a
// full disk.
func (c *client) limit(bytes uint64) {
	c.w.t.Helper()
	var now unix.Rlimit
	err := unix.Prlimit(c.cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &now)
	if err == nil {
		err = unix.Prlimit(c.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: min(bytes, now.Max), Max: now.Max}, nil)
	}
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		c.w.t.Skipf("the limits of another process cannot be set here: %v", err)
	}
	if err != nil {
		c.w.t.Fatal(err)
	}
}

// If the log's disk is full, nothing happens, no matter what allowed it: a rule, a grant,
// the client, the terminal. Once there is room, everything works again.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, triage)
	w.damaged, w.complains = true, true
	w.put("home/config.yaml", "rules:\n  - allow: {pack: triage, tool: greet}\n")
	c := w.connect(choose("always"))
	c.enable("triage")
	c.tool(triageTool("look")).want("")
	c.tool(greet("Ada")).want("")
	ran := len(w.runs())
	grants := w.ok("approvals", "grants", "--json")
	full := func() {
		t.Helper()
		info, err := os.Stat(w.log())
		if err != nil {
			t.Fatal(err)
		}
		c.limit(uint64(info.Size()) + 50) // the next line ends in the middle
	}
	const why = "the audit log cannot be written"
	full()
	c.tool(greet("Ada")).want("denied", why)       // by a rule
	c.tool(triageTool("look")).want("denied", why) // by a grant
	c.tool(echo("keep")).want("denied", why)       // by the client
	c.tool("capability_packs_list", nil).want("denied", why)
	c.answers(mute)
	r := c.beginTool(triageTool("send"))
	w.decide(w.pending(1)[0].Code, "chat") // by the terminal
	r.outcome().want("denied", why)
	if got := len(w.runs()); got != ran {
		t.Errorf("%d programs ran with a full disk", got-ran)
	}
	if got := w.ok("approvals", "grants", "--json"); got != grants {
		t.Errorf("the grants became %s with a full disk", got)
	}
	w.ok("audit", "verify") // a torn line does not count as a change

	c.limit(unix.RLIM_INFINITY)
	c.tool(greet("Ada")).want("", "hello Ada")
	c.tool(triageTool("look")).want("", "looked")
	c.answers(choose("deny"))
	c.tool(triageTool("send")).want("denied", "chose to deny") // what was not logged does not count
	c.tool(echo("keep")).want("denied", "chose to deny")

	// The room may also run out after the decision, or after the start of the run.
	c.answers(choose("once"))
	for room := uint64(200); room < 3000; room += 400 {
		info, err := os.Stat(w.log())
		if err != nil {
			t.Fatal(err)
		}
		c.limit(uint64(info.Size()) + room)
		c.tool(greet("Ada"))
		c.limit(unix.RLIM_INFINITY)
	}
	started := make(map[string]bool)
	for _, e := range w.entries() {
		if e.Event == audit.EventRunStart {
			started[e.Run] = true
		}
	}
	for _, run := range w.runs() {
		if !started[run] {
			t.Errorf("%s ran, and the log does not have its start", run)
		}
	}
	w.ok("audit", "verify")
}
