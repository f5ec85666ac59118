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

	"github.com/packs-mcp/packs-mcp/test/idp"
)

// The program accepts tokens of the identity provider in its configuration, and then
// needs no others.
func TestServeToPeople(t *testing.T) {
	p := idp.Start(t)
	dir, env := home(t)
	config := filepath.Join(dir, "people.yaml")
	if err := os.WriteFile(config, []byte("http: {oidc: {issuer: "+p.Issuer+", audience: "+idp.Audience+", allow: [sre]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("packs-mcp", "serve", "--bundled", "--config", config, "--http", "127.0.0.1:0")
	cmd.Env = env
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	url, said := "", ""
	for lines := bufio.NewScanner(stderr); url == "" && lines.Scan(); {
		said += lines.Text() + "\n"
		url = regexp.MustCompile(`http://127\.0\.0\.1:\d+/mcp`).FindString(lines.Text())
	}
	rest := make(chan string, 1)
	go func() {
		b, _ := io.ReadAll(stderr)
		rest <- string(b)
	}()
	for name, x := range map[string]struct {
		token string
		want  int
	}{
		"Ada":              {p.Token(idp.Ada, idp.Audience), 200},
		"Grace, not in it": {p.Token(idp.Grace, idp.Audience), 403},
		"for another":      {p.Token(idp.Ada, "another"), 401},
		"nobody":           {"x.y.z", 401},
	} {
		r, err := http.NewRequest("POST", url, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+x.token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != x.want {
			t.Errorf("%s: %s %s, want %d", name, res.Status, body, x.want)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	said += <-rest
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v, want status 0", err)
	}
	if strings.Contains(said, "clients need this token") {
		t.Errorf("the server made a token of its own:\n%s", said)
	}
}
