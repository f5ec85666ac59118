package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/tools/txtar"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

// The eras: the newest protocol version with initialize, the one before it, which Codex and
// Gemini still use, and the first without.
const (
	v20250618 = "2025-06-18"
	v20251125 = "2025-11-25"
	v20260728 = "2026-07-28"
)

// patience is how long a test waits for something that must happen. Only a failing test waits
// that long.
const patience = 30 * time.Second

// binDir is where the program is built; TestMain creates and removes it.
var binDir string

func TestMain(m *testing.M) {
	if file := os.Getenv(wireVar); file != "" {
		os.Exit(passOn(file, os.Args[1:]))
	}
	var err error
	if binDir, err = os.MkdirTemp("", "packs-mcp-e2e-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(binDir)
	os.Exit(code)
}

// program returns the absolute path of the program to test: the one in PACKS_MCP_BIN, or one
// built for all tests, with the race detector if they have it.
var program = sync.OnceValues(func() (string, error) {
	if file := os.Getenv("PACKS_MCP_BIN"); file != "" {
		return file, nil
	}
	// The test cache tracks the files that a test reads, but not what "go build" reads:
	// without this, results for an older program would be reused.
	for _, dir := range []string{"cmd", "internal", "schemas", "examples", "go.mod", "go.sum"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil {
			return "", err
		}
	}
	file := filepath.Join(binDir, "packs-mcp")
	if runtime.GOOS == "windows" {
		file += ".exe"
	}
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

// needShell skips a test if its pack's tools cannot run here.
func needShell(t *testing.T) {
	t.Helper()
	for _, program := range []string{"sh", "mkfifo"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s: not on this system, and the tools of the test's pack are POSIX scripts", program)
		}
	}
}

// A world is one user's machine: packs, a home, a workspace.
type world struct {
	t         *testing.T
	program   string
	packs     string
	workspace string
	env       []string
	over      transport // how clients connect to the server
	config    string    // its configuration file; empty: none
}

func newWorld(t *testing.T) *world {
	t.Helper()
	needShell(t)
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	// Resolved, since people are shown real paths.
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, program: file, packs: filepath.Join(root, "packs"), workspace: filepath.Join(root, "workspace"),
		env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + root, "PACKS_MCP_HOME=" + filepath.Join(root, "home"), "PACKS_MCP_SANDBOX_REQUIRE=none", "PACKS_MCP_APPROVAL_CHANNELS=elicitation",
			"SOME_API_KEY=never-in-a-run",
			"GORACE=atexit_sleep_ms=0", // otherwise each command built with -race waits a second
		},
	}
	w.unpack(filepath.Join("testdata", "packs.txtar"))
	if err := os.Mkdir(w.workspace, 0o700); err != nil {
		t.Fatal(err)
	}
	return w
}

// unpack adds the packs of an archive to the user's packs.
func (w *world) unpack(archive string) {
	w.t.Helper()
	a, err := txtar.ParseFile(archive)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range a.Files {
		name := filepath.Join(w.packs, filepath.FromSlash(f.Name))
		mode := os.FileMode(0o644)
		if filepath.Ext(name) == ".sh" {
			mode = 0o755
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, f.Data, mode)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// command returns a command that runs the program in the user's environment.
func (w *world) command(args ...string) *exec.Cmd {
	cmd := exec.Command(w.program, args...)
	cmd.Env, cmd.Dir = w.env, filepath.Dir(w.packs)
	return cmd
}

// entries verifies the audit log with the program, and returns its entries.
func (w *world) entries() []audit.Entry {
	w.t.Helper()
	out, err := w.command("audit", "verify").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "ok: ") {
		w.t.Fatalf("audit verify: %v, printed %q, want status 0 and ok", err, out)
	}
	out, err = w.command("audit", "show", "--json").Output()
	if err != nil {
		w.t.Fatalf("audit show --json: %v", err)
	}
	var all []audit.Entry
	d := json.NewDecoder(bytes.NewReader(out))
	for {
		var e audit.Entry
		if err := d.Decode(&e); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			w.t.Fatalf("audit show --json printed %q: %v", out, err)
		}
		all = append(all, e)
	}
}

// An answerer is the person: it gets a question and returns the answer.
type answerer func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error)

// choose accepts the form with a decision, whatever is asked.
func choose(decision string) answerer {
	return func(context.Context, *mcp.ElicitParams) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}, nil
	}
}

