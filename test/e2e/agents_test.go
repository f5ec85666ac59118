package e2e_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// An agent is an agent program as people install it: a row in the table of TestAgents. Its
// limitations are listed here by name, and the steps check that they still exist.
type agent struct {
	name    string // its name in docs/reference/clients.md
	npm     string // its npm package
	program string // pattern of the program's path below node_modules, which depends on the machine
	prefix  string // what it puts before the names of the server's tools
	// search is its own tool that shows the model the server's tools, if it hides them.
	search *search
	lists  bool   // lists the tools again when told that they changed
	reads  bool   // shows its model a changed description from such a list
	deaf   bool   // does not show its model the server's instructions
	alone  string // its answer to a form if no person is there; empty: it declares no support for forms
	killed string // fate of its calls after its server was killed
	// start writes its configuration, and returns the variables and arguments that make it do
	// the task without a person.
	start  func(s *stage) (env, args []string)
	more   []step  // steps for this agent only
	window *window // nil: it shows no forms in a terminal
}

// agents returns all agents, in the order of docs/reference/clients.md.
func agents() []agent {
	return []agent{claudeCode(), codex(), geminiCLI(), opencode(), qwenCode(), copilotCLI()}
}

// agentsVar names the folder in which scripts/agents.sh installs the agents. Without it their
// tests are skipped, since the programs take 1.6 GB.
const agentsVar = "PACKS_MCP_AGENTS"

// installed returns the agent's program. If it is missing, the test is skipped, unless
// PACKS_MCP_REQUIRE has "agents".
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
	// Of several builds for one machine, take the one with the highest requirements.
	slices.SortFunc(found, func(a, b string) int { return len(a) - len(b) })
	if len(found) == 0 {
		absent(t, "agents", a.name+": there is no "+a.program+" in "+dir)
	}
	return found[0]
}

// TestAgents drives each agent through each step, and compares the observed facts with
// docs/reference/clients.md.
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

// version returns the installed version of the agent's package.
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
