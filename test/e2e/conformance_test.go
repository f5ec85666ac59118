package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

// The official suite judges the server over HTTP. Only the checks named in the list count,
// since a scenario can pass without checking anything.
func TestConformance(t *testing.T) {
	file := suiteFile(t)
	t.Parallel()
	for _, set := range slices.Sorted(maps.Keys(readConformanceList(t).Sets)) {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			list := readConformanceList(t) // it counts requests
			f := conformanceServer(t, list)
			found, said := f.w.suite(t, file, f.url, setArgs(list, set)...)
			problems := list.judge(set, found)
			for _, problem := range problems {
				t.Error(problem)
			}
			if len(problems) > 0 {
				t.Logf("the suite said:\n%s", tail(said))
			}
			t.Log(list.tally(set))
		})
	}
}

// Without a server, every scenario that applies fails.
func TestConformanceWithoutServer(t *testing.T) {
	file := suiteFile(t)
	t.Parallel()
	list := readConformanceList(t)
	for set, targets := range list.Sets {
		t.Run(set, func(t *testing.T) {
			t.Parallel()
			found, _ := newWorld(t).suite(t, file, closedURL(t), setArgs(list, set)...)
			for name, target := range targets {
				if len(target.Checks) > 0 && len(target.verdict(found[name])) == 0 {
					t.Errorf("%s passes without a server: %v", name, found[name])
				}
			}
		})
	}
}

// A single fault of a server fails the scenario about it, by the right check. Without the
// fault, all pass; see [TestConformance].
func TestConformanceFindsFailures(t *testing.T) {
	file := suiteFile(t)
	t.Parallel()
	for name, wrong := range map[string]struct {
		set, scenario, check, method string
		spoil                        func(result map[string]any)
	}{
		"a tool without a name": {"2025-11-25", "tools-list", "tools-list", "tools/list", func(result map[string]any) {
			tool, _ := anyList(result["tools"])[0].(map[string]any)
			delete(tool, "name")
		}},
		"a list that does not say how long it may be kept": {"2026-07-28", "caching", "sep-2549-prompts-list-caching-hints", "prompts/list", func(result map[string]any) {
			delete(result, "ttlMs")
		}},
		"an error that looks like success": {"2026-07-28", "tools-call-error", "tools-call-error", "tools/call", func(result map[string]any) {
			delete(result, "isError")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			list := readConformanceList(t)
			f := conformanceServer(t, list)
			f.spoil = func(method string, result map[string]any) {
				if method == wrong.method {
					wrong.spoil(result)
				}
			}
			found, said := f.w.suite(t, file, f.url, []string{"--scenario", wrong.scenario, "--spec-version", wrong.set})
			problems := list.Sets["requirements "+wrong.set][wrong.scenario].verdict(found[wrong.scenario])
			if !slices.ContainsFunc(problems, func(p string) bool { return strings.HasPrefix(p, wrong.check+" FAILURE") }) {
				t.Errorf("%s with %s has the problems %q, want one of %s; the suite said:\n%s", wrong.scenario, name, problems, wrong.check, tail(said))
			}
		})
	}
}

// suiteFile returns the suite; if it is missing, the test is skipped.
func suiteFile(t *testing.T) string {
	t.Helper()
	judges := os.Getenv(judgesVar)
	if judges == "" {
		t.Skipf("conformance: %s is not set; make conformance installs the suite and runs this", judgesVar)
	}
	return filepath.Join(judges, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
}

// setArgs returns the suite's arguments for each run of a set of the list.
func setArgs(list *conformanceList, set string) [][]string {
	if revision, ok := strings.CutPrefix(set, "requirements "); ok {
		return [][]string{{"--requirements", revision}}
	}
	var all [][]string
	for _, name := range slices.Sorted(maps.Keys(list.Sets[set])) {
		all = append(all, []string{"--scenario", name})
	}
	return all
}

// suite runs the suite once for each list of arguments, and returns its checks by scenario,
// and its output.
func (w *world) suite(t *testing.T, file, url string, runs ...[]string) (found map[string][]conformanceCheck, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	dir := t.TempDir()
	for _, args := range runs {
		cmd := exec.CommandContext(ctx, os.Getenv(nodeVar), slices.Concat([]string{file, "server", "--url", url, "--output-dir", dir}, args)...)
		cmd.Env, cmd.Dir, cmd.WaitDelay = w.env, dir, 10*time.Second
		out, err := cmd.CombinedOutput()
		if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended { // its status is the suite's verdict, not the list's
			t.Fatalf("%q: %v\n%s", cmd.Args, err, tail(string(out)))
		}
		said += string(out)
	}
	files, err := filepath.Glob(filepath.Join(dir, "server-*", "checks.json"))
	if err != nil {
		t.Fatal(err)
	}
	found = make(map[string][]conformanceCheck)
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
	return found, said
}

// resultDir matches the name of the folder with a scenario's results.
var resultDir = regexp.MustCompile(`^server-(.*)-\d{4}-\d\d-\d\dT[0-9-]+Z$`)

// conformanceServer starts the program, with rules for a client that cannot answer, and a
// front before it.
func conformanceServer(t *testing.T, list *conformanceList) *conformanceFront {
	t.Helper()
	w := newWorld(t)
	w.unpack(filepath.Join("judges", "packs.txtar"))
	w.write("packs/fixtures/resources/dot.png", "\x89PNG\r\n\x1a\n\x00\xff")
	w.env = append(w.env, "PACKS_MCP_CONFIG="+w.write("rules.yaml", readRules+`  - allow: {kind: enable}
  - allow: {kind: run, pack: fixtures, tool: "*"}
`))
	log := new(logbuf.Buffer)
	base, stop := w.serve(log, token)
	t.Cleanup(func() {
		if err := stop(); err != nil || strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("the server ended with %v:\n%s", err, tail(log.String()))
		}
	})
	f := newConformanceFront(t, w, list, base+"/mcp")
	f.enable(http.Header{"Mcp-Protocol-Version": {v20260728}})
	return f
}

// closedURL returns an address where nothing listens.
func closedURL(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String() + "/mcp"
}