// A client is the official Go client, connected to its own server.
type client struct {
	*mcp.ClientSession
	w       *world
	cmd     *exec.Cmd
	stop    func() error // ends the HTTP server; nil on stdio
	stderr  *logbuf.Buffer
	changes chan struct{} // has a value for each tools/list_changed

	mu      sync.Mutex
	answer  answerer
	asked   []*mcp.ElicitParams
	tools   map[string]*mcp.Tool // :: name → definition, as last listed
	schemas map[string]*jsonschema.Resolved
}

// connect starts the program and connects with a given protocol version. A nil answerer is a
// client that cannot show questions.
func (w *world) connect(version string, answer answerer) *client {
	w.t.Helper()
	c := &client{w: w, stderr: new(logbuf.Buffer), changes: make(chan struct{}, 16), answer: answer}
	opts := &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { c.changes <- struct{}{} },
	}
	if answer != nil {
		opts.ElicitationHandler = c.elicited
	}
	cmd := w.command("serve", "--packs", w.packs, "--workspace", w.workspace)
	cmd.Stderr = c.stderr
	c.cmd = cmd
	var to mcp.Transport = &mcp.CommandTransport{Command: cmd}
	if w.over != overStdio {
		to = c.overHTTP()
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "1.2"}, opts).
		Connect(w.t.Context(), to, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		w.t.Fatalf("Connect(%q) = %v, want a session; the server logged:\n%s", version, err, c.stderr)
	}
	c.ClientSession = session
	w.t.Cleanup(func() { _ = session.Close() }) // for tests that end early
	if got := session.InitializeResult().ProtocolVersion; got != version {
		w.t.Fatalf("Connect(%q) agreed on %q, want exactly that", version, got)
	}
	return c
}

// close ends the session as clients do, and checks that the server ends well.
func (c *client) close() {
	c.w.t.Helper()
	if err := c.Close(); err != nil {
		c.w.t.Errorf("Close() = %v, want the server to end with status 0", err)
	}
	if c.w.over != overStdio {
		c.endServer()
	}
	if log := c.stderr.String(); strings.Contains(log, "level=ERROR") || strings.Contains(log, "DATA RACE") {
		c.w.t.Errorf("the server logged errors:\n%s", log)
	}
}

func (c *client) elicited(ctx context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	c.mu.Lock()
	c.asked = append(c.asked, req.Params)
	answer := c.answer
	c.mu.Unlock()
	return answer(ctx, req.Params)
}

// answers sets how the next questions are answered.
func (c *client) answers(a answerer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = a
}

// questions returns the questions since its last call.
func (c *client) questions() []*mcp.ElicitParams {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.asked
	c.asked = nil
	return asked
}

