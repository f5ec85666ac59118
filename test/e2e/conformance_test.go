package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gopkg.in/yaml.v3"
)

// urlVar names a server that is there already, with its token in tokenVar: then
// it is judged, and none is started.
const (
	urlVar   = "PACKS_MCP_CONFORMANCE_URL"
	tokenVar = "PACKS_MCP_CONFORMANCE_TOKEN"
)

// A conformanceList is test/e2e/judges/conformance.yaml.
type conformanceList struct {
	// What the suite asks for by a name or URI of its own, and what the server
	// has in its place.
	Aliases map[string]*conformanceAlias             `yaml:"aliases"`
	Reasons map[string]string                        `yaml:"reasons"` // :: word → why a scenario does not apply
	Sets    map[string]map[string]*conformanceTarget `yaml:"sets"`    // :: set → scenario → what is expected
}

// A conformanceAlias is a tool or prompt with its arguments, a prompt and the
// argument to complete, or a resource.
type conformanceAlias struct {
	Name      string           `yaml:"name"`
	Arguments map[string]any   `yaml:"arguments"`
	Each      []map[string]any `yaml:"each"` // instead of Arguments: those of the first call, of the second …
	Argument  string           `yaml:"argument"`
	URI       string           `yaml:"uri"`

	used atomic.Int64 // how often a tool or prompt was asked for
}

// next returns the arguments of the next call.
func (a *conformanceAlias) next() map[string]any {
	n := int(a.used.Add(1))
	if len(a.Each) == 0 {
		return a.Arguments
	}
	return a.Each[min(n, len(a.Each))-1]
}

// A conformanceTarget is what is expected of one scenario. Exactly one of
// Checks, Not and Waits is there.
type conformanceTarget struct {
	Checks []string          `yaml:"checks"` // ids that have to be there, with success wherever they are
	Except map[string]string `yaml:"except"` // :: id of a check that is not judged → a word of reasons
	Not    string            `yaml:"not"`    // the scenario does not apply: a word of reasons
	Waits  string            `yaml:"waits"`  // it will apply: what is missing
}

// A conformanceCheck is one of a scenario's checks.json.
type conformanceCheck struct {
	ID           string `json:"id"`
	Status       string `json:"status"`
	ErrorMessage string `json:"errorMessage"`
}

