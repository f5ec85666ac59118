//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

// get requests a path without a token, and returns the status, the Retry-After header and
// the body.
func (g *team) get(path string) (status int, retry, body string) {
	g.t.Helper()
	resp, err := http.Get(strings.TrimSuffix(g.url, "/mcp") + path)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Retry-After"), string(text)
}

// try makes a call of 2026-07-28, and returns the status and the Retry-After header.
func (g *team) try(token, method string) (status int, retry string) {
	g.t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": map[string]any{"_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{},
		"io.modelcontextprotocol/clientInfo": map[string]any{"name": "team", "version": "1"},
	}}})
	if err != nil {
		g.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(g.t.Context(), "POST", g.url, bytes.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method,
	} {
		r.Header.Set(k, v)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, resp.Header.Get("Retry-After")
}

// await waits until is returns true.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for late := time.Now().Add(time.Minute); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("after a minute, not yet: %s", what)
		}
	}
}

// A server that is shutting down accepts no new calls, and says so to load balancers and
// clients. Its runs may finish; a call that waits for a person returns and names its
// question.
func TestDrain(t *testing.T) {
	dir, env := home(t)
	packs, config := filepath.Join(dir, "packs"), filepath.Join(dir, "config.yaml")
	plantPack(t, packs, "slow", "touch begun; while ! [ -e go ]; do sleep 0.02; done; echo finished\n")
	plantPack(t, packs, "asks", "true\n")
	write(t, config, fmt.Sprintf("packs: [{path: %q, attach: all}]\nrules: [{allow: {pack: slow, kind: exec}}]\napproval: {channels: [terminal], wait: 5m}\n"+
		"http:\n  drain: 5m\n  tokens: [{name: ada, token: %s}, {name: grace, token: %s}]\n", packs, adasToken, gracesToken))
	g := startTeam(t, dir, env, config)
	if status, _, body := g.get("/readyz"); status != 200 || body != "{\"status\":\"ready\"}\n" {
		t.Errorf("readyz = %d, %s", status, body)
	}
	ran, waited := make(chan string, 1), make(chan string, 1)
	go func() {
		text, _ := g.call(adasToken, "capability_packs_exec_best_effort", map[string]any{"pack_id": "slow", "command": "./go.sh"})
		ran <- text
	}()
	go func() {
		text, _ := g.call(gracesToken, "capability_packs_open_docs", map[string]any{"pack_id": "asks"})
		waited <- text
	}()
	workspace := ""
	await(t, "the program runs", func() bool {
		all, _ := filepath.Glob(filepath.Join(dir, "state", "workspaces", "*", "begun"))
		if len(all) > 0 {
			workspace = filepath.Dir(all[0])
		}
		return workspace != ""
	})
	graces := filepath.Join(dir, "graces.yaml")
	write(t, graces, "{}\n")
	ask := &replica{team: g, env: append(env, "PACKS_MCP_TOKEN="+gracesToken), config: graces}
	await(t, "the question is open", func() bool {
		out, err := ask.command("approvals", "--server", strings.TrimSuffix(g.url, "/mcp"), "--json")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(out, `"asks"`)
	})
	if err := g.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if text := <-waited; !strings.Contains(text, "approval_pending") {
		t.Errorf("the call that waited got %s", text)
	}
	if pending := events(t, dir)["decision"]; !strings.Contains(fmt.Sprint(pending), "the server is ending; the question stays open") {
		t.Errorf("the log has %v, want why the call did not wait", pending)
	}
	if status, retry, body := g.get("/readyz"); status != 503 || retry == "" || !strings.Contains(body, "draining") {
		t.Errorf("readyz = %d, Retry-After %q, %s", status, retry, body)
	}
	if status, _, _ := g.get("/healthz"); status != 200 {
		t.Errorf("healthz = %d", status)
	}
	for _, method := range []string{"tools/list", "subscriptions/listen", "initialize"} {
		if status, retry := g.try(adasToken, method); status != 503 || retry == "" {
			t.Errorf("%s = %d, Retry-After %q, want to be told to try again", method, status, retry)
		}
	}
	write(t, filepath.Join(workspace, "go"), "")
	if text := <-ran; !strings.Contains(text, "finished") {
		t.Errorf("the call that ran got %s", text)
	}
	<-g.ended
	if err := g.cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v: %s", err, g.said())
	}
	all := events(t, dir)
	if len(all["run.end"]) != 1 || fmt.Sprint(all["run.end"][0]["exit_code"]) != "0" || len(all["server.stop"]) != 1 {
		t.Errorf("the log has %v, want the end of the run and of the server", all)
	}
}

