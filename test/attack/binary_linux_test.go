package attack_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/test/attack"
)

// realBinary is packs-mcp itself, built on first use.
var realBinary struct {
	sync.Once
	path string
	err  error
}

// packsMCP builds the real program.
func packsMCP(t *testing.T) string {
	t.Helper()
	if os.Getenv(blockedVar) != "" {
		t.Skip("something is blocked already")
	}
	dir := filepath.Dir(probe(t))
	realBinary.Do(func() {
		realBinary.path = filepath.Join(dir, "packs-mcp")
		if _, err := os.Stat(realBinary.path); err == nil {
			return // it was built with the probe
		}
		cmd := exec.Command("go", "build", "-buildvcs=false", "-o", realBinary.path, "github.com/packs-mcp/packs-mcp/cmd/packs-mcp")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly")
		if out, err := cmd.CombinedOutput(); err != nil {
			realBinary.err = fmt.Errorf("building packs-mcp: %w\n%s", err, out)
		}
	})
	if realBinary.err != nil {
		t.Fatal(realBinary.err)
	}
	return realBinary.path
}

// A client talks to the real program, whose only pack is the world's, and answers yes to
// every question.
type client struct {
	t     *testing.T
	w     *world
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
	log   bytes.Buffer
	next  int
	asked int
}