func readConformanceList(t *testing.T) *conformanceList {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("judges", "conformance.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	list := new(conformanceList)
	d := yaml.NewDecoder(bytes.NewReader(raw))
	d.KnownFields(true)
	if err := d.Decode(list); err != nil {
		t.Fatal(err)
	}
	return list
}

// Each scenario of the list says one thing, and gives a reason that is there.
func TestConformanceList(t *testing.T) {
	list := readConformanceList(t)
	used := make(map[string]bool)
	for set, scenarios := range list.Sets {
		for name, target := range scenarios {
			said := 0
			for _, is := range []bool{len(target.Checks) > 0, target.Not != "", target.Waits != ""} {
				if is {
					said++
				}
			}
			if said != 1 {
				t.Errorf("%s %s says %d things, want one of checks, not and waits", set, name, said)
			}
			for _, word := range append(slices.Collect(maps.Values(target.Except)), target.Not) {
				if word != "" && list.Reasons[word] == "" {
					t.Errorf("%s %s gives the reason %q, which is not there", set, name, word)
				}
				used[word] = true
			}
		}
	}
	for word := range list.Reasons {
		if !used[word] {
			t.Errorf("nothing has the reason %q", word)
		}
	}
}

// The official suite judges the server over HTTP. What counts are the checks
// that the list names: a scenario can pass that has checked nothing.
func TestConformance(t *testing.T) {
	judges := os.Getenv(judgesVar)
	if judges == "" {
		t.Skipf("conformance: %s is not set; make conformance installs the suite and runs this", judgesVar)
	}
	list := readConformanceList(t)
	address, token := os.Getenv(urlVar), os.Getenv(tokenVar)
	w := newWorld(t)
	if address == "" {
		address, token = w.serveHTTP()
	}
	front := conformanceFront(t, list, address, token)
	suite := filepath.Join(judges, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	for _, set := range slices.Sorted(maps.Keys(list.Sets)) {
		t.Run(set, func(t *testing.T) {
			found := make(map[string][]conformanceCheck)
			if revision, ok := strings.CutPrefix(set, "requirements "); ok {
				found = w.suite(t, suite, front, "--requirements", revision)
			} else {
				for name := range list.Sets[set] {
					maps.Copy(found, w.suite(t, suite, front, "--scenario", name))
				}
			}
			list.judge(t, set, found)
		})
	}
}

// serveHTTP starts the program for clients over HTTP, with rules that let it be
// read by a client that cannot answer, and returns its address and token.
func (w *world) serveHTTP() (address, token string) {
	w.t.Helper()
	if out, err := w.command("serve", "--help").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--http")) {
		absent(w.t, "conformance", "this program does not serve HTTP")
	}
	// What the suite wants of resources and no pack of ours has yet.
	w.write("packs/field-notes/resources/123.txt", "This is number 123.\n")
	w.write("packs/field-notes/resources/dot.png", "\x89PNG\r\n\x1a\n\x00\xff")
	const rules = readRules + "  - allow: {kind: enable, pack: field-notes}\n"
	token = "for-the-conformance-suite-only"
	ctx, cancel := context.WithCancel(w.t.Context())
	cmd := exec.CommandContext(ctx, w.program, "serve", "--packs", w.packs, "--http", "127.0.0.1:0", "--log-format", "text")
	cmd.Dir = w.file(".")
	cmd.Env = append(w.env, "PACKS_MCP_TOKEN="+token, "PACKS_MCP_CONFIG="+w.write("rules.yaml", rules))
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	log := &lockedBuffer{}
	said := make(chan string, 1)
	r, out := io.Pipe()
	cmd.Stderr = out
	go func() {
		var begun bool
		buf := make([]byte, 4<<10)
		for {
			n, err := r.Read(buf)
			_, _ = log.Write(buf[:n])
			if m := listening.FindStringSubmatch(log.String()); m != nil && !begun {
				begun = true
				said <- m[1]
			}
			if err != nil {
				return
			}
		}
	}()
	if err := cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		cancel()
		err := cmd.Wait()
		out.Close()
		if err != nil && cmd.ProcessState.ExitCode() != 0 || strings.Contains(log.String(), "level=ERROR") {
			w.t.Errorf("the server ended with %v:\n%s", err, tail(log.String()))
		}
	})
	select {
	case address = <-said:
	case <-time.After(patience):
		w.t.Fatalf("the server does not say where it listens:\n%s", log)
	}
	return address, token
}

// listening is how the program says where it serves.
var listening = regexp.MustCompile(`url="?(https?://\S+/mcp)\b`)

