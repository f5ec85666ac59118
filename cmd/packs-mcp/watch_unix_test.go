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

// A client that asks for nothing hears of an edit, and what was read is kept for
// the next start: one that finds it damaged says so, and serves all the same.
func TestServeFollowsEdits(t *testing.T) {
	dir, env := home(t)
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "one", "exit 0\n")
	index := filepath.Join(dir, "state", "index", "packs-*.index")
	serve := func() (said string) {
		t.Helper()
		cmd := exec.Command("packs-mcp", "serve", "--packs", packs, "--attach", "all")
		cmd.Env = env
		var stderr strings.Builder
		cmd.Stderr = &stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		late := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
		defer late.Stop()
		lines := bufio.NewReader(out)
		until := func(words string) {
			t.Helper()
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					t.Errorf("the server ended before it said %q", words)
					return
				}
				if strings.Contains(line, words) {
					return
				}
			}
		}
		fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
		until(`"id":2`)
		// However early it comes: what was edited before anybody watched is seen too.
		name := fmt.Sprintf("new%d", time.Now().UnixNano())
		plantPack(t, packs, name, "exit 0\n")
		until("notifications/tools/list_changed")
		fmt.Fprintln(in, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"capability_packs_list","arguments":{"query":"`+name+`"}}}`)
		until(`"pack_id":"` + name)
		in.Close()
		_, _ = io.Copy(io.Discard, lines)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server ended with %v; it said %s", err, stderr.String())
		}
		return stderr.String()
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
	listed := post("prompts/list", "") // who has seen no list hears of no change
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
