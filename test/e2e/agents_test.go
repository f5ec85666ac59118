package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An agent is an agent program as people install it: a row of the table that
// TestAgents goes through. What it cannot do stands here by name, and the steps
// check that it still cannot.
type agent struct {
	name    string // as docs/reference/clients.md has it
	npm     string // its package
	program string // where the package has the program, below node_modules: a pattern, since that depends on the machine
	prefix  string // what it puts before the names of the server's tools
	// search is its own tool that shows the model the server's tools, when it hides
	// them.
	search *search
	lists  bool   // lists the tools again when it is told that they changed
	reads  bool   // shows its model a description that is new in such a list
	deaf   bool   // does not show its model the server's instructions
	alone  string // how it answers a form when no person is there; empty: it declares no forms
	killed string // what becomes of its calls when its server was killed
	// start writes its configuration and returns the variables and the arguments
	// that have it do the task, without a person.
	start  func(s *stage) (env, args []string)
	more   []step  // what only it is driven through
	window *window // nil: it shows no forms in a terminal
}

// agents are all that are driven, in the order of docs/reference/clients.md.
func agents() []agent {
	return []agent{claudeCode(), codex(), geminiCLI(), opencode(), qwenCode(), copilotCLI()}
}

// agentsVar names the folder that scripts/agents.sh installs the agent programs
// into. Without it their tests are skipped: they take programs of 1.6 GB.
const agentsVar = "PACKS_MCP_AGENTS"

// installed returns the agent's program. A test of an agent that is not there is
// skipped, unless PACKS_MCP_REQUIRE has "agents".
func (a agent) installed(t *testing.T) string {
	t.Helper()
	dir := os.Getenv(agentsVar)
	if dir == "" {
		absent(t, "agents", agentsVar+" is not set; make agents installs the programs and runs this")
	}
	found, err := filepath.Glob(filepath.Join(dir, "node_modules", filepath.FromSlash(a.program)))
	if err != nil {
		t.Fatal(err)
	}
	// Of several builds for one machine, the one that asks most of it.
	slices.SortFunc(found, func(a, b string) int { return len(a) - len(b) })
	if len(found) == 0 {
		absent(t, "agents", a.name+": there is no "+a.program+" in "+dir)
	}
	return found[0]
}

// TestAgents drives each agent through each step, and compares what they were seen
// to do with docs/reference/clients.md.
func TestAgents(t *testing.T) {
	var seen []*facts
	t.Run("agents", func(t *testing.T) {
		for _, a := range agents() {
			f := &facts{agent: a}
			seen = append(seen, f)
			t.Run(strings.ReplaceAll(a.name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				program := a.installed(t)
				f.fact(t, factVersion, a.version(t))
				mine := steps
				if a.window == nil {
					f.fact(t, factWindow, "no")
					f.fact(t, factStays, "–")
				} else {
					mine = append(slices.Clone(steps), step{"in a window", "elicitation,terminal", nil, inWindow})
				}
				for _, step := range append(mine, a.more...) {
					t.Run(step.name, func(t *testing.T) {
						t.Parallel()
						step.run(newStage(t, a, program, step, f))
					})
				}
			})
		}
	})
	document(t, seen)
}

// version is the version of the agent's package that is installed.
func (a agent) version(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(os.Getenv(agentsVar), "node_modules", filepath.FromSlash(a.npm), "package.json"))
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal(raw, &p); err != nil || p.Version == "" {
		t.Fatalf("%s: version %q, %v", a.npm, p.Version, err)
	}
	return p.Version
}
