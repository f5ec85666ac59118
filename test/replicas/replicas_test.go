//go:build unix

package replicas

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
	"github.com/packs-mcp/packs-mcp/test/served"
)

// program is the server as it is shipped.
var program string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "packs-mcp-replicas-")
	if err == nil {
		program, err = served.Build(dir, filepath.Join("..", ".."))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	storetest.End()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// A tool of the server, and the arguments for the call with a given number.
type tool struct {
	name string
	args func(number int) map[string]any
	// cannotAsk says that the client shows no questions, so the call waits for an answer
	// from elsewhere.
	cannotAsk bool
}

var (
	// runs starts a program that leaves a file with the number.
	runs = tool{name: "capability_packs_exec_best_effort", args: func(n int) map[string]any {
		return map[string]any{"pack_id": "notes", "command": "./go.sh", "args": []string{strconv.Itoa(n)}}
	}}
	// opens only needs approval.
	opens = tool{name: "capability_packs_open_docs", args: func(int) map[string]any { return map[string]any{"pack_id": "notes"} }}
)

// A world is a team's servers, and the folder where their runs leave files.
type world struct {
	t      *testing.T
	dir    string
	config string
	data   string // shared by all servers; contains the workspaces of all chats
	tokens []string

	mu  sync.Mutex
	all []*replica
}

// A replica is one server, which may be killed and started again.
type replica struct {
	url   string
	cmd   *exec.Cmd
	ended chan struct{}
	said  *bytes.Buffer // read only after ended
}

// storeKey is the key that the servers share.
var storeKey = strings.Repeat("5e", 32)

// script leaves a file named after its call and its run, to count what really ran. The
// first run of a call "endless" does not end.
const script = `#!/bin/sh
for number; do :; done
for file in "$PACKS_WORKSPACE/ran.$number."*; do [ -e "$file" ] && ran=1; done
: >"$PACKS_WORKSPACE/ran.$number.$PACKS_RUN_ID"
[ "$1" != endless ] || [ "$ran" ] || exec sleep 10000
echo "ran as $PACKS_RUN_ID"
`

// newWorld starts n servers with the store at url, for this many people, who are asked over
// a channel.
func newWorld(t *testing.T, url string, n, people int, channel string) *world {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: dir, config: filepath.Join(dir, "config.yaml"), data: filepath.Join(dir, "data")}
	write := func(file, text string, mode os.FileMode) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(dir, "packs", "notes", "SKILL.md"), "---\nname: notes\ndescription: Notes.\n---\nLeaves no file.\n", 0o644)
	write(filepath.Join(dir, "packs", "notes", "go.sh"), script, 0o755)
	var tokens strings.Builder
	for i := range people {
		token := fmt.Sprintf("token-%032x", i+1)
		w.tokens = append(w.tokens, token)
		fmt.Fprintf(&tokens, "    - {name: person%d, token: %s}\n", i, token)
	}
	write(filepath.Join(dir, "key"), storeKey+"\n", 0o600)
	write(w.config, fmt.Sprintf("packs: [{path: %q, attach: all}]\nstore: {url: %q, key_file: key}\napproval: {channels: [%s]}\nhttp:\n  tokens:\n%s", filepath.Join(dir, "packs"), url, channel, tokens.String()), 0o600)
	for range n {
		w.all = append(w.all, w.start())
	}
	t.Cleanup(func() {
		for _, r := range w.replicas() {
			_ = r.cmd.Process.Kill()
			<-r.ended
		}
	})
	return w
}

// environment returns the variables for a server, or for a command that reads its log.
func (w *world) environment() []string {
	home, err := os.MkdirTemp(w.dir, "home-")
	if err != nil {
		w.t.Fatal(err)
	}
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home, "XDG_DATA_HOME=" + w.data,
		"XDG_STATE_HOME=" + filepath.Join(home, "state"), "XDG_CACHE_HOME=" + filepath.Join(home, "cache"),
	}
}

