//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A talk is a client's conversation with a server in its own process.
type talk struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr strings.Builder
}

// newTalk starts a server and reads its first list of tools.
func newTalk(t *testing.T, env []string, args ...string) *talk {
	t.Helper()
	k := &talk{t: t, cmd: exec.Command("packs-mcp", append([]string{"serve"}, args...)...)}
	k.cmd.Env, k.cmd.Stderr = env, &k.stderr
	var err error
	if k.in, err = k.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := k.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	k.out = bufio.NewReader(out)
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = k.cmd.Process.Kill() })
	t.Cleanup(func() { late.Stop() })
	fmt.Fprintln(k.in, initialize)
	fmt.Fprintln(k.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	fmt.Fprintln(k.in, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	k.until(`"id":2`)
	return k
}

// until reads up to the first line that contains words.
func (k *talk) until(words string) {
	k.t.Helper()
	for {
		line, err := k.out.ReadString('\n')
		if err != nil {
			k.t.Errorf("the server ended before it said %q", words)
			return
		}
		if strings.Contains(line, words) {
			return
		}
	}
}

// finds looks for a pack by its name.
func (k *talk) finds(name string) {
	k.t.Helper()
	fmt.Fprintln(k.in, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"capability_packs_list","arguments":{"query":"`+name+`"}}}`)
	k.until(`"pack_id":"` + name)
}

// end ends the server and returns what it wrote to standard error.
func (k *talk) end() string {
	k.t.Helper()
	k.in.Close()
	_, _ = io.Copy(io.Discard, k.out)
	if err := k.cmd.Wait(); err != nil {
		k.t.Errorf("the server ended with %v; it said %s", err, k.stderr.String())
	}
	return k.stderr.String()
}

// A client is told about an edit without asking, and what was read is kept for
// the next start. A server that finds the index damaged says so, and still
// serves.
func TestServeFollowsEdits(t *testing.T) {
	dir, env := home(t)
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "one", "exit 0\n")
	index := filepath.Join(dir, "state", "index", "packs-*.index")
	serve := func() (said string) {
		t.Helper()
		k := newTalk(t, env, "--packs", packs, "--attach", "all")
		// Even if it comes very early: an edit before the server watches is noticed
		// too.
		name := fmt.Sprintf("new%d", time.Now().UnixNano())
		plantPack(t, packs, name, "exit 0\n")
		k.until("notifications/tools/list_changed")
		k.finds(name)
		return k.end()
	}
	const anew = "the index of packs is made anew"
	if said := serve(); strings.Contains(said, anew) {
		t.Errorf("the first start said %s", said)
	}
	kept, err := filepath.Glob(index)
	if err != nil || len(kept) != 1 {
		t.Fatalf("%v, %v is kept, want one file for the one folder", kept, err)
	}
	if said := serve(); strings.Contains(said, anew) {
		t.Errorf("the second start said %s", said)
	}
	if err := os.WriteFile(kept[0], []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := serve(); !strings.Contains(said, anew) {
		t.Errorf("with a damaged index: %s, want that it is made anew", said)
	}
}

// A client that leaves right after its first list still leaves an index for the next
// start.
func TestServeKeepsTheIndexOfAShortStay(t *testing.T) {
	dir, env := home(t)
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "one", "exit 0\n")
	newTalk(t, env, "--packs", packs).end()
	kept, err := filepath.Glob(filepath.Join(dir, "state", "index", "packs-*.index"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%v, %v is kept, want one file for the one folder", kept, err)
	}
}

// A server ends even if another process, which may be stopped, holds the lock of
// its index. It leaves the index to that process without a message. The next
// server that ends then writes what was read.
func TestServeEndsWhileAnotherHasTheIndex(t *testing.T) {
	dir, env := home(t)
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "one", "exit 0\n")
	edited := func(name string) (said string) {
		t.Helper()
		k := newTalk(t, env, "--packs", packs, "--attach", "all")
		plantPack(t, packs, name, "exit 0\n")
		k.until("notifications/tools/list_changed")
		return k.end()
	}
	edited("two")
	kept, err := filepath.Glob(filepath.Join(dir, "state", "index", "packs-*.index"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%v, %v is kept, want one file for the one folder", kept, err)
	}
	look := func() os.FileInfo {
		t.Helper()
		info, err := os.Stat(kept[0])
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	before := look()
	lock, err := os.Open(kept[0] + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if said := edited("three"); strings.Contains(said, "the index of packs") {
		t.Errorf("the server said %s", said)
	}
	if !os.SameFile(before, look()) {
		t.Error("the index was written by who did not have its lock")
	}
	lock.Close()
	edited("four")
	if os.SameFile(before, look()) {
		t.Error("the index was not written when its lock was free again")
	}
}

// Default folders are found when they are created, and are not mentioned before. A
// client is told without asking when a command detaches a pack.
func TestServeFindsFoldersCreatedLater(t *testing.T) {
	dir, env := home(t)
	project := filepath.Join(dir, "project")
	for path, data := range map[string]string{
		filepath.Join(dir, "state", "config.yaml"): "compat: [agents, claude]\n",
		filepath.Join(project, ".git", "HEAD"):     "ref: refs/heads/main\n",
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	roots := map[string]string{
		"of-project": filepath.Join(project, ".packs"), "of-user": filepath.Join(dir, "state", "packs"),
		"of-agents": filepath.Join(project, ".agents", "skills"), "of-claude": filepath.Join(dir, ".claude", "skills"),
	}
	args := []string{"--project", project}
	for name := range roots {
		args = append(args, "--attach", name)
	}
	k := newTalk(t, env, args...)
	for name, root := range roots {
		plantPack(t, root, name, "exit 0\n")
		k.until("notifications/tools/list_changed")
		k.finds(name)
	}
	plantPack(t, roots["of-user"], "mine", "exit 0\n")
	for _, command := range []string{"attach", "detach", "attach"} {
		cmd := exec.Command("packs-mcp", command, "mine", "--project", project)
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		k.until("notifications/resources/list_changed") // the last of the three
	}
	k.finds("mine")
	if said := k.end(); strings.Contains(said, "root-missing") {
		t.Errorf("the server said %s", said)
	}
}

// The same over HTTP.
func TestServeFollowsEditsOverHTTP(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	dir, env := home(t)
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "one", "exit 0\n")
	cmd := exec.Command("packs-mcp", "serve", "--packs", packs, "--attach", "all", "--http", "127.0.0.1:0")
	cmd.Env = append(env, "PACKS_MCP_TOKEN="+token)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	url, said := "", bufio.NewReader(stderr)
	for url == "" {
		line, err := said.ReadString('\n')
		if err != nil {
			t.Fatalf("the server ended: %v", err)
		}
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`).FindString(line)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, said)
	}()
	post := func(method, params string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"`+method+`","params":{`+params+
			`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method,
		} {
			r.Header.Set(name, value)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	listed := post("prompts/list", "") // a client that has not seen a list is not told about changes
	_, _ = io.Copy(io.Discard, listed.Body)
	listed.Body.Close()
	resp := post("subscriptions/listen", `"notifications":{"promptsListChanged":true},`)
	defer resp.Body.Close()
	events := bufio.NewReader(resp.Body)
	until := func(words string) {
		t.Helper()
		for {
			line, err := events.ReadString('\n')
			if err != nil {
				t.Fatalf("the stream ended before it said %q: %v", words, err)
			}
			if strings.Contains(line, words) {
				return
			}
		}
	}
	until("notifications/subscriptions/acknowledged")
	plantPack(t, packs, "new", "exit 0\n")
	until("notifications/prompts/list_changed")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-drained
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
}