// A server is ready only while it could record a call and has packs.
func TestReady(t *testing.T) {
	t.Run("store", func(t *testing.T) {
		e := storetest.NATS(t)
		proxy := e.Proxy(t)
		dir, env := home(t)
		packs, config := t.TempDir(), filepath.Join(dir, "config.yaml")
		plantPack(t, packs, "notes", "true\n")
		write(t, config, fmt.Sprintf("packs: [%q]\nstore: {url: %q, key: %q}\nhttp: {token: %s}\n", packs, proxy.URL(), strings.Repeat("5e", 32), adasToken))
		g := startTeam(t, dir, env, config)
		if status, _, body := g.get("/readyz"); status != 200 {
			t.Errorf("readyz = %d, %s", status, body)
		}
		proxy.Cut()
		await(t, "the server is not ready without its store", func() bool {
			status, retry, body := g.get("/readyz")
			return status == 503 && retry != "" && strings.Contains(body, `"why":"store"`)
		})
		if status, _, _ := g.get("/healthz"); status != 200 {
			t.Errorf("healthz without the store = %d", status)
		}
		proxy.Mend()
		await(t, "the server is ready again", func() bool { status, _, _ := g.get("/readyz"); return status == 200 })
	})
	t.Run("packs", func(t *testing.T) {
		dir, env := home(t)
		config := filepath.Join(dir, "config.yaml")
		write(t, config, fmt.Sprintf("packs: [%q]\nhttp: {token: %s}\n", filepath.Join(dir, "none"), adasToken))
		g := startTeam(t, dir, env, config)
		if status, _, body := g.get("/readyz"); status != 503 || !strings.Contains(body, `"why":"packs"`) {
			t.Errorf("readyz without packs = %d, %s", status, body)
		}
	})
	t.Run("log", func(t *testing.T) {
		dir, env := home(t)
		packs, config, log := t.TempDir(), filepath.Join(dir, "config.yaml"), filepath.Join(dir, "audit", "log.jsonl")
		plantPack(t, packs, "notes", "true\n")
		write(t, config, fmt.Sprintf("packs: [%q]\naudit: {path: %q}\nhttp: {token: %s}\n", packs, log, adasToken))
		g := startTeam(t, dir, env, config)
		if err := os.Chmod(log, 0o666); err != nil {
			t.Fatal(err)
		}
		if status, _, body := g.get("/readyz"); status != 503 || !strings.Contains(body, `"why":"log"`) {
			t.Errorf("readyz with a log that others can change = %d, %s", status, body)
		}
	})
}

