package protect

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestReason(t *testing.T) {
	n, err := New([]string{"*.secret", "deploy/**", "x/y.txt"}, []string{"CODEOWNERS"})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{
		"CLAUDE.md", "a/b/claude.md", "AGENTS.md", "agents.MD.", "GEMINI.md", ".claude/settings.json", "x/.cursor/rules/a", ".codex", ".mcp.json",
		".vscode/tasks.json", ".idea/x", ".helix/languages.toml", ".zed/tasks.json", ".envrc", "d/.envrc", ".hg/hgrc", ".husky/pre-commit",
		".pre-commit-config.yaml", ".npmrc", ".yarnrc.yml", ".yarnrc", "pip.conf", ".gitmodules", "sub/.gitattributes", ".packs/x/SKILL.md",
		".copilot/mcp.json", ".github/workflows/ci.yml", "gradle/wrapper/gradle-wrapper.jar", "sub/gradle/wrapper", "GITMOD~1", "gi7eba~1",
		".git", ".GIT", "a/.git/config", ".git.", ".git ", ".git. . ", "git~1", "GIT~1/config", ".g\u200cit", ".\u200dgit", ".git::$INDEX_ALLOCATION/x",
		".git:x", "．git", ".ｇｉｔ", ".GiT", `.git\config`, `a\.git\config`, "my.secret", "a/deploy/b", "deploy", "x/y.txt", "a/x/y.txt", "ＡＧＥＮＴＳ.md", "AGENTS\u200c.md",
	} {
		if n.Reason(p) == "" {
			t.Errorf("Reason(%q) is empty", p)
		}
	}
	for _, p := range []string{
		"README.md", "src/main.go", "Makefile", "package.json", ".gitignore", ".github/ISSUE_TEMPLATE.md", "git", "a.git/x", "foo.git", "y.txt", "CODEOWNERS",
		"claude", "claude.md.txt", "docs/agents.html", "wrapper/x", "github", ".gitkeep", ".editorconfig", "vscode/x", "日本", "\xff",
	} {
		if why := n.Reason(p); why != "" {
			t.Errorf("Reason(%q) = %q, want none", p, why)
		}
	}
}

