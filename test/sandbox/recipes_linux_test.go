package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/packs-mcp/packs-mcp/internal/config"
)

// A recipe of docs/how-to/sandbox-recipes.md, and a pack with a tool that needs it.
type recipe struct {
	heading  string // its heading in the page
	programs []string
	pack     string // its id
	files    map[string]string
	home     map[string]string // the user's files
	env      []string          // what the user's client passes to the server
	prepare  func(t *testing.T, w *world)
	tool     string
	works    func(t *testing.T, w *world, out map[string]any) // with the grant
	fails    string                                           // part of the run's error without the grant
}

const recipesPage = "../../docs/how-to/sandbox-recipes.md"

func recipes() []recipe {
	return []recipe{
		{
			heading: "git commit", programs: []string{"git"}, pack: "acme/git", tool: "commit",
			files: map[string]string{
				"SKILL.md":   "---\nname: git\ndescription: Commit what is there.\n---\nCall `commit`.\n",
				"tools.json": `{"tools": [{"name": "commit", "description": "Commit.", "inputSchema": {"type": "object"}, "command": {"program": "git", "args": ["commit", "-a", "-m", "from a tool"], "cwd": "project"}}]}`,
			},
			home: map[string]string{
				".gitconfig":      "[user]\n\tname = Somebody Else\n\temail = somebody@example.com\n[alias]\n\tci = commit\n",
				".ssh/id_ed25519": "secret\n",
			},
			prepare: func(t *testing.T, w *world) {
				for _, args := range [][]string{
					{"init", "-q", "-b", "main"}, {"add", "."},
					{"-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "first"},
				} {
					w.git(t, args...)
				}
				write(t, w.project, map[string]string{"file.txt": "changed\n"})
			},
			works: func(t *testing.T, w *world, out map[string]any) {
				if got, want := w.git(t, "log", "-1", "--format=%an <%ae> %s"), "Somebody Else <somebody@example.com> from a tool\n"; got != want {
					t.Errorf("the last commit is %q, want %q", got, want)
				}
				if got := w.git(t, "status", "--porcelain"); got != "" {
					t.Errorf("git status = %q, want nothing", got)
				}
			},
			fails: "user.email",
		},
		ghRecipe("gh", "#!/bin/sh\nset -eu\ntest \"$GH_TOKEN\" = not-a-real-token\ncat \"$HOME/.config/gh/config.yml\"\nif ls \"$HOME/.ssh\" 2>/dev/null; then exit 9; fi\n"),
		ghRecipe("gh", ""),
		{
			heading: "npm install", programs: []string{"npm", "node"}, pack: "acme/web", tool: "install",
			files: map[string]string{
				"SKILL.md":   "---\nname: web\ndescription: Install packages.\n---\nCall `install`.\n",
				"tools.json": `{"tools": [{"name": "install", "description": "Install.", "inputSchema": {"type": "object"}, "command": {"program": "npm", "args": ["ci", "--offline", "--no-audit", "--no-fund"], "cwd": "project"}, "policy": {"timeout_secs": 120}}]}`,
			},
			home: map[string]string{
				".npmrc":                        "//registry.example.com/:_authToken=secret\n",
				"npm-packages/lib/package.json": `{"name": "lib", "version": "1.0.0", "scripts": {"install": "node -e 'require(\"fs\").writeFileSync(\"built\", process.env.HOME)'"}}`,
				"npm-packages/lib/index.js":     "module.exports = 42;\n",
			},
			prepare: func(t *testing.T, w *world) {
				packages := filepath.Join(w.home, "npm-packages")
				w.run(t, packages, "npm", "pack", "--silent", "./lib")
				write(t, w.project, map[string]string{"package.json": `{"name": "app", "version": "1.0.0", "private": true}`})
				w.run(t, w.project, "npm", "install", "--silent", "--offline", "--no-audit", "--no-fund", filepath.Join(packages, "lib-1.0.0.tgz"))
				if err := errors.Join(os.RemoveAll(filepath.Join(w.project, "node_modules")), os.RemoveAll(filepath.Join(w.home, ".npm"))); err != nil {
					t.Fatal(err)
				}
				// npm writes a relative path, which is wrong in a copy of the project.
				for _, name := range []string{"package.json", "package-lock.json"} {
					text, err := os.ReadFile(filepath.Join(w.project, name))
					if err != nil {
						t.Fatal(err)
					}
					rel, err := filepath.Rel(w.project, packages)
					if err != nil || !strings.Contains(string(text), "file:"+rel) {
						t.Fatalf("%s does not name %q (%v):\n%s", name, rel, err, text)
					}
					write(t, w.project, map[string]string{name: strings.ReplaceAll(string(text), "file:"+rel, "file:"+packages)})
				}
			},
			works: func(t *testing.T, w *world, out map[string]any) {
				if got := w.run(t, w.project, "node", "-p", "require('lib')"); got != "42\n" {
					t.Errorf("the installed package gives %q, want 42", got)
				}
				if _, err := os.Stat(filepath.Join(w.workspace, ".npm")); err != nil {
					t.Errorf("npm's cache is not in the workspace: %v", err)
				}
			},
			fails: "lib-1.0.0.tgz",
		},
	}
}

// ghRecipe uses a stand-in for gh, or the real one without its network.
func ghRecipe(heading, standIn string) recipe {
	r := recipe{
		heading: heading, pack: "acme/github", tool: "settings",
		files: map[string]string{
			"SKILL.md":    "---\nname: github\ndescription: Look at GitHub.\n---\nCall `settings`.\n",
			"tools.json":  `{"tools": [{"name": "settings", "description": "Show settings.", "inputSchema": {"type": "object"}, "command": {"program": "./settings.sh"}}]}`,
			"settings.sh": "#!/bin/sh\nset -eu\ntest \"$(gh auth token)\" = not-a-real-token\ngh config get editor\n",
		},
		home: map[string]string{
			".config/gh/config.yml": "editor: from-the-settings\n", ".ssh/id_ed25519": "secret\n",
		},
		env: []string{"GH_TOKEN=not-a-real-token"},
		works: func(t *testing.T, w *world, out map[string]any) {
			if got, _ := out["stdout"].(string); !strings.Contains(got, "from-the-settings") {
				t.Errorf("gh printed %q, want its settings", got)
			}
		},
	}
	if standIn == "" {
		r.programs = []string{"gh"}
		return r
	}
	r.files["tools.json"] = strings.Replace(r.files["tools.json"], "./settings.sh", "gh", 1)
	r.prepare = func(t *testing.T, w *world) {
		write(t, w.root, map[string]string{"programs/gh": standIn})
		w.path = filepath.Join(w.root, "programs") + string(filepath.ListSeparator) + w.path
	}
	return r
}

// Each recipe makes its program work, and without the recipe it fails.
func TestRecipes(t *testing.T) {
	page, err := os.ReadFile(recipesPage)
	if err != nil {
		t.Fatal(err)
	}
	blocks := yamlBlocks(string(page))
	used := map[string]bool{}
	for _, r := range recipes() {
		used[r.heading] = true
		if blocks[r.heading] == "" {
			t.Fatalf("%s has no YAML below %q", recipesPage, r.heading)
		}
	}
	for heading := range blocks {
		if !used[heading] {
			t.Errorf("%s has a recipe for %q that is not tested", recipesPage, heading)
		}
	}
	for _, w := range []struct{ name, level, hide, needs string }{
		{"full", "full", "", "userns"},
		{"partial", "partial", "userns", "landlock"},
		{"partial-without-landlock", "partial", "landlock", "userns"},
	} {
		t.Run(w.name, func(t *testing.T) {
			variant{hide: w.hide}.mustConfine(t)
			if level := levelWithout(t, w.hide); level != w.level {
				skip(t, w.needs, "this machine has level %s and not %s", level, w.name)
			}
			for _, r := range recipes() {
				name := strings.ReplaceAll(r.heading, " ", "-")
				if len(r.programs) == 0 {
					name += "-stand-in"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					need(t, r.programs...)
					r.try(t, w.hide, w.level, blocks[r.heading])
				})
			}
		})
	}
}