// When a person, or everyone together, has the maximum number of calls in progress, the
// next call is told to retry later. Calls in progress continue, and other people's calls
// are accepted.
func TestOverload(t *testing.T) {
	dir, env := home(t)
	packs, config := filepath.Join(dir, "packs"), filepath.Join(dir, "config.yaml")
	plantPack(t, packs, "slow", "touch begun; while ! [ -e go ]; do sleep 0.02; done; echo finished\n")
	write(t, config, fmt.Sprintf("packs: [{path: %q, attach: all}]\nrules: [{allow: {pack: slow, kind: exec}}]\n"+
		"http:\n  calls: 2\n  calls_each: 1\n  tokens: [{name: ada, token: %s}, {name: grace, token: %s}, {name: eve, token: eve-s3cret-0123456789}]\n", packs, adasToken, gracesToken))
	g := startTeam(t, dir, env, config)
	ran := make(chan string, 2)
	begun := filepath.Join(dir, "state", "workspaces", "*", "begun")
	run := func(token string, running int) {
		go func() {
			text, _ := g.call(token, "capability_packs_exec_best_effort", map[string]any{"pack_id": "slow", "command": "./go.sh", "workspace": "new"})
			ran <- text
		}()
		await(t, "the program runs", func() bool { all, _ := filepath.Glob(begun); return len(all) == running })
	}
	expect := func(when, token string, want int) {
		t.Helper()
		if status, retry := g.try(token, "tools/list"); status != want || (want != 200) != (retry != "") {
			t.Errorf("%s: %d, Retry-After %q, want %d", when, status, retry, want)
		}
	}
	run(adasToken, 1)
	expect("a second call of ada", adasToken, 429)
	run(gracesToken, 2)
	expect("a call of eve, when the server is full", "eve-s3cret-0123456789", 503)
	all, err := filepath.Glob(begun)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		write(t, filepath.Join(filepath.Dir(file), "go"), "")
	}
	for range 2 {
		if text := <-ran; !strings.Contains(text, "finished") {
			t.Errorf("a call that ran got %s", text)
		}
	}
	await(t, "ada can call again", func() bool { status, _ := g.try(adasToken, "tools/list"); return status == 200 })
}

// The people of a group share its limit: once one of them reaches it, the others are told
// to retry later. People outside the group, and groups without a limit, are not affected.
func TestOverloadOfAGroup(t *testing.T) {
	const evesToken, joesToken = "eve-s3cret-0123456789", "joe-s3cret-0123456789"
	dir, env := home(t)
	packs, config := filepath.Join(dir, "packs"), filepath.Join(dir, "config.yaml")
	plantPack(t, packs, "slow", "touch begun; while ! [ -e go ]; do sleep 0.02; done; echo finished\n")
	write(t, config, fmt.Sprintf("packs: [{path: %q, attach: all}]\nrules: [{allow: {pack: slow, kind: exec}}]\n"+
		"http:\n  calls_group: [contractors=1, on call=1]\n  tokens:\n"+
		"    - {name: ada, token: %s, groups: [contractors, on call]}\n    - {name: grace, token: %s, groups: [staff, contractors]}\n"+
		"    - {name: joe, token: %s, groups: [on call]}\n    - {name: eve, token: %s, groups: [staff]}\n", packs, adasToken, gracesToken, joesToken, evesToken))
	g := startTeam(t, dir, env, config)
	expect := func(when, token string, want int) {
		t.Helper()
		if status, retry := g.try(token, "tools/list"); status != want || (want != 200) != (retry != "") {
			t.Errorf("%s: %d, Retry-After %q, want %d", when, status, retry, want)
		}
	}
	ran := make(chan string, 1)
	go func() {
		text, _ := g.call(adasToken, "capability_packs_exec_best_effort", map[string]any{"pack_id": "slow", "command": "./go.sh", "workspace": "new"})
		ran <- text
	}()
	var begun []string
	await(t, "the program runs", func() bool {
		begun, _ = filepath.Glob(filepath.Join(dir, "state", "workspaces", "*", "begun"))
		return len(begun) == 1
	})
	for range 3 { // a refused call takes no slot
		expect("grace, of one of ada's groups", gracesToken, 429)
		expect("joe, of the other one", joesToken, 429)
		expect("eve, of none of them", evesToken, 200)
	}
	write(t, filepath.Join(filepath.Dir(begun[0]), "go"), "")
	if text := <-ran; !strings.Contains(text, "finished") {
		t.Errorf("the call that ran got %s", text)
	}
	for name, token := range map[string]string{"grace": gracesToken, "joe": joesToken} {
		await(t, name+" can call", func() bool { status, _ := g.try(token, "tools/list"); return status == 200 })
	}
}