// Files that tools obey merely because they exist are protected at any depth and in
// any letter case. Files that act only when a person builds, tests or starts the
// project are not.
func TestReasonOfTools(t *testing.T) {
	n, err := New(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for tool, names := range map[string][]string{
		"agents": {
			".mcp.json", ".claude/settings.local.json", ".claude-plugin/plugin.json", ".cursor/mcp.json", ".codex/config.toml", ".gemini/settings.json", ".amp/settings.json",
			".aiignore", ".aiexclude", ".geminiignore", ".codeiumignore", ".clineignore", ".rooignore", ".cursorindexingignore",
			".github/skills/x/SKILL.md", ".github/copilot/settings.json", ".github/copilot-instructions.md",
		},
		"editors": {
			".vscode/launch.json", ".idea/runConfigurations/x.xml", ".devcontainer/devcontainer.json", ".exrc", ".nvim.lua", ".lazy.lua", ".neoconf.json",
			".dir-locals.el", ".theia/tasks.json", ".factorypath", ".bsp/sbt.json", ".metals/settings.json", ".ruby-lsp/Gemfile", ".swiftpm/x",
			"rust-analyzer.toml", "CMakePresets.json", "CMakeUserPresets.json",
		},
		"shells": {
			".envrc", ".envrc.local", ".direnv/x", "flake.nix", "shell.nix", "devenv.nix", "devenv.local.nix", "devenv.yaml", "pixi.toml", ".pixi/envs/default/bin/python",
			".flox/env/manifest.toml", ".venv/bin/activate", "venv/bin/activate", ".bashrc", "Microsoft.PowerShell_profile.ps1", ".xinitrc", ".xprofile", ".xsession", ".xsessionrc",
			"mise.toml", "mise.local.toml", ".config/mise/config.toml", ".miserc.toml", ".tool-versions", ".prototools", "aqua.yaml", "aqua.yml", ".go-version",
			".swift-version", ".bun-version", ".deno-version", ".dvmrc", ".opentofu-version",
		},
		"git": {
			".lfsconfig", ".hooks/pre-commit", ".husky/pre-commit", "prek.toml", "hk.pkl", "hk.local.pkl", ".rusty-hook.toml", ".cargo-husky/hooks/pre-commit",
			"lefthook.jsonc", ".config/lefthook.yml", "lefthook-local.yml", ".pre-commit-config.yml",
		},
		"package managers and builds": {
			".npmrc", ".yarn/sdks/x", "pnpm-workspace.yaml", ".pnpmfile.mjs", ".cargo/config.toml", "rust-toolchain.toml", "go.work", "sitecustomize.py", "x.pth", ".mambarc",
			"jupyter_notebook_config.py", "jupyter_server_config.json", "jupyter_config.py", "ipython_config.py", ".irbrc", ".rdbgrc", ".byebugrc", ".bundle/config",
			".mvn/jvm.config", "user.bazelrc", "tools/bazel", "Directory.Solution.targets", "global.json",
		},
		"linters in editors": {
			"eslint.config.mjs", ".oxlintrc.json", ".markdownlint.cjs", ".markdownlint.mjs", ".markdownlint-cli2.cjs", ".graphqlrc.js", "graphql.config.ts", "tailwind.config.js",
			"svelte.config.js", ".golangci.yml", ".php-cs-fixer.dist.php", "phpstan.neon.dist", ".phpactor.json", "pylintrc", "pylintrc.toml", ".pylintrc.toml",
		},
		"other machines": {
			".github/workflows/x.yml", ".github/dependabot.yaml", ".azure-pipelines/x.yml", "buildspec.yml", "buildspec.yaml", "codemagic.yaml", "bitrise.yml",
			".build.yml", ".builds/x.yml", ".tekton/x.yaml", ".harness/x.yaml", ".mergify.yml", ".mergify/config.yml", "renovate.json5",
		},
	} {
		for _, name := range names {
			for _, p := range []string{name, "deep/er/" + name, strings.ToUpper(name)} {
				if n.Reason(p) == "" {
					t.Errorf("%s: Reason(%q) is empty", tool, p)
				}
			}
		}
	}
	for _, p := range []string{
		"package.json", "package-lock.json", "Makefile", "build.rs", "Cargo.toml", "Cargo.lock", "go.mod", "go.sum", "vendor/x/y.go", "pyproject.toml", "setup.py", "setup.cfg",
		"tox.ini", "conftest.py", "requirements.txt", "Gemfile", "Rakefile", "pom.xml", "build.gradle", "build.gradle.kts", "CMakeLists.txt", "Dockerfile", "docker-compose.yml",
		"compose.yaml", "vite.config.ts", "webpack.config.js", "tsconfig.json", "main.tf", "x.ipynb", ".gitignore", ".editorconfig", "tools/bazel.md", "src/flake.nix.md",
		"profile.ps1.md", "src/hooks/useX.ts", "docs/venv.md", "global.js", "config.json",
	} {
		for _, p := range []string{p, "deep/" + p} {
			if why := n.Reason(p); why != "" {
				t.Errorf("Reason(%q) = %q, want none: it is the project's own code", p, why)
			}
		}
	}
}

// In folders of dependencies, files that are read only in a project's own root are
// not protected. Files that act without a build are, and so are the user's own
// patterns.
func TestReasonInDependencies(t *testing.T) {
	n, err := New([]string{"deploy/**"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		".eslintrc", "eslint.config.js", ".github/workflows/ci.yml", ".github/dependabot.yml", ".travis.yml", ".vscode/settings.json", ".npmrc", ".husky/pre-commit",
		".golangci.yml", "CODEOWNERS", "phpstan.neon.dist", "gradle/wrapper/gradle-wrapper.jar",
	} {
		for _, p := range []string{"node_modules/x/" + name, "web/node_modules/@a/b/node_modules/c/" + name, "vendor/github.com/x/y/" + name, "bower_components/x/" + name} {
			if why := n.Reason(p); why != "" {
				t.Errorf("Reason(%q) = %q, want none", p, why)
			}
		}
		for _, p := range []string{name, "Node_Modules/x/" + name, "node_modules./x/" + name, "my-vendor/" + name} {
			if n.Reason(p) == "" {
				t.Errorf("Reason(%q) is empty", p)
			}
		}
	}
	for _, name := range []string{
		"CLAUDE.md", "AGENTS.md", ".claude/settings.json", ".claude-plugin/plugin.json", ".cursor/rules/x", ".mcp.json", ".envrc", "mise.toml", "flake.nix", ".dir-locals.el",
		".git/config", ".git", "git~1", ".hg/hgrc", ".gitattributes", ".htaccess", "x.pth", "deploy/x",
	} {
		for _, p := range []string{"node_modules/x/" + name, "vendor/" + name, "vendor/x/node_modules/" + name} {
			if n.Reason(p) == "" {
				t.Errorf("Reason(%q) is empty", p)
			}
		}
	}
	if n.Above("node_modules/x/gradle") != "" || n.Above("gradle") == "" || n.Above("node_modules/x/.github") == "" {
		t.Error("a link in a folder of dependencies counts by other rows than what is in it")
	}
}

func TestNew(t *testing.T) {
	for _, bad := range []string{"", "/", "*", "**", "a//b", "a/../b", "["} {
		if _, err := New([]string{bad}, nil); err == nil {
			t.Errorf("New accepts the pattern %q", bad)
		}
	}
	if _, err := New(nil, []string{"no such name"}); err == nil {
		t.Error("New takes a name out that is not in the list")
	}
	seen := map[string]bool{}
	for line := range strings.Lines(table) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if strings.HasPrefix(name, "[") && name != "[everywhere]" && name != "[not in dependencies]" {
			t.Errorf("%q says nothing of where the rows below it count", name)
		}
		if name != "" && seen[name] && !strings.HasPrefix(name, "#") {
			t.Errorf("%q is in the list twice", name)
		}
		seen[name] = true
	}
}

// Folding twice changes nothing, so comparing folds is enough.
func FuzzFold(f *testing.F) {
	for _, s := range []string{".git", "．ＧＩＴ", "a\u0301", "İ", "ß", "ǅ", ".git::$DATA", "Kelvin \u212a"} {
		f.Add(s)
	}
	n, err := New(nil, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if IsDotGit(s) && n.Reason(s) == "" {
			t.Errorf("%q is a spelling of .git, and not protected", s)
		}
		if a, b := Fold(s), Fold(strings.ToLower(s)); utf8.ValidString(s) && a != b {
			t.Errorf("Fold(%q) = %q, and in lower case %q", s, a, b)
		}
	})
}
