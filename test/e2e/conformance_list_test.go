package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/yaml.v3"
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

// A verdict is made of the checks that are named, and not of the suite's own.
func TestConformanceProblems(t *testing.T) {
	listed := &conformanceTarget{Checks: []string{"a", "b"}, Except: map[string]string{"x": "why"}}
	waits := &conformanceTarget{Waits: "something"}
	for _, tc := range []struct {
		name   string
		target *conformanceTarget
		checks string // as "id STATUS", separated by commas
		want   []string
	}{
		{"all there", listed, "a SUCCESS,b SUCCESS", nil},
		{"more than that", listed, "a SUCCESS,b SUCCESS,c SUCCESS,d INFO,e SKIPPED", nil},
		{"excepted", listed, "a SUCCESS,b SUCCESS,x FAILURE", nil},
		{"nothing was checked", listed, "wire SUCCESS", []string{"a was not checked", "b was not checked"}},
		{"one is missing", listed, "a SUCCESS", []string{"b was not checked"}},
		{"one was skipped", listed, "a SUCCESS,b SKIPPED", []string{"b SKIPPED: ", "b was not checked"}},
		{"one failed one of its times", listed, "a SUCCESS,b SUCCESS,a FAILURE", []string{"a FAILURE: "}},
		{"another one failed", listed, "a SUCCESS,b SUCCESS,c WARNING", []string{"c WARNING: "}},
		{"waits", waits, "a FAILURE,wire SUCCESS", []string{"a FAILURE: "}},
		{"waits, and was skipped", waits, "a SKIPPED,wire SUCCESS", []string{"a SKIPPED: "}},
		{"need not wait any more", waits, "a SUCCESS,wire SUCCESS", nil},
	} {
		var checks []conformanceCheck
		for check := range strings.SplitSeq(tc.checks, ",") {
			id, status, _ := strings.Cut(check, " ")
			checks = append(checks, conformanceCheck{ID: id, Status: status})
		}
		if diff := cmp.Diff(tc.want, tc.target.problems(checks)); diff != "" {
			t.Errorf("%s: problems(%s) (-want +got):\n%s", tc.name, tc.checks, diff)
		}
	}
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