func (r *recipe) try(t *testing.T, hide, level, block string) {
	for _, granted := range []bool{false, true} {
		w := newWorld(t, hide)
		write(t, filepath.Join(w.packs, filepath.FromSlash(r.pack)), r.files)
		write(t, w.home, r.home)
		write(t, w.project, map[string]string{"file.txt": "text\n"})
		w.env = r.env
		if r.prepare != nil {
			r.prepare(t, w)
		}
		if granted {
			write(t, w.state, map[string]string{"config.yaml": block})
			if cfg, err := config.Load(config.Options{Environ: w.environ(), GOOS: "linux"}); err != nil || len(cfg.Sandbox.Grants) != 1 {
				t.Fatalf("Load() of the recipe = %+v, %v, want one grant", cfg, err)
			}
		}
		out, isError, asked := w.call(t, r.pack, r.tool)
		if got := out["sandbox"]; got != level {
			t.Fatalf("the tool gave %v, want a run at level %s; the question was:\n%s", out, level, asked)
		}
		if !granted {
			if text := fmt.Sprint(out["stdout"], out["stderr"]); !isError || !strings.Contains(text, r.fails) {
				t.Errorf("without the recipe, the tool gave %v, want an error with %q", out, r.fails)
			}
			continue
		}
		if isError {
			t.Fatalf("with the recipe, the tool gave %v, want success; the question was:\n%s", out, asked)
		}
		r.works(t, w, out)
	}
}

