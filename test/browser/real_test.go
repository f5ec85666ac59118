package browser_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

// showVar is set for the server. The test binary acts as its user's browser, and writes its
// arguments to the file of that name.
const showVar = "BROWSER_TEST_SHOW"

// show is the browser: it records its arguments for the test.
func show(file string) int {
	text := strings.Join(os.Args[1:], "\n")
	if os.WriteFile(file+".part", []byte(text), 0o600) != nil || os.Rename(file+".part", file) != nil {
		return 1
	}
	return 0
}

// program returns the real program, built once for all tests, with the race detector if they
// have it.
var program = sync.OnceValues(func() (string, error) {
	if file := os.Getenv("PACKS_MCP_BIN"); file != "" {
		return file, nil
	}
	// The test cache tracks the files that a test reads, but not what "go build" reads.
	for _, dir := range []string{"cmd", "internal", "schemas", "examples", "go.mod", "go.sum"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil {
			return "", err
		}
	}
	file := filepath.Join(binDir, "packs-mcp")
	args := []string{"build", "-o", file}
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "github.com/packs-mcp/packs-mcp/cmd/packs-mcp")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return file, nil
})

// A world is one user's machine, with a server for a client that cannot show questions.
type world struct {
	*mcp.ClientSession
	t      *testing.T
	script string // of the pack's tool
	shown  string // file with the browser's arguments
	env    []string
	stderr *logbuf.Buffer
}

const (
	skillText = "---\nname: triage\ndescription: Triage incidents.\n---\n# Triage\n"
	toolsText = `{"tools": [{
  "name": "greet", "description": "Say hello to somebody.",
  "inputSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false},
  "command": {"program": "./scripts/greet.sh", "args": ["{{name}}"]}
}]}`
	scriptText = "#!/bin/sh\necho hello \"$1\"\nmkdir -p out\necho \"was here: $1\" >out/note.txt\n" +
		"echo \"<script>document.title='ran'</script>\" >out/page.html\n"
)

func newWorld(t *testing.T, env ...string) *world {
	t.Helper()
	return openWorld(t, toolsText, scriptText, env...)
}

// openWorld is newWorld with another tool.
func openWorld(t *testing.T, tools, script string, env ...string) *world {
	t.Helper()
	chromium.start(t) // skips the test if there is no browser
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("sh: not on this system, and the tool of the test's pack is a POSIX script")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pack := filepath.Join(root, "packs", "triage")
	file := filepath.Join(pack, "scripts", "greet.sh")
	err = errors.Join(
		os.MkdirAll(filepath.Dir(file), 0o755),
		os.WriteFile(filepath.Join(pack, "SKILL.md"), []byte(skillText), 0o644),
		os.WriteFile(filepath.Join(pack, "tools.json"), []byte(tools), 0o644),
		os.WriteFile(file, []byte(script), 0o755),
	)
	if err != nil {
		t.Fatal(err)
	}
	w := startWorld(t, root, env...)
	w.script = file
	return w
}

// startWorld starts the server for the packs in a user's home folder.
func startWorld(t *testing.T, root string, env ...string) *world {
	t.Helper()
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, shown: filepath.Join(root, "shown"), stderr: new(logbuf.Buffer)}
	if err := os.Mkdir(filepath.Join(root, "workspace"), 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "serve", "--packs", filepath.Join(root, "packs"), "--workspace", filepath.Join(root, "workspace"))
	cmd.Dir, cmd.Stderr = root, w.stderr
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + root, "PACKS_MCP_HOME=" + filepath.Join(root, "home"), "PACKS_MCP_SANDBOX_REQUIRE=none",
		"BROWSER='" + exe + "' %s", showVar + "=" + w.shown, "GORACE=atexit_sleep_ms=0",
	}, env...)
	w.env = cmd.Env
	w.ClientSession, err = mcp.NewClient(&mcp.Implementation{Name: "cannot-ask", Version: "1.2"}, nil).
		Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatalf("connecting: %v; the server logged:\n%s", err, w.stderr)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Errorf("Close() = %v, want the server to end with status 0", err)
		}
		if log := w.stderr.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "DATA RACE") {
			t.Errorf("the server logged:\n%s", log)
		}
		if left, err := filepath.Glob(filepath.Join(root, "home", "run", "*")); err != nil || len(left) > 0 {
			t.Errorf("the server left %q in its run folder", left)
		}
	})
	return w
}

