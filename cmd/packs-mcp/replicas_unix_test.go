//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

// A replica is a server with its own files, and runs commands with them.
type replica struct {
	*team
	env    []string
	config string
}

// command runs packs-mcp with the replica's configuration.
func (r *replica) command(args ...string) (out string, err error) {
	cmd := exec.Command("packs-mcp", append(args, "--config", r.config)...)
	cmd.Env = r.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return stdout.String(), err
}

// open opens a pack as ada. If she is asked, she gives this answer; an empty one
// means that she does not answer. It returns "asks", "allowed", or the code of an
// error.
func (r *replica) open(answer string) string {
	r.t.Helper()
	form := map[string]any{"elicitation": map[string]any{}}
	params := map[string]any{"arguments": map[string]any{"pack_id": "notes"}}
	text, content := r.send(adasToken, "capability_packs_open_docs", params, form)
	if state := regexp.MustCompile(`"requestState":"([^"]+)"`).FindStringSubmatch(text); state != nil {
		if answer == "" {
			return "asks"
		}
		params["requestState"] = state[1]
		params["inputResponses"] = map[string]any{"approval": map[string]any{"action": "accept", "content": map[string]any{"decision": answer}}}
		text, content = r.send(adasToken, "capability_packs_open_docs", params, form)
	}
	if e, _ := content["error"].(map[string]any); e != nil {
		return fmt.Sprint(e["code"])
	}
	if content == nil {
		r.t.Fatalf("opening a pack: %s", text)
	}
	return "allowed"
}

// Three servers share one store: an "always" answer on one holds on all, even if that one
// is killed, and revoking it takes effect on all. Without the store, nothing is allowed
// that needs a person's decision.
func TestReplicas(t *testing.T) {
	t.Cleanup(storetest.End)
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		packs := t.TempDir()
		plantPack(t, packs, "notes", "true\n")
		proxy := e.Proxy(t)
		key := strings.Repeat("5e", 32)
		start := func() *replica {
			dir, env := home(t)
			r := &replica{env: env, config: filepath.Join(dir, "config.yaml")}
			keyFile := filepath.Join(dir, "keys", "replicas")
			if err := os.MkdirAll(filepath.Dir(keyFile), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(keyFile, []byte(key+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			write(t, r.config, fmt.Sprintf("packs: [{path: %q, attach: all}]\nstore: {url: %q, key_file: keys/replicas}\nhttp:\n  tokens: [{name: ada, token: %s}]\n", packs, proxy.URL(), adasToken))
			r.team = startTeam(t, dir, env, r.config)
			return r
		}
		a, b, c := start(), start(), start()
		wants := func(when string, r *replica, answer, want string) {
			t.Helper()
			if got := r.open(answer); got != want {
				t.Errorf("%s: %s, want %s\n%s", when, got, want, r.said())
			}
		}
		wants("on another, before an answer", b, "", "asks")
		wants("the answer", a, "always", "allowed")
		wants("on another", b, "", "allowed")
		if err := a.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		wants("on a third, when the first was killed", c, "", "allowed")

		out, err := b.command("approvals", "grants", "--json")
		var listed struct {
			Grants []struct {
				ID, Pack, Person string
			}
		}
		if err != nil || json.Unmarshal([]byte(out), &listed) != nil || len(listed.Grants) != 1 || listed.Grants[0].Pack != "notes" || listed.Grants[0].Person != "ada" {
			t.Fatalf("approvals grants = %s, %v", out, err)
		}
		if out, err := b.command("approvals", "revoke", listed.Grants[0].ID); err != nil || !strings.Contains(out, "revoked") {
			t.Fatalf("approvals revoke = %s, %v", out, err)
		}
		for _, r := range []*replica{b, c} {
			wants("after it was revoked", r, "", "asks")
		}

		wants("an answer for the chat", b, "chat", "allowed")
		wants("in the chat", b, "", "allowed")
		wants("in the chat, on another server", c, "", "allowed")
		if out, err := c.command("approvals", "revoke", "--person", "ada"); err != nil || !strings.Contains(out, "on every server") {
			t.Fatalf("approvals revoke --person = %s, %v", out, err)
		}
		wants("in the chat of another server, when the person's answers have ended", b, "", "asks")

		wants("the answer again", c, "always", "allowed")
		proxy.Cut()
		wants("without the store", b, "", "store_unavailable")
		if out, err := b.command("approvals", "grants"); err == nil || !strings.Contains(err.Error(), "store") || strings.Contains(err.Error(), key) {
			t.Errorf("approvals grants without the store = %s, %v", out, err)
		}
		proxy.Mend()
		back := false
		for end := time.Now().Add(time.Minute); !back && time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			back = b.open("") == "allowed"
		}
		if !back {
			t.Errorf("when the store was back, %s", b.said())
		}
		auditOfReplicas(t, c)
		for _, r := range []*replica{b, c} {
			r.stop()
			if strings.Contains(r.said(), key) || strings.Contains(r.said(), "://packs@") {
				t.Errorf("the server's log has the key or the store's URL: %s", r.said())
			}
		}
	})
}