var (
	headings = regexp.MustCompile(`(?m)^## (.+)$`)
	fences   = regexp.MustCompile("(?s)```yaml\n(.*?)```")
)

// yamlBlocks returns the YAML of a page by the heading above it. Each heading has at most one
// block.
func yamlBlocks(page string) map[string]string {
	blocks := map[string]string{}
	at := headings.FindAllStringSubmatchIndex(page, -1)
	for i, h := range at {
		end := len(page)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if m := fences.FindStringSubmatch(page[h[1]:end]); m != nil {
			blocks[page[h[2]:h[3]]] = m[1]
		}
	}
	return blocks
}

// A world is one user's machine.
type world struct {
	root, home, state, packs, project, workspace string

	hide string
	path string
	env  []string
}

func newWorld(t *testing.T, hide string) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{root: root, hide: hide, path: os.Getenv("PATH")}
	for dir, name := range map[*string]string{
		&w.home: "home", &w.state: "state", &w.packs: "packs", &w.project: "project", &w.workspace: "workspace",
	} {
		*dir = filepath.Join(root, name)
		if err := os.Mkdir(*dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// environ returns the user's environment.
func (w *world) environ() []string {
	return append([]string{
		"HOME=" + w.home, "PATH=" + w.path, "PACKS_MCP_HOME=" + w.state, "GORACE=atexit_sleep_ms=0",
		"GIT_CONFIG_NOSYSTEM=1", "npm_config_update_notifier=false",
	}, w.env...)
}

// run runs a program as the user does, and returns its output.
func (w *world) run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, w.environ()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, &stderr)
	}
	return string(out)
}

func (w *world) git(t *testing.T, args ...string) string {
	t.Helper()
	return w.run(t, w.project, "git", args...)
}

// call starts the real program, calls one tool of one pack, and allows it. It returns the
// result and the question.
func (w *world) call(t *testing.T, pack, tool string) (out map[string]any, isError bool, asked string) {
	t.Helper()
	file, err := theProgram()
	if err != nil {
		t.Fatal(err)
	}
	cmd := without(t, w.hide, file, "serve", "--packs", w.packs, "--project", w.project, "--workspace", w.workspace)
	cmd.Env = append(w.environ(), cmd.Env...)
	cmd.Dir = w.project
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "recipes", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			asked = req.Params.Message
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "once"}}, nil
		},
	})
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatalf("Connect() = %v; the server logged:\n%s", err, &stderr)
	}
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "capability_packs_enable_tools", Arguments: map[string]any{
		"pack_id": pack, "tools": []string{tool},
	}})
	if err == nil && !res.IsError {
		res, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "capability_packs_call_tool", Arguments: map[string]any{
			"pack_id": pack, "tool": tool, "arguments": map[string]any{},
		}})
	}
	if closed := session.Close(); closed != nil {
		t.Errorf("Close() = %v, want the server to end with status 0; it logged:\n%s", closed, &stderr)
	}
	if err != nil {
		t.Fatalf("CallTool(%q, %q) = %v; the server logged:\n%s", pack, tool, err, &stderr)
	}
	out, _ = res.StructuredContent.(map[string]any)
	if t.Failed() || out["sandbox"] == nil {
		t.Logf("the server logged:\n%s", &stderr)
	}
	return out, res.IsError, asked
}

// theProgram returns the program to test, built once.
var theProgram = sync.OnceValues(func() (string, error) {
	// The test cache tracks the files that a test reads, but not what "go build" reads: without
	// this, results for an older program would be reused.
	for _, dir := range []string{"cmd", "internal", "schemas", "examples", "go.mod", "go.sum"} {
		err := filepath.WalkDir(filepath.Join("..", "..", dir), func(_ string, _ fs.DirEntry, err error) error { return err })
		if err != nil {
			return "", err
		}
	}
	file := filepath.Join(binDir, "packs-mcp")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", file, "github.com/packs-mcp/packs-mcp/cmd/packs-mcp")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the program: %w\n%s", err, out)
	}
	return file, nil
})
