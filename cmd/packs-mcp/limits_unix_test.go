//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// limited is a server with limits for people and groups, and the runs that were begun.
type limited struct {
	*team
	dir   string
	begun map[string]bool // :: folders of runs
}

// startLimited starts a server with two packs: the runs of slow may start without a
// question, and end when they are told how; a question is asked about those of careful.
func startLimited(t *testing.T, more string) *limited {
	t.Helper()
	dir, env := home(t)
	packs, config := filepath.Join(dir, "packs"), filepath.Join(dir, "config.yaml")
	script := "touch begun; while ! [ -e go ]; do [ -e die ] && kill -9 $$; sleep 0.02; done; echo finished\n"
	plantPack(t, packs, "slow", script)
	plantPack(t, packs, "careful", "echo careful\n")
	write(t, config, fmt.Sprintf("packs: [{path: %q, attach: all}]\nrules: [{allow: {pack: slow, kind: exec}}]\n"+
		"approval: {channels: [elicitation, page, terminal]}\nlimits: {memory: 64MiB}\n"+more, packs))
	return &limited{startTeam(t, dir, env, config), dir, make(map[string]bool)}
}

// execOf returns the parameters of a call that runs a pack's program.
func execOf(pack string) map[string]any {
	return map[string]any{"name": "capability_packs_exec_best_effort", "arguments": map[string]any{"pack_id": pack, "command": "./go.sh", "workspace": "new"}}
}

// begin begins a run of slow, waits until it runs, and returns its folder, and where its
// result comes. The run is cancelled with ctx.
func (g *limited) begin(ctx context.Context, token, session string) (folder string, result <-chan string) {
	g.t.Helper()
	done := make(chan string, 1)
	go func() { done <- g.post(ctx, token, session, execOf("slow")) }()
	await(g.t, "the program runs", func() bool {
		select {
		case text := <-done:
			g.t.Fatalf("the run ended: %s", text)
		default:
		}
		all, _ := filepath.Glob(filepath.Join(g.dir, "state", "workspaces", "*", "begun"))
		for _, file := range all {
			if !g.begun[file] {
				g.begun[file], folder = true, filepath.Dir(file)
				return true
			}
		}
		return false
	})
	return folder, done
}

// post calls a tool, in a session of an older era if it is named, and returns the reply or
// the error.
func (g *limited) post(ctx context.Context, token, session string, params map[string]any) string {
	h := map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
	if session != "" {
		h["Mcp-Session-Id"] = session
	} else {
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{"elicitation": map[string]any{}},
			"io.modelcontextprotocol/clientInfo": map[string]any{"name": "team", "version": "1"},
		}
		h["Mcp-Protocol-Version"], h["Mcp-Method"], h["Mcp-Name"] = "2026-07-28", "tools/call", params["name"].(string)
	}
	text, _ := g.message(ctx, h, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
	return text
}

// session begins a session of an older era: a chat of its own.
func (g *limited) session(token string) string {
	g.t.Helper()
	h := map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
	_, of := g.message(g.t.Context(), h, map[string]any{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": map[string]any{
		"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "old", "version": "1"},
	}})
	h["Mcp-Session-Id"] = of.Get("Mcp-Session-Id")
	g.message(g.t.Context(), h, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return h["Mcp-Session-Id"]
}

// message posts a message and returns the reply, or the error, and the header.
func (g *limited) message(ctx context.Context, header map[string]string, m map[string]any) (string, http.Header) {
	body, err := json.Marshal(m)
	if err != nil {
		return err.Error(), nil
	}
	r, err := http.NewRequestWithContext(ctx, "POST", g.url, bytes.NewReader(body))
	if err != nil {
		return err.Error(), nil
	}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return err.Error(), nil
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error(), resp.Header
	}
	return string(all), resp.Header
}