// start starts a server, with variables in addition to those of all, and waits until it
// serves.
func (w *world) start(variables ...string) *replica {
	r := &replica{cmd: exec.Command(program, "serve", "--config", w.config, "--http", "127.0.0.1:0"), ended: make(chan struct{}), said: new(bytes.Buffer)}
	r.cmd.Dir, r.cmd.Env = w.dir, append(w.environment(), variables...)
	stderr, err := r.cmd.StderrPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	serving := make(chan string, 1)
	go func() {
		defer close(r.ended)
		address := regexp.MustCompile(`url=(https?://\S+/mcp)`)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			fmt.Fprintln(r.said, lines.Text())
			if m := address.FindStringSubmatch(lines.Text()); m != nil {
				serving <- m[1]
			}
		}
		_ = r.cmd.Wait()
	}()
	select {
	case r.url = <-serving:
	case <-r.ended:
		w.t.Fatalf("a server ended: %s", r.said)
	case <-time.After(served.Patience):
		_ = r.cmd.Process.Kill()
		w.t.Fatal("a server does not start")
	}
	return r
}

func (w *world) replicas() []*replica {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]*replica(nil), w.all...)
}

// files returns which runs left a file, by the number of their call.
func (w *world) files() map[int][]string {
	w.t.Helper()
	all := make(map[int][]string)
	err := filepath.WalkDir(w.data, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if parts := strings.Split(d.Name(), "."); len(parts) == 3 && parts[0] == "ran" {
			n, err := strconv.Atoi(parts[1])
			all[n] = append(all[n], parts[2])
			return err
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // servers make and remove folders meanwhile
		w.t.Fatal(err)
	}
	return all
}

// stop ends all servers, and returns the processor time that they took, with their start.
func (w *world) stop() (processors time.Duration) {
	for _, r := range w.replicas() {
		_ = r.cmd.Process.Signal(os.Interrupt)
	}
	for _, r := range w.replicas() {
		<-r.ended
		processors += r.cmd.ProcessState.UserTime() + r.cmd.ProcessState.SystemTime()
	}
	return processors
}

// kill kills a server and starts another in its place.
func (w *world) kill(i int) {
	r := w.replicas()[i]
	_ = r.cmd.Process.Kill()
	<-r.ended
	next := w.start()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[i] = next
}

// client is shared by all people, since a load balancer has few connections, too.
var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: time.Minute}

// errCut means that a server ended before it answered, so the outcome is unknown.
var errCut = errors.New("the server ended before it answered")

// errBusy is the server's answer that it is overloaded; nothing was done.
var errBusy = errors.New("the server has too much to do")

// A reply is the result of a call.
type reply struct {
	text  string
	state string // the state for an answer; empty: the server does not ask
	ran   string // id of the run, or of the opened document
}

var (
	statePattern = regexp.MustCompile(`"requestState":"([^"]+)"`)
	ranPattern   = regexp.MustCompile(`ran as (run-[^\\" ]+)|Leaves no (file)`)
)

// call makes the call with this number as one person at one server. With a state, it answers
// the question.
func (w *world) call(ctx context.Context, tool tool, person, number int, at *replica, state string) (reply, error) {
	can := map[string]any{"elicitation": map[string]any{}}
	if tool.cannotAsk {
		can = map[string]any{}
	}
	params := map[string]any{
		"name": tool.name, "arguments": tool.args(number),
		"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": can,
			"io.modelcontextprotocol/clientInfo": map[string]any{"name": "replicas", "version": "1"},
		},
	}
	if state != "" {
		params["requestState"] = state
		params["inputResponses"] = map[string]any{"approval": map[string]any{"action": "accept", "content": map[string]any{"decision": "once"}}}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
	if err != nil {
		return reply{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, at.url, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	for k, v := range map[string]string{
		"Authorization": "Bearer " + w.tokens[person], "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool.name,
	} {
		r.Header.Set(k, v)
	}
	resp, err := client.Do(r)
	if err != nil {
		return reply{}, errCut
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return reply{}, errCut
	case resp.StatusCode == http.StatusServiceUnavailable, resp.StatusCode == http.StatusTooManyRequests:
		return reply{}, errBusy
	}
	got := reply{text: string(all)}
	if m := statePattern.FindSubmatch(all); m != nil {
		got.state = string(m[1])
	}
	if m := ranPattern.FindSubmatch(all); m != nil {
		got.ran = string(m[1]) + string(m[2])
	}
	if got.state == "" && got.ran == "" && len(bytes.TrimSpace(all)) == 0 {
		return reply{}, errCut // the stream ended without an answer
	}
	return got, nil
}