// auditOfReplicas exports the log of all replicas and runs every check on it.
func auditOfReplicas(t *testing.T, r *replica) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "export")
	out, err := r.command("audit", "export", dir, "--json")
	var done struct{ Chains, Checkpoints int }
	if err != nil || json.Unmarshal([]byte(out), &done) != nil || done.Chains < 4 || done.Checkpoints == 0 {
		t.Fatalf("audit export = %s, %v", out, err) // three servers, and revoke
	}
	out, err = r.command("audit", "verify", dir)
	if err != nil || !strings.HasPrefix(out, "ok: ") || !strings.Contains(out, "signed with: ") || strings.Contains(out, "vouches") {
		t.Errorf("audit verify = %s, %v", out, err)
	}
	out, err = r.command("audit", "show", "--export", dir, "--json")
	for _, want := range []string{`"event":"server.start"`, `"event":"revoke"`, `"decision":"always"`, `"caller":"ada"`} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("audit show has no %s: %s, %v", want, out, err)
		}
	}
	if out, err = r.command("audit", "prune", dir, "--before", "1h"); err != nil || !strings.HasPrefix(out, "removed 0 entries") {
		t.Errorf("audit prune = %s, %v", out, err)
	}
	for _, args := range [][]string{{"audit", "show"}, {"audit", "verify"}, {"audit", "export", dir}} {
		if out, err := r.command(args...); err == nil {
			t.Errorf("%q = %s, want an error", args, out)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "chains", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("chains: %q, %v", files, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if out, err := r.command("audit", "verify", dir, "--json"); err == nil || !strings.Contains(out, "the chain is missing") {
		t.Errorf("audit verify of an export without a chain = %s, %v", out, err)
	}
}

// A server does not start with an incomplete configuration for replicas.
func TestReplicaNeedsAKey(t *testing.T) {
	e := storetest.NATS(t)
	dir, env := home(t)
	config := filepath.Join(dir, "config.yaml")
	open := filepath.Join(dir, "open")
	write(t, open, strings.Repeat("5e", 32))
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	for settings, want := range map[string]string{
		fmt.Sprintf("url: %q", e.URL()):                                      "the key that replicas share is not",
		fmt.Sprintf("url: %q, key_file: open", e.URL()):                      "refusing the keys that replicas share",
		`url: "nats://127.0.0.1:1", key: "` + strings.Repeat("5e", 32) + `"`: "opening the store that replicas share",
	} {
		write(t, config, "store: {"+settings+"}\n")
		cmd := exec.Command("packs-mcp", "serve", "--config", config)
		cmd.Env = env
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) || strings.Contains(string(out), strings.Repeat("5e", 32)) {
			t.Errorf("with %q: %v, %s, want %q", settings, err, out, want)
		}
	}
}