// denied checks that a run of a person does not start because of a limit, whose words the
// error has, and that nobody is asked.
func (g *limited) denied(what, token, session, words string) {
	g.t.Helper()
	for _, pack := range []string{"slow", "careful"} {
		if text := g.post(g.t.Context(), token, session, execOf(pack)); !strings.Contains(text, `over_limit`) || !strings.Contains(text, words) || !strings.Contains(text, "Call again when a program has ended") {
			g.t.Errorf("%s, of the pack %s: %s, want over_limit and %q", what, pack, text, words)
		}
	}
}

// The programs that run are limited for each person, in all chats, and for the people of a
// group together, in number and in memory. What runs goes on; a place is free again however
// its run ended.
func TestLimitsOfRuns(t *testing.T) {
	const evesToken, joesToken = "eve-s3cret-0123456789", "joe-s3cret-0123456789"
	g := startLimited(t, fmt.Sprintf("http:\n  runs_each: 2\n  runs_group: [contractors=1, ghosts=1]\n  memory_each: 1GiB\n  memory_group: [night=128MiB]\n  tokens:\n"+
		"    - {name: ada, token: %s, groups: [staff]}\n    - {name: grace, token: %s, groups: [contractors]}\n"+
		"    - {name: joe, token: %s, groups: [night, contractors]}\n    - {name: eve, token: %s, groups: [night, staff]}\n", adasToken, gracesToken, joesToken, evesToken))
	if !strings.Contains(g.said(), `http.runs_group limits the group \"ghosts\", and nobody in http.tokens is in it`) {
		t.Errorf("the server says nothing of a group that nobody is in: %s", g.said())
	}
	leaving, leave := context.WithCancel(t.Context())
	defer leave()
	_, left := g.begin(leaving, adasToken, "")
	killed, result := g.begin(t.Context(), adasToken, g.session(adasToken))
	const ofAda = "the limit for programs of this person that run at the same time is reached: 2 (http.runs_each)"
	for range 3 { // a denial takes no place
		g.denied("a third run of ada", adasToken, "", ofAda)
		g.denied("a third run of ada in another chat", adasToken, g.session(adasToken), ofAda)
	}
	gracefully, ended := g.begin(t.Context(), gracesToken, "")
	g.denied("a run of a group that has one", joesToken, "", `the limit for programs of the group \"contractors\" that run at the same time is reached: 1 (http.runs_group)`)
	first, one := g.begin(t.Context(), evesToken, "")
	second, two := g.begin(t.Context(), evesToken, "")
	g.denied("a third run of eve", evesToken, "", "http.runs_each")

	leave()
	<-left
	await(t, "the run of a client that is gone has given its place back", func() bool {
		return !strings.Contains(g.post(t.Context(), adasToken, "", execOf("careful")), "over_limit")
	})
	again, finished := g.begin(t.Context(), adasToken, "")
	g.denied("a third run again", adasToken, "", ofAda)
	write(t, filepath.Join(killed, "die"), "")
	if text := <-result; !strings.Contains(text, "SIGKILL") {
		t.Errorf("a run that was killed: %s", text)
	}
	last, lasts := g.begin(t.Context(), adasToken, g.session(adasToken))
	g.denied("a third run once more", adasToken, "", ofAda)
	write(t, filepath.Join(gracefully, "go"), "")
	if text := <-ended; !strings.Contains(text, "finished") {
		t.Errorf("the run of grace: %s", text)
	}
	g.denied("a run of a group whose memory is set aside", joesToken, "", `the programs of the group \"night\" may take 128 MiB of memory together (http.memory_group); those that run may take 128, and this one 64`)
	for folder, done := range map[string]<-chan string{again: finished, last: lasts, first: one, second: two} {
		write(t, filepath.Join(folder, "go"), "")
		if text := <-done; !strings.Contains(text, "finished") {
			t.Errorf("a run at the limit: %s", text)
		}
	}
	joes, done := g.begin(t.Context(), joesToken, "") // nothing of contractors and night is left
	write(t, filepath.Join(joes, "go"), "")
	if text := <-done; !strings.Contains(text, "finished") {
		t.Errorf("a run when all have ended: %s", text)
	}
}

