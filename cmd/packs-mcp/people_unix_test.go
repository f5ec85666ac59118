//go:build unix

package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grantfile"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
)

const (
	adasToken   = "ada-s3cret-0123456789"
	gracesToken = "grace-s3cret-0123456789"
)

// A team is a running HTTP server and its output.
type team struct {
	t   *testing.T
	url string
	cmd *exec.Cmd

	mu     sync.Mutex
	stderr bytes.Buffer
	ended  chan struct{}
}

// startTeam starts a server in a folder with a configuration.
func startTeam(t *testing.T, dir string, env []string, config string) *team {
	t.Helper()
	g := &team{t: t, ended: make(chan struct{}), cmd: exec.Command("packs-mcp", "serve", "--config", config, "--http", "127.0.0.1:0")}
	g.cmd.Dir, g.cmd.Env = dir, env
	stderr, err := g.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := g.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	serving := make(chan string, 1)
	go func() {
		defer close(g.ended)
		address := regexp.MustCompile(`url=(https?://\S+/mcp)`)
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			g.mu.Lock()
			g.stderr.WriteString(lines.Text() + "\n")
			g.mu.Unlock()
			if m := address.FindStringSubmatch(lines.Text()); m != nil {
				serving <- m[1]
			}
		}
	}()
	t.Cleanup(func() { g.stop() })
	select {
	case g.url = <-serving:
	case <-g.ended:
		t.Fatalf("the server ended: %s", g.said())
	case <-time.After(30 * time.Second):
		t.Fatalf("the server does not start: %s", g.said())
	}
	return g
}

func (g *team) said() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stderr.String()
}

// stop ends the server and waits for it. It may be called more than once.
func (g *team) stop() {
	if g.cmd.ProcessState != nil {
		return
	}
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	kill := time.AfterFunc(20*time.Second, func() { _ = g.cmd.Process.Kill() })
	defer kill.Stop()
	<-g.ended
	_ = g.cmd.Wait()
}

// call calls a tool as a client of 2026-07-28 that cannot ask, and returns the
// whole reply as text, and its structured content.
func (g *team) call(token, tool string, args map[string]any) (text string, content map[string]any) {
	g.t.Helper()
	return g.send(token, tool, map[string]any{"arguments": args}, map[string]any{})
}

// send is call with all parameters and with the client's capabilities.
func (g *team) send(token, tool string, params, can map[string]any) (text string, content map[string]any) {
	g.t.Helper()
	return g.request(token, "tools/call", tool, params, can)
}

// request makes a request about something with a name, or about none.
func (g *team) request(token, method, name string, params, can map[string]any) (text string, content map[string]any) {
	g.t.Helper()
	if name != "" {
		params["name"] = name
	}
	params["_meta"] = map[string]any{
		"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": can,
		"io.modelcontextprotocol/clientInfo": map[string]any{"name": "team", "version": "1"},
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		g.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(g.t.Context(), "POST", g.url, bytes.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": name,
	} {
		if v != "" {
			r.Header.Set(k, v)
		}
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	resp, err := c.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	var reply struct {
		Result struct {
			StructuredContent map[string]any `json:"structuredContent"`
		} `json:"result"`
	}
	for line := range strings.Lines(string(all)) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "data: ")
		if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &reply) != nil {
			g.t.Fatalf("%s: %s", method+" "+name, all)
		}
	}
	return string(all), reply.Result.StructuredContent
}

