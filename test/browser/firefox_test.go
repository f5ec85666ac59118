package browser_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

// A fox is a Firefox that is driven by its own protocol, Marionette, without a driver
// program: JSON arrays on a TCP connection, each preceded by its length and a colon.
type fox struct {
	t    *testing.T
	conn net.Conn
	in   *bufio.Reader
	id   int
	wait time.Duration // for the answer to one command
}

// startFox starts a headless Firefox. If there is none, it skips the test with the name
// "firefox", which PACKS_MCP_REQUIRE turns into a failure.
func startFox(t *testing.T) *fox {
	t.Helper()
	var path string
	for _, name := range []string{"firefox-esr", "firefox"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		const why = "there is no firefox on the PATH"
		if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "firefox") {
			t.Fatalf("firefox: required by PACKS_MCP_REQUIRE, but %s", why)
		}
		t.Skipf("firefox: %s", why)
	}
	home := t.TempDir()
	profile := filepath.Join(home, "profile")
	settings := `user_pref("marionette.port", 0);
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("app.normandy.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
user_pref("intl.accept_languages", "en-GB");
`
	if err := errors.Join(os.Mkdir(profile, 0o700), os.WriteFile(filepath.Join(profile, "user.js"), []byte(settings), 0o600)); err != nil {
		t.Fatal(err)
	}
	log := new(logbuf.Buffer)
	cmd := exec.Command(path, "--headless", "--no-remote", "--profile", profile, "--marionette", "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+home, "MOZ_CRASHREPORTER_DISABLE=1", "XDG_RUNTIME_DIR="+home)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.WaitDelay = 5 * time.Second // its other processes have its streams
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// It starts several processes, each as slow as a small program.
	f := &fox{t: t, wait: 4 * patience}
	t.Cleanup(func() {
		if f.conn != nil {
			_, _ = f.ask("Marionette:Quit", map[string]any{"flags": []string{"eForceQuit"}})
			f.conn.Close()
		} else {
			_ = cmd.Process.Kill()
		}
		_ = cmd.Wait()
	})
	// It writes the port once it listens.
	deadline, tick := time.After(f.wait), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for f.conn == nil {
		if port, err := os.ReadFile(filepath.Join(profile, "MarionetteActivePort")); err == nil {
			if n, err := strconv.Atoi(strings.TrimSpace(string(port))); err == nil {
				if conn, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", n)); err == nil {
					f.conn = conn
					break
				}
			}
		}
		select {
		case <-deadline:
			t.Fatalf("Firefox did not listen; it said:\n%s", log)
		case <-tick.C:
		}
	}
	f.in = bufio.NewReader(f.conn)
	if _, err := f.read(); err != nil { // its greeting
		t.Fatal(err)
	}
	f.must("WebDriver:NewSession", map[string]any{})
	f.wait = patience
	return f
}