// A call that waited for an answer does not start when there are too many runs by then.
// The log says that what was allowed was withheld, and the user is asked again.
func TestLimitReachedMeanwhile(t *testing.T) {
	g := startLimited(t, fmt.Sprintf("http:\n  runs_each: 1\n  tokens: [{name: ada, token: %s}, {name: grace, token: %s}]\n", adasToken, gracesToken))
	question := regexp.MustCompile(`"requestState":"([^"]+)"`)
	ask := func() map[string]any {
		t.Helper()
		params := execOf("careful")
		delete(params["arguments"].(map[string]any), "workspace")
		text := g.post(t.Context(), adasToken, "", params)
		state := question.FindStringSubmatch(text)
		if state == nil {
			t.Fatalf("the call asks nothing: %s", text)
		}
		params["requestState"] = state[1]
		params["inputResponses"] = map[string]any{"approval": map[string]any{"action": "accept", "content": map[string]any{"decision": "once"}}}
		return params
	}
	answered := ask()
	folder, done := g.begin(t.Context(), adasToken, "")
	if text := g.post(t.Context(), adasToken, "", answered); !strings.Contains(text, "over_limit") || !strings.Contains(text, "The user will then be asked again") {
		t.Errorf("an answer that comes when the person has a run: %s", text)
	}
	log, err := os.ReadFile(filepath.Join(g.dir, "state", "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`"decision":"deny"[^\n]*the limit for programs of this person`).Match(log) {
		t.Errorf("the log does not say that the run was withheld: %s", log)
	}
	write(t, filepath.Join(folder, "go"), "")
	if text := <-done; !strings.Contains(text, "finished") {
		t.Errorf("the run that was there first: %s", text)
	}
	if text := g.post(t.Context(), adasToken, "", ask()); !strings.Contains(text, "careful") {
		t.Errorf("the call, asked about again: %s", text)
	}
}

// The questions that wait are limited, too. The older one can be answered, and its run
// goes on.
func TestLimitsOfQuestions(t *testing.T) {
	g := startLimited(t, fmt.Sprintf("http:\n  questions_each: 1\n  questions_group: [contractors=1]\n  tokens:\n"+
		"    - {name: ada, token: %s, groups: [contractors]}\n    - {name: grace, token: %s, groups: [contractors]}\n", adasToken, gracesToken))
	params := execOf("careful")
	delete(params["arguments"].(map[string]any), "workspace")
	state := regexp.MustCompile(`"requestState":"([^"]+)"`).FindStringSubmatch(g.post(t.Context(), adasToken, "", params))
	if state == nil {
		t.Fatal("the call asks nothing")
	}
	for _, more := range []struct{ token, session, words string }{
		{adasToken, "", "the limit for calls of this person that wait for an answer is reached: 1 (http.questions_each)"},
		{adasToken, g.session(adasToken), "http.questions_each"},
		{gracesToken, "", `the limit for calls of the group \"contractors\" that wait for an answer is reached: 1 (http.questions_group)`},
	} {
		if text := g.post(t.Context(), more.token, more.session, execOf("careful")); !strings.Contains(text, "over_limit") || !strings.Contains(text, more.words) {
			t.Errorf("a further call: %s, want over_limit and %q", text, more.words)
		}
	}
	params["requestState"] = state[1]
	params["inputResponses"] = map[string]any{"approval": map[string]any{"action": "accept", "content": map[string]any{"decision": "once"}}}
	if text := g.post(t.Context(), adasToken, "", params); !strings.Contains(text, "careful") || strings.Contains(text, "over_limit") {
		t.Errorf("the call that waited: %s", text)
	}
	if text := g.post(t.Context(), gracesToken, "", execOf("careful")); !strings.Contains(text, "requestState") {
		t.Errorf("a call of the group afterwards: %s", text)
	}
}