// plantTool writes a pack with one tool.
func plantTool(t *testing.T, root, name, cwd, script string) {
	t.Helper()
	plantPack(t, root, name, script)
	tools, err := json.Marshal([]any{map[string]any{
		"name": "go", "description": "Goes.", "inputSchema": map[string]any{"type": "object", "properties": map[string]any{"x": map[string]any{"type": "string"}}},
		"command": map[string]any{"program": "./go.sh", "cwd": cwd},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, name, "tools.json"), tools, 0o600); err != nil {
		t.Fatal(err)
	}
}

const forTwo = `
rules: [{allow: {kind: [open, read, enable, run]}}]
http:
  tokens:
    - {name: ada, token: ` + adasToken + `}
    - {name: grace, token: ` + gracesToken + `}
`

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Several people do not share a project unless the configuration names one.
func TestPeopleAndTheProject(t *testing.T) {
	dir, env := home(t)
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(dir, "repo")
	write(t, filepath.Join(repo, ".git", "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(repo, "shared.txt"), "of all\n")
	plantTool(t, filepath.Join(repo, ".packs"), "found", "workspace", "true\n")
	packs := filepath.Join(dir, "packs")
	plantTool(t, packs, "where", "project", "pwd; ls; echo \"$0\" > mine.txt\n")
	for name, tc := range map[string]struct {
		config string
		env    []string
		where  string // empty: the workspace
		says   string
	}{
		"none":                   {config: forTwo, says: "share no project"},
		"of the configuration":   {config: forTwo + "project: repo\n", where: repo, says: "share the project"},
		"of the environment":     {config: forTwo, env: []string{"PACKS_MCP_PROJECT=" + repo}, where: repo, says: "share the project"},
		"with one token for all": {config: "rules: [{allow: {kind: [open, read, enable, run]}}]\nhttp: {token: " + adasToken + "}\n", where: repo},
	} {
		t.Run(name, func(t *testing.T) {
			config := filepath.Join(dir, "config.yaml")
			write(t, config, tc.config+"packs: [{path: packs, attach: all}]\n")
			g := startTeam(t, repo, append(env, tc.env...), config)
			defer g.stop()
			people := []string{adasToken, gracesToken}
			if !strings.Contains(tc.config, gracesToken) {
				people = people[:1]
			}
			for _, token := range people {
				text, _ := g.call(token, "capability_packs_enable_tools", map[string]any{"pack_id": "where"})
				_, ran := g.call(token, "capability_packs_call_tool", map[string]any{"pack_id": "where", "tool": "go", "arguments": map[string]any{}})
				out, _ := ran["stdout"].(string)
				at, files, _ := strings.Cut(out, "\n")
				handle, _ := ran["workspace"].(string)
				want := tc.where
				if want == "" {
					want = filepath.Join(dir, "state", "workspaces", handle)
				}
				if handle == "" || at != want || strings.Contains(files, "shared.txt") != (tc.where != "") {
					t.Errorf("the tool ran in %q with %q, want %q; enabling said %s, and running %v", at, files, want, text, ran)
				}
				if tc.where == "" && strings.Contains(files, "mine.txt") {
					t.Errorf("one has the files of the other: %q", files)
				}
			}
			// Nor do they get packs from a project that the configuration does
			// not name.
			if _, list := g.call(adasToken, "capability_packs_open_docs", map[string]any{"pack_id": "found"}); strings.Contains(fmt.Sprint(list), "not_attached") != (tc.where != "") {
				t.Errorf("the project's own pack: %v", list)
			}
			if tc.says != "" && !strings.Contains(g.said(), tc.says) {
				t.Errorf("at its start the server said %s, want %q", g.said(), tc.says)
			}
			os.Remove(filepath.Join(repo, "mine.txt"))
		})
	}
}

// Tokens never reach a tool, a log or a result, wherever the configuration is
// and whatever was granted.
func TestTokensAreKept(t *testing.T) {
	dir, env := home(t)
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	repo := filepath.Join(dir, "repo")
	config, key := filepath.Join(repo, "conf", "packs.yaml"), filepath.Join(dir, "tls", "key.pem")
	packs := filepath.Join(dir, "packs")
	show := fmt.Sprintf("cat %q %q\n", config, key)
	plantTool(t, packs, "project", "project", show)
	plantTool(t, packs, "other", "workspace", show)
	plantTool(t, filepath.Join(repo, "conf"), "beside", "workspace", show)
	plantTool(t, repo, "conf", "workspace", show) // its folder holds the configuration
	if err := os.Mkdir(filepath.Dir(key), 0o700); err != nil {
		t.Fatal(err)
	}
	plantPair(t, filepath.Join(dir, "cert.pem"), key, 1, time.Now())
	pem, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.Split(string(pem), "\n")[1]
	write(t, config, forTwo+fmt.Sprintf(`
  tls_cert: ../../cert.pem
  tls_key: ../../tls/key.pem
project: ..
packs: [{path: ../../packs, attach: all}, {path: beside, attach: all}, {path: ../../repo, attach: all}]
sandbox:
  grants:
    - {pack: "*", tool: "*", read: [%q, %q, %q, %q]}
`, repo, filepath.Join(repo, "conf"), config, filepath.Dir(key)))
	g := startTeam(t, repo, append(env, "PACKS_MCP_LOG_LEVEL=debug"), config)
	var all []string
	confined := false // without confinement, a program can read what its user can read
	say := func(token, tool string, args map[string]any) map[string]any {
		text, content := g.call(token, tool, args)
		all = append(all, text)
		return content
	}
	for _, pack := range []string{"project", "other", "beside", "conf"} {
		say(adasToken, "capability_packs_enable_tools", map[string]any{"pack_id": pack})
		ran := say(adasToken, "capability_packs_call_tool", map[string]any{"pack_id": pack, "tool": "go", "arguments": map[string]any{}})
		say(adasToken, "capability_packs_exec_best_effort", map[string]any{"pack_id": pack, "command": "cat", "args": []string{config}})
		confined = confined || ran["sandbox"] == "full" || ran["sandbox"] == "partial"
		if e, _ := ran["error"].(map[string]any); pack == "project" && e["code"] != "path_denied" {
			t.Errorf("a tool that works on the folder with the tokens: %v, want that it does not run", ran)
		}
	}
	for _, path := range []string{"packs.yaml", "SKILL.md"} {
		if got := say(adasToken, "capability_packs_read_file", map[string]any{"pack_id": "conf", "path": path}); !strings.Contains(fmt.Sprint(got), "path_denied") {
			t.Errorf("a file of the pack that holds the configuration: %v, want path_denied", got)
		}
	}
	refused := say(adasToken, "capability_packs_exec_best_effort", map[string]any{"pack_id": "other", "command": "echo", "args": []string{gracesToken}})
	if e, _ := refused["error"].(map[string]any); e["code"] != "invalid_arguments" {
		t.Errorf("a call with grace's token: %v, want that it is not made", refused)
	}
	g.stop()
	audit, err := os.ReadFile(filepath.Join(dir, "state", "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"a result": strings.Join(all, "\n"), "the log": g.said(), "the audit log": string(audit)} {
		for _, token := range []string{adasToken, gracesToken} {
			if strings.Contains(text, token) {
				t.Errorf("%s has the token %s", what, token)
			}
		}
		if confined && strings.Contains(text, secret) {
			t.Errorf("%s has the key of TLS", what)
		}
	}
}

// One person's "always" answers leave others their share of the file.
func TestPeopleShareTheGrants(t *testing.T) {
	dir, env := home(t)
	plantPack(t, filepath.Join(dir, "packs"), "notes", "true\n")
	config := filepath.Join(dir, "config.yaml")
	write(t, config, "packs: [{path: packs, attach: all}]\n"+strings.Replace(forTwo, "rules: [{allow: {kind: [open, read, enable, run]}}]\n", "", 1))
	store := grantfile.Open(filepath.Join(dir, "state", "state", "grants.json"))
	const part = 1000 // of 2,000
	var adas []grants.Grant
	for i := range part {
		adas = append(adas, grants.Grant{ID: fmt.Sprint(i), Digest: "d", Kind: call.KindOpen, Person: "ada"})
	}
	if err := store.Update(func([]grants.Grant) ([]grants.Grant, error) { return adas, nil }); err != nil {
		t.Fatal(err)
	}
	g := startTeam(t, dir, env, config)
	for _, token := range []string{adasToken, gracesToken} {
		form := map[string]any{"elicitation": map[string]any{}}
		params := map[string]any{"arguments": map[string]any{"pack_id": "notes"}}
		asked, _ := g.send(token, "capability_packs_open_docs", params, form)
		state := regexp.MustCompile(`"requestState":"([^"]+)"`).FindStringSubmatch(asked)
		if state == nil {
			t.Fatalf("opening asks nothing: %s", asked)
		}
		params["requestState"] = state[1]
		params["inputResponses"] = map[string]any{"approval": map[string]any{"action": "accept", "content": map[string]any{"decision": "always"}}}
		text, content := g.send(token, "capability_packs_open_docs", params, form)
		if content["error"] != nil || content == nil {
			t.Errorf("the call that was allowed: %s", text)
		}
	}
	all, err := store.Load()
	if err != nil {
		t.Fatal(err)
	}
	kept := make(map[string]int)
	for _, grant := range all {
		kept[grant.Person]++
	}
	if diff := cmp.Diff(map[string]int{"ada": part, "grace": 1}, kept); diff != "" {
		t.Errorf("what is kept of each differs (-want +got):\n%s\n%s", diff, g.said())
	}
}