// serve starts the program, with before as the beginning of the command line.
func (w *world) serve(t *testing.T, before ...string) *client {
	t.Helper()
	text := []byte("---\nname: attack\ndescription: Tries what it should not.\n---\nNothing.\n")
	if err := os.WriteFile(w.dir("pack/SKILL.md"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	bytes, err := os.ReadFile(probe(t))
	if err == nil {
		err = os.WriteFile(w.dir("pack/probe"), bytes, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	args := slices.Concat(before, []string{packsMCP(t), "serve", "--packs", w.dir("pack")})
	if !w.ownWorkspaces {
		args = append(args, "--workspace", w.dir("ws"))
	}
	c := &client{t: t, w: w, cmd: exec.Command(args[0], args[1:]...)}
	c.cmd.Env = []string{"HOME=" + w.dir("home"), "PATH=/usr/bin:/bin", "PACKS_MCP_HOME=" + w.dir("state"), "API_KEY=canary in environ"}
	if w.tmp != "" {
		c.cmd.Env = append(c.cmd.Env, "TMPDIR="+w.tmp)
	}
	c.cmd.Dir = w.dir("outside")
	c.cmd.Stderr = &c.log
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	c.lines = bufio.NewScanner(out)
	c.lines.Buffer(nil, 1<<20)
	c.request("initialize", map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{"elicitation": map[string]any{}},
		"clientInfo": map[string]any{"name": "attack", "version": "1"},
	})
	c.send(map[string]any{"method": "notifications/initialized"})
	return c
}

func (c *client) send(m map[string]any) {
	c.t.Helper()
	m["jsonrpc"] = "2.0"
	line, err := json.Marshal(m)
	if err == nil {
		_, err = c.in.Write(append(line, '\n'))
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// request returns the reply to a request, and answers questions that come before it. The
// reply is nil if the server ends instead.
func (c *client) request(method string, params any) map[string]any {
	c.t.Helper()
	c.next++
	c.send(map[string]any{"id": c.next, "method": method, "params": params})
	for c.lines.Scan() {
		var m map[string]any
		if err := json.Unmarshal(c.lines.Bytes(), &m); err != nil {
			c.t.Fatalf("the server wrote %q: %v", c.lines.Text(), err)
		}
		switch {
		case m["method"] == "elicitation/create":
			c.asked++
			c.send(map[string]any{"id": m["id"], "result": map[string]any{
				"action": "accept", "content": map[string]any{"decision": "once"},
			}})
		case m["id"] == float64(c.next):
			return m
		}
	}
	return nil
}

// An envelope is the result of a call.
type envelope struct {
	Stdout  string `json:"stdout"`
	Stderr  string `json:"stderr"`
	Signal  string `json:"signal"`
	Sandbox string `json:"sandbox"`
	Error   struct {
		Code, Message, Hint string
	} `json:"error"`
}

// exec runs the pack's probe.
func (c *client) exec(args ...string) envelope {
	c.t.Helper()
	return c.run("./probe", args...)
}

// run runs a program of the pack.
func (c *client) run(command string, args ...string) envelope {
	c.t.Helper()
	m := c.request("tools/call", map[string]any{"name": "capability_packs_exec_best_effort", "arguments": map[string]any{
		"pack_id": "attack", "command": command, "args": args,
	}})
	result, _ := m["result"].(map[string]any)
	text, err := json.Marshal(result["structuredContent"])
	var e envelope
	if err == nil {
		err = json.Unmarshal(text, &e)
	}
	if err != nil || result == nil {
		c.t.Fatalf("reply %v: %v (log %s)", m, err, c.log.String())
	}
	return e
}

// events returns the audit log's entries by event.
func (c *client) events() map[string][]map[string]any {
	c.t.Helper()
	data, err := os.ReadFile(c.w.dir("state/audit.jsonl"))
	if err != nil {
		c.t.Fatal(err)
	}
	all := map[string][]map[string]any{}
	for line := range bytes.Lines(data) {
		var e map[string]any
		if err := json.Unmarshal(line, &e); err != nil {
			c.t.Fatalf("audit line %q: %v", line, err)
		}
		name, _ := e["event"].(string)
		all[name] = append(all[name], e)
	}
	return all
}

// verify has the program verify its log.
func (c *client) verify() {
	c.t.Helper()
	cmd := exec.Command(packsMCP(c.t), "audit", "verify")
	cmd.Env = c.cmd.Env
	if out, err := cmd.CombinedOutput(); err != nil {
		c.t.Errorf("audit verify: %v\n%s", err, out)
	}
}

// What the table refuses is tried through the real program with its own policy: the
// outcomes are the same at each level, and the log has a decision, a start and an end for
// each.
func TestBinary(t *testing.T) {
	t.Parallel()
	for _, v := range append(confined(t), withoutLandlock) {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			throughBinary(t, v)
		})
	}
}

// throughBinary is TestBinary at one level.
func throughBinary(t *testing.T, v variant) {
	var before []string // of the command line
	switch v.name {
	case "partial":
		before = []string{probe(t), "block", "userns", "--"}
	case withoutLandlock.name:
		notAsRoot(t)
		before = []string{probe(t), "block", "landlock", "--"}
	}
	w := newWorld(t)
	c := w.serve(t, before...)
	if e := c.exec("exit", "0"); e.Sandbox != v.level.String() {
		lacks(t, v.needs, fmt.Sprintf("level %s cannot be had here (%+v)", v.name, e.Error))
	}
	calls := 1
	for _, section := range attack.Sections() {
		if section.Title == "Bounds" {
			continue // the server has limits of its own; TestTable, TestLimits and TestDoctorAttack try these
		}
		for _, row := range section.Rows {
			want := v.want(row)
			if slices.Contains(want, "EROFS") {
				// The pack is a private copy of read-only files, and the kernel checks their modes
				// first.
				want = append(want, "EACCES")
			}
			if row.Network != sandbox.NetworkNone || row.Unsafe || slices.Contains(want, "ok") || slices.Contains(row.Probe, "{setuid}") {
				continue
			}
			t.Run(row.Case+" "+row.Does, func(t *testing.T) {
				defer w.forget(maps.Clone(w.names))
				args := w.fill(t, row.Probe)
				before := w.state(t)
				e := c.exec(args...)
				calls++
				var r reply
				if json.Unmarshal([]byte(e.Stdout), &r) != nil {
					r.Outcome = e.Signal
				}
				if diff := cmp.Diff(before, w.state(t)); diff != "" {
					t.Errorf("probe %q = %s, and it changed something (-before +after):\n%s", args, r.Outcome, diff)
				}
				if e.Sandbox != v.level.String() || !slices.Contains(want, r.Outcome) {
					if e.Sandbox == v.level.String() && r.Outcome != "ok" && !control(t, row) {
						t.Skipf("outcome %s %s, as unconfined; want %q where the machine has it", r.Outcome, r.Detail, want)
					}
					t.Errorf("probe %q = %s %s at level %q (%+v), want %q at %s", args, r.Outcome, r.Detail, e.Sandbox, e.Error, want, v.level)
				}
			})
		}
	}
	_ = c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("the server ends with %v: %s", err, c.log.String())
	}
	if c.asked != calls {
		t.Errorf("%d questions for %d calls", c.asked, calls)
	}
	events := c.events()
	for _, name := range []string{"decision", "run.start", "run.end"} {
		if len(events[name]) != calls {
			t.Errorf("the log has %d of %q for %d calls", len(events[name]), name, calls)
		}
	}
	for _, e := range events["run.end"] {
		if e["sandbox"] != v.level.String() {
			t.Errorf("the log has %v, want it to name level %s", e, v.level)
			break
		}
	}
	c.verify()
}

// 9.14: after many servers were killed during runs, one start of the real program removes
// everything that they left: announcements, partial files and temporary folders.
func TestBinaryLeftovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tmp = w.dir("tmp")
	if err := os.Mkdir(w.tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	// Runs in one folder of the user's would wait for each other.
	w.ownWorkspaces = true
	workspaces := w.dir("state/workspaces")
	partial := []string{probe(t), "block", "userns", "--"}
	var servers []*client
	known := map[string]bool{}
	for range leftKills {
		c := w.serve(t, partial...)
		servers = append(servers, c)
		c.exec("exit", "0") // creates the chat's workspace
		ready := ""
		for _, name := range names(t, workspaces) {
			if !known[name] {
				known[name] = true
				ready = fifo(t, filepath.Join(workspaces, name, "ready"))
			}
		}
		go func() {
			c.request("tools/call", map[string]any{"name": "capability_packs_exec_best_effort", "arguments": map[string]any{
				"pack_id": "attack", "command": "./probe", "args": []string{"stray", "plain", ready},
			}})
			releaseFIFO(ready)
		}()
		awaitFIFO(ready)
	}
	for _, c := range servers { // each announces itself shortly after its start
		c.awaitAnnouncement()
	}
	for _, c := range servers {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	}
	awaitNone(t, workspaces, time.Now())
	// An example of what a killed "try" leaves.
	if err := os.Mkdir(filepath.Join(w.tmp, "packs-run-4711"), 0o700); err != nil {
		t.Fatal(err)
	}
	announced, folders := names(t, w.dir("state/run")), names(t, w.tmp)
	if len(announced) < leftKills || len(folders) < leftKills {
		t.Fatalf("%d killed servers left %q and %q: nothing is tested", leftKills, announced, folders)
	}
	c := w.serve(t, partial...)
	c.awaitAnnouncement()
	if e := c.exec("exit", "0"); e.Sandbox != sandbox.LevelPartial.String() {
		lacks(t, "landlock", fmt.Sprintf("level partial cannot be had here (%+v)", e.Error))
	}
	_ = c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		t.Errorf("the server ends with %v: %s", err, c.log.String())
	}
	for _, dir := range []string{w.dir("state/run"), w.tmp} {
		if left := names(t, dir); len(left) > 0 {
			t.Errorf("in %s there are %q, want nothing", filepath.Base(dir), left)
		}
	}
	err := filepath.WalkDir(w.dir("state"), func(path string, d fs.DirEntry, err error) error {
		for _, begin := range []string{".part-", ".tmp-", "packs-run-"} {
			if strings.HasPrefix(filepath.Base(path), begin) {
				t.Errorf("%s is left", path)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// awaitAnnouncement waits for the file by which a terminal finds the server.
func (c *client) awaitAnnouncement() {
	c.t.Helper()
	for until := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		found, err := filepath.Glob(c.w.dir(fmt.Sprintf("state/run/%d-*.json", c.cmd.Process.Pid)))
		if err == nil && len(found) == 1 {
			return
		}
		if time.Now().After(until) {
			c.t.Fatalf("a server that lives has the announcements %q, %v, want one", found, err)
		}
	}
}

// names returns the names in a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// When the real program ends, nothing that it started remains, and the log is as complete
// as possible.
func TestBinaryEnds(t *testing.T) {
	t.Parallel()
	variants := confined(t)
	for _, v := range variants[:min(1, len(variants))] {
		for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
			for _, how := range []string{"daemon", "hydra", "subreaper", "stopped"} {
				t.Run(unix.SignalName(sig)+"/"+how, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					ready := fifo(t, w.dir("ws/ready"))
					c := w.serve(t)
					done := make(chan struct{})
					go func() {
						defer close(done)
						c.request("tools/call", map[string]any{"name": "capability_packs_exec_best_effort", "arguments": map[string]any{
							"pack_id": "attack", "command": "./probe", "args": []string{"stray", how, ready},
						}})
						releaseFIFO(ready)
					}()
					awaitFIFO(ready)
					if len(running(ready)) == 0 {
						t.Errorf("nothing runs: %s", c.log.String())
					}
					_ = c.cmd.Process.Signal(sig)
					<-done
					_ = c.cmd.Wait()
					ended := time.Now()
					// Processes with the server's name are its helpers.
					took := awaitNone(t, ready, ended).Sub(ended)
					if plain := plainKill(t); took > max(10*v.allowance(), 20*plain) {
						t.Errorf("everything was gone after %v, and one plain process after %v", took, plain)
					}
					events := c.events()
					if ends := len(events["run.end"]); len(events["run.start"]) != 1 || (ends == 1) != (sig == unix.SIGTERM) {
						t.Errorf("the log has %d starts and %d ends", len(events["run.start"]), ends)
					}
					c.verify()
				})
			}
		}
	}
}

// NW-16: if nothing confines, the default configuration runs nothing, asks nobody, and says
// what to do.
func TestBinaryRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.serve(t, probe(t), "block", "landlock,userns", "--")
	e := c.exec("exit", "0")
	if e.Error.Code != "sandbox_unavailable" || c.asked != 0 {
		t.Errorf("error = %+v after %d questions, want sandbox_unavailable and none", e.Error, c.asked)
	}
	if !strings.Contains(e.Error.Message, "none") || e.Error.Hint == "" {
		t.Errorf("error = %+v, want one that names the level, with a hint", e.Error)
	}
	if events := c.events(); len(events["decision"]) != 1 || len(events["run.start"]) != 0 {
		t.Errorf("the log has %d decisions and %d starts, want one denial", len(events["decision"]), len(events["run.start"]))
	}
	c.verify()
}