// conformanceFront stands before the server: the suite cannot give a token, and
// asks for tools by names that no pack can have. Everything else goes through
// as it is.
func conformanceFront(t *testing.T, list *conformanceList, address, token string) string {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
			r.Out.Host = r.In.Host // which the server has to check
			r.Out.Header.Set("Authorization", "Bearer "+token)
			list.rename(r.Out)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, context.Canceled) {
				t.Logf("a request did not reach the server: %v", err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	return front.URL + to.Path
}

// rename puts what the server has in the place of what the suite asks for.
func (list *conformanceList) rename(r *http.Request) {
	if r.Body == nil || r.Method != http.MethodPost {
		return
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	defer func() {
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
		r.Header.Set("Content-Length", strconv.Itoa(len(raw)))
	}()
	var message map[string]any
	if json.Unmarshal(raw, &message) != nil {
		return
	}
	params, _ := message["params"].(map[string]any)
	ref, _ := params["ref"].(map[string]any)
	argument, _ := params["argument"].(map[string]any)
	name, _ := params["name"].(string)
	uri, _ := params["uri"].(string)
	prompt, _ := ref["name"].(string)
	var now string
	switch tool, resource, completion := list.Aliases[name], list.Aliases[uri], list.Aliases["ref "+prompt]; {
	case tool != nil:
		now, params["name"], params["arguments"] = tool.Name, tool.Name, tool.next()
	case resource != nil:
		now, params["uri"] = resource.URI, resource.URI
	case completion != nil && argument != nil:
		ref["name"], argument["name"] = completion.Name, completion.Argument
	default:
		return
	}
	if sent := r.Header.Get("Mcp-Name"); sent != "" && (sent == name || sent == uri) {
		r.Header.Set("Mcp-Name", now)
	}
	if renamed, err := json.Marshal(message); err == nil {
		raw = renamed
	}
}

// suite runs the suite and returns its checks by scenario.
func (w *world) suite(t *testing.T, file, address string, args ...string) map[string][]conformanceCheck {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, os.Getenv(nodeVar), slices.Concat([]string{file, "server", "--url", address, "--output-dir", dir}, args)...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = w.env, dir, 10*time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) { // its status says what the suite thinks, not what the list says
		t.Fatalf("%q: %v\n%s", cmd.Args, err, tail(string(out)))
	}
	files, err := filepath.Glob(filepath.Join(dir, "server-*", "checks.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%q left no checks: %v\n%s", cmd.Args, err, tail(string(out)))
	}
	found := make(map[string][]conformanceCheck)
	for _, name := range files {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var checks []conformanceCheck
		if err := json.Unmarshal(raw, &checks); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		scenario := resultDir.ReplaceAllString(filepath.Base(filepath.Dir(name)), "$1")
		found[scenario] = append(found[scenario], checks...)
	}
	return found
}

// resultDir is the name of the folder of one scenario's results.
var resultDir = regexp.MustCompile(`^server-(.*)-\d{4}-\d\d-\d\dT[0-9-]+Z$`)

// judge holds what the suite found against the list.
func (list *conformanceList) judge(t *testing.T, set string, found map[string][]conformanceCheck) {
	t.Helper()
	targets := list.Sets[set]
	for name := range found {
		if targets[name] == nil {
			t.Errorf("%s is not on the list; its checks: %v", name, found[name])
		}
	}
	var applied, not, waits int
	for _, name := range slices.Sorted(maps.Keys(targets)) {
		target, checks := targets[name], found[name]
		problems := target.problems(checks)
		switch {
		case checks == nil:
			t.Errorf("%s is on the list, and the suite did not run it", name)
		case target.Not != "":
			not++
		case target.Waits != "":
			waits++
			if len(problems) == 0 {
				t.Errorf("%s waits for %q, and passes: list its checks %v", name, target.Waits, ids(checks))
			}
		default:
			applied++
			for _, problem := range problems {
				t.Errorf("%s: %s", name, problem)
			}
		}
	}
	t.Logf("%d scenarios apply, %d do not, %d wait for something", applied, not, waits)
}

// problems are what keeps the checks of a scenario from being what is expected.
func (target *conformanceTarget) problems(checks []conformanceCheck) []string {
	var all []string
	seen := make(map[string]bool)
	for _, c := range checks {
		_, excepted := target.Except[c.ID]
		named := slices.Contains(target.Checks, c.ID)
		switch c.Status {
		case "SUCCESS":
			seen[c.ID] = true
		case "FAILURE", "WARNING":
			if !excepted {
				all = append(all, fmt.Sprintf("%s %s: %s", c.ID, c.Status, c.ErrorMessage))
			}
		default: // INFO and SKIPPED have checked nothing
			if named || target.Waits != "" && c.Status == "SKIPPED" {
				all = append(all, fmt.Sprintf("%s %s: %s", c.ID, c.Status, c.ErrorMessage))
			}
		}
	}
	for _, id := range target.Checks {
		if !seen[id] {
			all = append(all, id+" was not checked")
		}
	}
	return all
}

func ids(checks []conformanceCheck) []string {
	var all []string
	for _, c := range checks {
		if c.Status == "SUCCESS" {
			all = append(all, c.ID)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
