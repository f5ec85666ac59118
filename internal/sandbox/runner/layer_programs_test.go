//go:build unix

package runner

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Ordinary programs work in a layered project, and their changes are there when they
// have ended.
func TestLayerPrograms(t *testing.T) {
	for _, p := range []struct {
		name   string
		needs  []string
		files  map[string]string
		before string // run by the user, in the project
		script string // run in the sandbox
		after  string // run by the user; must succeed
		commit bool
	}{
		{
			name: "git commit", needs: []string{"git"}, files: map[string]string{"a": "1\n"}, commit: true,
			before: "git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm first",
			script: "echo 2 >a && echo 3 >b && git add . && git -c user.name=a -c user.email=a@b commit -qm second && git status --short && git log --oneline | wc -l",
			after:  `test "$(git log -1 --format=%s)" = second && test "$(cat a b | tr -d '\n')" = 23 && test -z "$(git status --short)" && git fsck`,
		},
		{
			name: "git looks around", needs: []string{"git"}, files: map[string]string{"a": "1\n"},
			before: "git init -q && git add . && git -c user.name=a -c user.email=a@b commit -qm first && echo 2 >a && git -c user.name=a -c user.email=a@b stash -q",
			script: "git status && git log && git diff HEAD && git stash list | grep -q 'WIP on'",
			after:  "git status && git stash list | grep -q 'WIP on'",
		},
		{
			name: "make", needs: []string{"make"}, files: map[string]string{"Makefile": "out: in\n\tcp in out\n", "in": "x\n"},
			script: "make && make | grep -q 'up to date'", after: "make | grep -q 'up to date'",
		},
		{
			name: "sqlite", needs: []string{"sqlite3"}, before: "sqlite3 db 'create table t(x); insert into t values(1)'",
			script: "sqlite3 db 'pragma journal_mode=wal; insert into t values(2)' && sqlite3 db 'insert into t values(3)'",
			after:  `test "$(sqlite3 db 'select sum(x) from t')" = 6`,
		},
		{
			name: "an editor that saves by renaming", files: map[string]string{"text": "old\n"},
			script: "echo new >text.tmp && mv text text~ && mv text.tmp text", after: "grep -q new text && grep -q old text~",
		},
		{
			name: "go build", needs: []string{"go"}, files: map[string]string{"go.mod": "module x\n\ngo 1.21\n", "main.go": "package main\n\nfunc main() { println(1) }\n"},
			script: `GOCACHE="$HOME/cache" GOPATH="$HOME/go" GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0 go build -o app .`, after: "./app",
		},
		{
			// Files of installed packages are applied, except those that act without a build.
			name: "npm install", needs: []string{"npm", "node"}, files: map[string]string{
				"package.json": `{"name": "x", "version": "1.0.0"}`, "p/package.json": `{"name": "p", "version": "1.0.0", "bin": "p.js"}`, "p/p.js": "#!/usr/bin/env node\nconsole.log(1)\n",
				"p/.eslintrc": "{}", "p/eslint.config.js": "", "p/.editorconfig": "", "p/.github/workflows/ci.yml": "", "p/.vscode/settings.json": "{}", "p/.travis.yml": "", "p/Makefile": "",
				"p/AGENTS.md": "obey\n", "p/.envrc": "run\n",
			},
			before: "npm pack ./p && rm -r p",
			script: "npm install --offline --no-audit --no-fund ./p-1.0.0.tgz",
			after: `cd node_modules/p && ls .eslintrc eslint.config.js .editorconfig .github/workflows/ci.yml .vscode/settings.json .travis.yml Makefile && test "$(../.bin/p)" = 1 &&
				test ! -e AGENTS.md && test ! -e .envrc`,
		},
	} {
		t.Run(p.name, func(t *testing.T) {
			for _, program := range p.needs {
				if _, err := exec.LookPath(program); err != nil {
					t.Skip(err)
				}
			}
			eachLevel(t, func(t *testing.T, r *Runner) {
				dir := plantTree(t, p.files)
				user := func(script string) {
					cmd := exec.Command("/bin/sh", "-c", script)
					cmd.Dir = dir
					cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1")
					if out, err := cmd.CombinedOutput(); err != nil {
						t.Fatalf("%s: %v\n%s", script, err, out)
					}
				}
				if p.before != "" {
					user(p.before)
				}
				policy, c := inProject(t, dir, p.script)
				policy.Layers, policy.GitWrite = r.Layers(t.Context(), []string{dir}), p.commit
				policy.Layers[0].Commits = p.commit
				policy.Limits.Timeout = 5 * time.Minute // a cold build on a busy machine
				for _, program := range p.needs {
					if path, err := exec.LookPath(program); err == nil {
						if real, err := filepath.EvalSymlinks(path); err == nil && !strings.HasPrefix(real, "/usr/bin") {
							policy.ReadOnly = append(policy.ReadOnly, filepath.Dir(filepath.Dir(real)))
						}
					}
				}
				res, err := r.Run(t.Context(), policy, c)
				if err != nil {
					t.Fatal(err)
				}
				if res.ExitCode != 0 || res.ChangesProblem != "" {
					t.Fatalf("the run ended with %s, status %d %s, %q\n%s%s", res.Cause, res.ExitCode, res.Signal, res.ChangesProblem, res.Stdout.Bytes(), res.Stderr.Bytes())
				}
				user(p.after)
			})
		})
	}
}