// command runs the program as its user would.
func (w *world) command(args ...string) string {
	w.t.Helper()
	bin, err := program()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(bin, args...)
	cmd.Env = w.env
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("packs-mcp %v: %v", args, err)
	}
	return string(out)
}

// A reply is the result of a call.
type reply struct {
	text    string
	isError bool
}

// call makes a call without waiting for its result.
func (w *world) call(name string, args map[string]any) <-chan reply {
	done := make(chan reply, 1)
	go func() {
		ctx, cancel := context.WithTimeout(w.t.Context(), 10*patience) // longer than reopening a page takes
		defer cancel()
		result, err := w.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
		if err != nil {
			done <- reply{"no result: " + err.Error(), true}
			return
		}
		r := reply{isError: result.IsError}
		for _, c := range result.Content {
			if text, ok := c.(*mcp.TextContent); ok {
				r.text += text.Text
			}
		}
		done <- r
	}()
	return done
}

func (w *world) greet(name string) <-chan reply {
	return w.call("capability_packs_call_tool", map[string]any{"pack_id": "triage", "tool": "greet", "arguments": map[string]any{"name": name}})
}

// want waits for the result of a call.
func (w *world) want(done <-chan reply, isError bool, parts ...string) string {
	w.t.Helper()
	select {
	case got := <-done:
		for _, p := range parts {
			if !strings.Contains(got.text, p) || got.isError != isError {
				w.t.Fatalf("the call = error %v, %s\nwant error %v and %q", got.isError, got.text, isError, p)
			}
		}
		return got.text
	case <-time.After(patience):
		w.t.Fatalf("the call did not come back; the server logged:\n%s", w.stderr)
		return ""
	}
}

// page waits until the server has started the browser, and opens the given file in a new
// tab.
func (w *world) page() *tab {
	w.t.Helper()
	return w.pageIn(newTab(w.t))
}

// pageIn is page in an existing tab.
func (w *world) pageIn(b *tab) *tab {
	w.t.Helper()
	return w.pageWithin(b, patience)
}

// pageWithin is pageIn with a time limit.
func (w *world) pageWithin(b *tab, most time.Duration) *tab {
	w.t.Helper()
	deadline, tick := time.After(most), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for {
		if address, err := os.ReadFile(w.shown); err == nil {
			if !strings.HasPrefix(string(address), "file:///") || strings.ContainsAny(string(address), "\n?#") {
				w.t.Fatalf("the browser was started with %q, want the address of a file alone", address)
			}
			b.do(chromedp.Navigate(string(address)))
			// The file leads to the page in two steps, and a script that runs between them ends with
			// the old document.
			b.until(`location.protocol === 'http:' && location.pathname === '/' && document.readyState === 'complete'`)
			return b
		}
		select {
		case <-deadline:
			w.t.Fatalf("the browser was not started; the server logged:\n%s", w.stderr)
		case <-tick.C:
		}
	}
}

func (w *world) enable() <-chan reply {
	return w.call("capability_packs_enable_tools", map[string]any{"pack_id": "triage"})
}

const enableTitle = "Enable 1 tool of pack triage?"

// enabled returns the page of a server whose tool is enabled.
func (w *world) enabled() *tab {
	w.t.Helper()
	done := w.enable()
	b := w.page()
	b.press(enableTitle, "Enable once")
	w.want(done, false, `"enabled":true`)
	b.has("No call waits")
	return b
}