// read reads one message.
func (f *fox) read() ([]json.RawMessage, error) {
	_ = f.conn.SetReadDeadline(time.Now().Add(f.wait))
	head, err := f.in.ReadString(':')
	if err != nil {
		return nil, err
	}
	n, err := strconv.Atoi(strings.TrimSuffix(head, ":"))
	if err != nil || n > 64<<20 {
		return nil, fmt.Errorf("a message begins with %q", head)
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(f.in, b); err != nil {
		return nil, err
	}
	var m []json.RawMessage
	_ = json.Unmarshal(b, &m) // the greeting is an object
	return m, nil
}

// ask sends a command and returns its result.
func (f *fox) ask(command string, params map[string]any) (json.RawMessage, error) {
	f.id++
	b, err := json.Marshal([]any{0, f.id, command, params})
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(f.conn, "%d:%s", len(b), b); err != nil {
		return nil, err
	}
	m, err := f.read()
	if err != nil || len(m) != 4 {
		return nil, fmt.Errorf("%s: %d values, %w", command, len(m), err)
	}
	if string(m[2]) != "null" {
		return nil, fmt.Errorf("%s: %s", command, m[2])
	}
	return m[3], nil
}

func (f *fox) must(command string, params map[string]any) json.RawMessage {
	f.t.Helper()
	v, err := f.ask(command, params)
	if err != nil {
		f.t.Fatalf("%v\nthe page: %s", err, f.look())
	}
	return v
}

func (f *fox) script(expression string) (value any, err error) {
	b, err := f.ask("WebDriver:ExecuteScript", map[string]any{"script": "return (" + expression + ")", "args": []any{}})
	if err != nil {
		return nil, err
	}
	var v struct{ Value any }
	err = json.Unmarshal(b, &v)
	return v.Value, err
}

func (f *fox) look() string {
	v, err := f.script(`location.href + '\n' + document.body.innerText`)
	return fmt.Sprint(v, err)
}

// until waits until an expression is true on the page.
func (f *fox) until(expression string) {
	f.t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for {
		v, err := f.script("Boolean(" + expression + ")")
		if v == true && err == nil {
			return
		}
		select {
		case <-deadline:
			f.t.Fatalf("in vain waited for %s: %v\nthe page: %s", expression, err, f.look())
		case <-tick.C:
		}
	}
}

func (f *fox) has(text string) {
	f.t.Helper()
	f.until(fmt.Sprintf("document.body.innerText.includes(%q)", text))
}

// click clicks an element as a person does, once clicks count.
func (f *fox) click(xpath string) {
	f.t.Helper()
	f.until(`!document.querySelector('.settling')`)
	var found struct{ Value map[string]string }
	if err := json.Unmarshal(f.must("WebDriver:FindElement", map[string]any{"using": "xpath", "value": xpath}), &found); err != nil {
		f.t.Fatal(err)
	}
	for _, id := range found.Value {
		f.must("WebDriver:ElementClick", map[string]any{"id": id})
	}
}

func (f *fox) keys(keys string) {
	f.t.Helper()
	f.until(`!document.querySelector('.settling')`)
	var actions []any
	for _, k := range keys {
		actions = append(actions, map[string]any{"type": "keyDown", "value": string(k)}, map[string]any{"type": "keyUp", "value": string(k)})
	}
	f.must("WebDriver:PerformActions", map[string]any{"actions": []any{map[string]any{"type": "key", "id": "keyboard", "actions": actions}}})
}

// The page works in Firefox as in Chromium: signing in, answering by mouse and keyboard,
// expired calls, files, and the end.
func TestFirefox(t *testing.T) {
	t.Parallel()
	f := startFox(t)
	now := time.Now()
	q := newQueue(greet(now), lint(now), named(greet(now.Add(time.Second)), "CCCC-CCCC", "Run tool close of pack triage?"))
	d, open := openDesk(t, q, theRoom(now))
	f.must("WebDriver:Navigate", map[string]any{"url": open()})
	f.has("3 calls wait for you")
	if v, err := f.script(`location.href + ' ' + document.cookie`); err != nil || v != "http://"+d.Address()+"/ " {
		t.Errorf("the page is at %v, %v", v, err)
	}
	const button = `//article[.//h2[normalize-space()=%q]]//button[normalize-space()=%q]`
	f.click(fmt.Sprintf(button, greet(now).Title, "Run once"))
	q.want(t, "K7QM-2F9X once page map[]")
	f.has("2 calls wait for you")

	// By then, the next one is open.
	f.keys("j")
	f.until(`document.activeElement.querySelector('h2')?.innerText === "Run tool close of pack triage?"`)
	f.keys("c")
	q.want(t, "CCCC-CCCC chat page map[]")
	f.until(`document.activeElement.id === 'count'`)
	q.end(queue.CodeError{Code: "B3XD-77HN", Problem: queue.CodeExpired})
	f.has("Expired. Ask the model to try again.")
	f.has("No call waits")

	f.click(`//button[@aria-label="Show out/report.txt"]`)
	f.has("all is well")
	f.click(`//button[@role="switch"][@aria-label="Pack acme/lint is attached to this chat"]`)
	f.has("Attached: acme/lint")
	f.must("WebDriver:Refresh", map[string]any{})
	f.has("No call waits")

	// The page can be left and opened again.
	f.must("WebDriver:Navigate", map[string]any{"url": "about:blank"})
	f.must("WebDriver:Navigate", map[string]any{"url": open()})
	f.has("No call waits")
	if err := d.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	f.has("Disconnected: the server has ended")
	q.wantNothing(t)
}