// list lists the tools and returns their names in order.
func (c *client) list() []string {
	c.w.t.Helper()
	result, err := c.ListTools(c.w.t.Context(), nil)
	if err != nil {
		c.w.t.Fatalf("ListTools() = %v", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tools, c.schemas = make(map[string]*mcp.Tool), make(map[string]*jsonschema.Resolved)
	for _, tool := range result.Tools {
		c.tools[tool.Name] = tool
		if c.schemas[tool.Name], err = resolve(tool.OutputSchema); err != nil {
			c.w.t.Errorf("the output schema of %s: %v", tool.Name, err)
		}
		if _, err := resolve(tool.InputSchema); err != nil {
			c.w.t.Errorf("the input schema of %s: %v", tool.Name, err)
		}
	}
	return slices.Sorted(maps.Keys(c.tools))
}

func resolve(schema any) (*jsonschema.Resolved, error) {
	raw, err := json.Marshal(schema)
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("its type is %q, want object", s.Type)
	}
	return s.Resolve(nil)
}

// call calls a tool and returns the result's JSON. It checks that every result, including
// errors, is the same in both forms and matches the tool's output schema.
func (c *client) call(ctx context.Context, name string, args map[string]any) (out map[string]any, isError bool) {
	c.w.t.Helper()
	if args == nil {
		args = map[string]any{} // a nil map would be sent as null
	}
	result, err := c.CallTool(ctx, &mcp.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		c.w.t.Errorf("CallTool(%q, %v) = %v; the server logged:\n%s", name, args, err, c.stderr)
		return nil, true
	}
	out, ok := result.StructuredContent.(map[string]any)
	if !ok {
		c.w.t.Errorf("CallTool(%q): structuredContent = %v, want an object", name, result.StructuredContent)
		return nil, result.IsError
	}
	var texts []any
	for _, content := range result.Content {
		if link, ok := content.(*mcp.ResourceLink); ok {
			c.linked(name, link, out)
			continue
		}
		var v any
		if text, ok := content.(*mcp.TextContent); !ok {
			c.w.t.Errorf("CallTool(%q): content %T, want text", name, content)
		} else if err := json.Unmarshal([]byte(text.Text), &v); err != nil {
			c.w.t.Errorf("CallTool(%q): the text %q is not JSON: %v", name, text.Text, err)
		}
		texts = append(texts, v)
	}
	if diff := cmp.Diff([]any{out}, texts); diff != "" {
		c.w.t.Errorf("CallTool(%q): the text differs from the structured content (-structured +text):\n%s", name, diff)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	schema := c.schemas[name]
	if schema == nil {
		c.w.t.Errorf("CallTool(%q): the tool was not listed with an output schema", name)
		return out, result.IsError
	}
	if err := schema.Validate(out); err != nil {
		c.w.t.Errorf("CallTool(%q) = %v, which its output schema does not allow: %v", name, out, err)
	}
	for key := range out {
		if schema.Schema().Properties[key] == nil {
			c.w.t.Errorf("CallTool(%q) has %q, which its output schema does not declare", name, key)
		}
	}
	return out, result.IsError
}

// ok calls a tool that must succeed.
func (c *client) ok(name string, args map[string]any) map[string]any {
	c.w.t.Helper()
	out, isError := c.call(c.w.t.Context(), name, args)
	if isError {
		c.w.t.Fatalf("CallTool(%q, %v) = error %v, want success", name, args, out)
	}
	return out
}

// refused calls a tool that must return an error, and returns that.
func (c *client) refused(name string, args map[string]any) map[string]any {
	c.w.t.Helper()
	out, isError := c.call(c.w.t.Context(), name, args)
	e, ok := out["error"].(map[string]any)
	if !isError || !ok || len(out) != 1 {
		c.w.t.Fatalf("CallTool(%q, %v) = %v, isError %v, want an error and nothing else", name, args, out, isError)
	}
	return e
}

// linked checks that a link in a result leads to one of its artifacts.
func (c *client) linked(name string, link *mcp.ResourceLink, out map[string]any) {
	c.w.t.Helper()
	uri := fmt.Sprintf("workspace://%v/%s", out["workspace"], link.Name)
	artifacts, _ := out["artifacts"].([]any)
	listed := slices.ContainsFunc(artifacts, func(a any) bool {
		artifact, _ := a.(map[string]any)
		return artifact["path"] == link.Name
	})
	if link.URI != uri || !listed {
		c.w.t.Errorf("CallTool(%q): a link to %s, want one to an artifact, as %s", name, link.URI, uri)
	}
}

// changed waits for one tools/list_changed.
func (c *client) changed() {
	c.w.t.Helper()
	select {
	case <-c.changes:
	case <-time.After(patience):
		c.w.t.Fatal("no tools/list_changed came")
	}
}

// unchanged checks that there was no tools/list_changed beyond those that were awaited.
// Notifications arrive in order, so call it after a later request.
func (c *client) unchanged() {
	c.w.t.Helper()
	if n := len(c.changes); n > 0 {
		c.w.t.Errorf("%d more tools/list_changed came, want none", n)
	}
}

// A pipe is a file that a program holds open. The program's workspace is a layer, so the file
// can be seen only among the program's open files.
type pipe struct {
	name    string // relative to the workspace
	t       *testing.T
	holding chan struct{} // closed when a program holds it
	gone    chan struct{} // closed when nobody holds it any more
}

// newPipe names a file and watches for processes that hold it.
func (w *world) newPipe() *pipe {
	w.t.Helper()
	p := &pipe{name: "hold-" + filepath.Base(filepath.Dir(w.workspace)) + rand.Text() + ".pipe", t: w.t, holding: make(chan struct{}), gone: make(chan struct{})}
	go func() { // ends once nobody holds it, or with the test program
		for was := false; ; time.Sleep(20 * time.Millisecond) {
			is := p.held()
			switch {
			case is && !was:
				close(p.holding)
			case was && !is:
				close(p.gone)
				return
			}
			was = is
		}
	}()
	return p
}

// held reports whether a process has the file open.
func (p *pipe) held() bool {
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	return slices.ContainsFunc(files, func(file string) bool {
		target, err := os.Readlink(file)
		return err == nil && strings.Contains(target, p.name)
	})
}

func (p *pipe) wait(what chan struct{}, want string) {
	p.t.Helper()
	select {
	case <-what:
	case <-time.After(patience):
		p.t.Fatalf("after %s: want %s", patience, want)
	}
}