const greetTitle = "Run tool greet of pack triage?"

// A client that cannot ask calls a tool, the page shows the call, and the answer there
// reaches the client.
func TestTheWholeWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.enabled()
	done := w.greet("Ada")
	b.has("greet.sh Ada")
	b.has("asked by cannot-ask 1.2")
	b.press(greetTitle, "Run once")
	w.want(done, false, "hello Ada")
	b.has("No call waits")
	b.has("exit code 0")
	b.opens("out/note.txt", "was here: Ada")
	b.opens("out/page.html", "<script>document.title='ran'</script>")

	done = w.greet("Bob")
	b.press(greetTitle, "Deny")
	w.want(done, true, `"denied"`, "the person chose to deny")
	b.has("denied on this page")

	// Two at once, with separate answers.
	first, second := w.greet("Cy"), w.greet("Dee")
	b.has("2 calls wait for you")
	for range 2 {
		b.settled()
		name, button := "Cy", "Run once"
		if !strings.HasSuffix(eval[string](b, `document.querySelector('.command').innerText`), name) {
			name, button = "Dee", "Deny"
		}
		b.click(fmt.Sprintf(`//article[contains(., 'greet.sh %s')]//button[normalize-space()=%q]`, name, button), button)
		b.until(fmt.Sprintf(`![...document.querySelectorAll('.command')].some((p) => p.textContent.endsWith(' %s'))`, name))
	}
	w.want(first, false, "hello Cy")
	w.want(second, true, `"denied"`)

	// A detached pack disappears.
	attached := "Pack triage is attached to this chat"
	b.click(label(attached), attached)
	b.has("Detached: triage")
	w.want(w.greet("Eve"), true, "not_attached")
}

// The pack changes while its call waits, and again after an "always" answer.
func TestThePackChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.enabled()
	done := w.greet("Ada")
	b.press(greetTitle, "Always")
	w.want(done, false, "hello Ada")
	w.want(w.greet("Bob"), false, "hello Bob") // without a question

	w.rewrite("echo two \"$1\"")
	done = w.greet("Cy")
	b.has("scripts/greet.sh")
	b.has("changed")

	w.rewrite("echo three \"$1\"") // while the person reads
	b.press(greetTitle+" (changed)", "Run once")
	text := w.want(done, true, `"denied"`, "changed since the question")
	if strings.Contains(text, "three Cy") {
		t.Errorf("what nobody saw has run: %s", text)
	}
	done = w.greet("Dee")
	b.has("greet.sh Dee")
	b.has("changed")
	b.press(greetTitle+" (changed)", "Run once")
	w.want(done, false, "three Dee")
}

func (w *world) rewrite(line string) {
	w.t.Helper()
	if err := os.WriteFile(w.script, []byte("#!/bin/sh\n"+line+"\n"), 0o755); err != nil {
		w.t.Fatal(err)
	}
}

// A call that has returned can still be allowed for when it is repeated.
func TestAnswerLate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "PACKS_MCP_APPROVAL_WAIT=1s")
	w.want(w.enable(), true, `"approval_pending"`)
	b := w.page()
	b.until(`/^The client stopped waiting\. Answer within (10:00|9:5\d), then tell the model to go on\.$/.test(document.querySelector('.time').textContent)`)
	b.press(enableTitle, "Enable once")
	b.has("Tell the model to go on: the client has to make the call again.")
	b.has("The client has not called again yet. Your answer holds for ")
	w.want(w.enable(), false, `"enabled":true`)
	b.has("No call waits")

	// It can also be denied.
	w.want(w.greet("Ada"), true, `"approval_pending"`)
	b.press(greetTitle, "Deny")
	b.has("Denied: " + strings.TrimSuffix(greetTitle, "?") + ".")
	w.want(w.greet("Ada"), true, `"denied"`)
}
