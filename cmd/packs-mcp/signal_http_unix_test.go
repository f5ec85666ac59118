//go:build unix

package main

import (
	"bufio"
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

// On SIGTERM, an HTTP server that does not drain ends as cleanly as one on standard input:
// running programs are killed, the client gets a complete response, the status is 0, and
// the log is complete.
func TestSignalOverHTTP(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	dir, env := home(t)
	packs, config := filepath.Join(dir, "packs"), filepath.Join(dir, "rules.yaml")
	plantPack(t, packs, "hold", holdAlive)
	if err := os.WriteFile(config, []byte("rules: [{allow: {pack: hold, kind: exec}}]\nhttp: {drain: 0s}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	alive := vigilOver(t, filepath.Join(dir, "state", "workspaces"))
	cmd := exec.Command("packs-mcp", "serve", "--packs", packs, "--config", config, "--http", "127.0.0.1:0")
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
	defer cmd.Process.Kill()
	url := ""
	for lines := bufio.NewScanner(stderr); url == "" && lines.Scan(); {
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`).FindString(lines.Text())
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, stderr)
	}()
	r, err := http.NewRequest("POST", url, strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"capability_packs_exec_best_effort",`+
		`"arguments":{"pack_id":"hold","command":"./go.sh"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "capability_packs_exec_best_effort",
	} {
		r.Header.Set(name, value)
	}
	answered := make(chan error, 1)
	go func() {
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		answered <- err
	}()
	alive.begins()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Errorf("the call got %v, want the end of an answer", err)
	}
	<-drained
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v, want status 0", err)
	}
	alive.ends()
	all := events(t, dir)
	if len(all["run.end"]) != 1 || all["run.end"][0]["cause"] != "cancelled" || len(all["server.stop"]) != 1 {
		t.Errorf("the log has %v, want the end of the run and of the server", all)
	}
	verify := exec.Command("packs-mcp", "audit", "verify")
	verify.Env = env
	if out, err := verify.CombinedOutput(); err != nil {
		t.Errorf("audit verify: %v\n%s", err, out)
	}
}
