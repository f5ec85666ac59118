//go:build unix

package program

import (
	stdcmp "cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// wantNeeds are names below a tree's root, "name -> target" for links.
func wantNeeds(dir string, names []string) (needs []string, links []paths.Link) {
	for _, name := range names {
		if path, target, ok := strings.Cut(name, " -> "); ok {
			links = append(links, paths.Link{Path: filepath.Join(dir, path), Target: target})
		} else {
			needs = append(needs, filepath.Join(dir, name))
		}
	}
	slices.Sort(needs)
	return needs, links
}

func TestNeeds(t *testing.T) {
	for _, tt := range []struct {
		about string
		files map[string]string
		home  string // "home" when empty
		name  string // below the root
		want  []string
	}{
		{
			about: "a single file", name: "home/bin/tool",
			files: map[string]string{"home/bin/tool*": elf, "home/lib/x": "", "home/share/x": ""},
			want:  []string{"home/bin/tool"},
		},
		{
			about: "nvm", name: "home/.nvm/versions/node/v22/bin/node",
			files: map[string]string{"home/.nvm/versions/node/v22/bin/node*": elf, "home/.nvm/versions/node/v22/lib/x": ""},
			want:  []string{"home/.nvm/versions/node/v22"},
		},
		{
			about: "cargo", name: "home/.cargo/bin/rg",
			files: map[string]string{"home/.cargo/bin/rg*": elf, "home/.cargo/credentials.toml": "", "home/.cargo/share/x": ""},
			want:  []string{"home/.cargo/bin/rg"},
		},
		{
			about: "cargo elsewhere", name: "data/cargo/bin/rg",
			files: map[string]string{"data/cargo/bin/rg*": elf, "data/cargo/credentials.toml": "", "data/cargo/lib/x": ""},
			want:  []string{"data/cargo/bin/rg"},
		},
		{
			about: "go install", name: "home/go/bin/gopls",
			files: map[string]string{"home/go/bin/gopls*": elf, "home/go/pkg/mod/x": "", "home/go/lib/x": ""},
			want:  []string{"home/go/bin/gopls"},
		},
		{
			about: "pip for the user", name: "home/.local/bin/black",
			files: map[string]string{"home/.local/bin/black*": "#!/bin/sh\n", "home/.local/lib/python3/x": "", "home/.local/share/keyrings/x": ""},
			want:  []string{"home/.local/bin", "home/.local/lib"},
		},
		{
			about: "pipx", name: "home/.local/bin/black",
			files: map[string]string{
				"home/.local/bin/black":                           "-> ../share/pipx/venvs/black/bin/black",
				"home/.local/share/pipx/venvs/black/bin/black*":   elf,
				"home/.local/share/pipx/venvs/black/pyvenv.cfg":   "home = /usr/bin\n",
				"home/.local/share/pipx/venvs/black/lib/python/x": "",
			},
			want: []string{"home/.local/bin", "home/.local/share/pipx/venvs/black"},
		},
		{
			about: "uv", name: "bin/python3",
			files: map[string]string{
				"bin/python3": "-> ../home/.local/share/uv/python/cpython-3.12/bin/python3",
				"home/.local/share/uv/python/cpython-3.12/bin/python3":     "-> python3.12",
				"home/.local/share/uv/python/cpython-3.12/bin/python3.12*": elf,
				"home/.local/share/uv/python/cpython-3.12/lib/x":           "",
			},
			want: []string{"home/.local/share/uv/python/cpython-3.12", "bin/python3 -> ../home/.local/share/uv/python/cpython-3.12/bin/python3"},
		},
		{
			about: "a linked version", name: "home/.sdkman/candidates/java/current/bin/java",
			files: map[string]string{
				"home/.sdkman/candidates/java/current":      "-> 21",
				"home/.sdkman/candidates/java/21/bin/java*": elf,
				"home/.sdkman/candidates/java/21/lib/x":     "",
			},
			want: []string{"home/.sdkman/candidates/java/21", "home/.sdkman/candidates/java/current -> 21"},
		},
		{
			about: "a linked home", home: "users/me", name: "users/me/.local/bin/tool",
			files: map[string]string{"users/me": "-> ../home", "home/.local/bin/tool*": elf},
			want:  []string{"home/.local/bin", "users/me -> ../home"},
		},
		{
			about: "Linuxbrew", name: "brew/.linuxbrew/bin/jq",
			files: map[string]string{
				"brew/.linuxbrew/bin/jq":                "-> ../Cellar/jq/1.7/bin/jq",
				"brew/.linuxbrew/Cellar/jq/1.7/bin/jq*": elf,
			},
			want: []string{"brew/.linuxbrew"},
		},
		{
			about: "a keg of Linuxbrew", name: "brew/.linuxbrew/Cellar/jq/1.7/bin/jq",
			files: map[string]string{"brew/.linuxbrew/bin/x": "", "brew/.linuxbrew/Cellar/jq/1.7/bin/jq*": elf},
			want:  []string{"brew/.linuxbrew"},
		},
		{
			about: "packages of JavaScript", name: "home/.config/yarn/global/node_modules/.bin/tsc",
			files: map[string]string{
				"home/.config/yarn/global/node_modules/.bin/tsc":            "-> ../typescript/bin/tsc",
				"home/.config/yarn/global/node_modules/typescript/bin/tsc*": elf,
			},
			want: []string{"home/.config/yarn/global/node_modules"},
		},
		{
			about: "conda", name: "home/miniconda3/bin/python",
			files: map[string]string{"home/miniconda3/bin/python*": elf, "home/miniconda3/conda-meta/x": ""},
			want:  []string{"home/miniconda3"},
		},
		{
			about: "a working copy", name: "home/it/bin/rails",
			files: map[string]string{"home/it/bin/rails*": elf, "home/it/lib/x": "", "home/it/.git/x": ""},
			want:  []string{"home/it/bin/rails"},
		},
		{
			about: "a manager that we do not follow", name: "home/.rbenv/shims/ruby",
			files: map[string]string{"home/.rbenv/shims/ruby*": elf, "home/.rbenv/versions/x": "", "home/.rbenv/libexec/x": "", "home/.rbenv/.git/x": ""},
			want:  []string{"home/.rbenv"},
		},
		{
			about: "secrets beside it", name: "home/it/bin/tool",
			files: map[string]string{"home/it/bin/tool*": elf, "home/it/lib/x": "", "home/it/.env": ""},
			want:  []string{"home/it/bin/tool"},
		},
		{
			about: "a home inside of it", home: "apps/me", name: "apps/bin/tool",
			files: map[string]string{"apps/bin/tool*": elf, "apps/lib/x": "", "apps/me/x": ""},
			want:  []string{"apps/bin/tool"},
		},
		{
			about: "a folder of keys", name: "home/.ssh/x/bin/tool",
			files: map[string]string{"home/.ssh/x/bin/tool*": elf, "home/.ssh/x/lib/x": "", "home/.ssh/x/node_modules/x": ""},
			want:  []string{"home/.ssh/x/bin/tool"},
		},
		{
			about: "an installation that is a link to the home", name: "apps/it/bin/tool",
			files: map[string]string{"apps/it": "-> ../home", "home/bin/tool*": elf, "home/lib/x": ""},
			want:  []string{"home/bin/tool", "apps/it -> ../home"},
		},
		{
			about: "no home", home: "-", name: "apps/it/bin/tool",
			files: map[string]string{"apps/it/bin/tool*": elf, "apps/it/lib/x": ""},
			want:  []string{"apps/it/bin/tool"},
		},
		{
			about: "rustup itself", name: "home/.cargo/bin/rustup",
			files: map[string]string{"home/.cargo/bin/rustup*": elf, "home/.rustup/toolchains/x": "", "home/.rustup/settings.toml": ""},
			want:  []string{"home/.cargo/bin/rustup", "home/.rustup/settings.toml", "home/.rustup/toolchains"},
		},
		{
			about: "a virtual environment", name: "home/it/.venv/bin/python",
			files: map[string]string{
				"home/it/.venv/bin/python":         "-> ../../../py/bin/python3",
				"home/it/.venv/pyvenv.cfg":         "home = HOME/py/bin\n",
				"home/py/bin/python3*":             elf,
				"home/py/lib/python3.12/os.py":     "",
				"home/it/.venv/lib/python3.12/x.x": "",
			},
			want: []string{"home/it/.venv", "home/py"},
		},
		{
			about: "a copied virtual environment, and a version that is a link", name: "home/it/.venv/bin/python",
			files: map[string]string{
				"home/it/.venv/bin/python*":    elf,
				"home/it/.venv/pyvenv.cfg":     "version = 3\nhome=HOME/py/bin\n",
				"home/py":                      "-> .py/3.12",
				"home/.py/3.12/bin/python3*":   elf,
				"home/.py/3.12/lib/python3.12": "",
			},
			want: []string{"home/.py/3.12", "home/it/.venv", "home/py -> .py/3.12"},
		},
		{
			about: "a virtual environment that names what is none", name: "home/it/.venv/bin/python",
			files: map[string]string{
				"home/it/.venv/bin/python*": elf, "home/it/.venv/pyvenv.cfg": "home = HOME/secret/bin\n",
				"home/secret/lib/x": "", "home/secret/bin/x": "",
			},
			want: []string{"home/it/.venv"},
		},
		{
			about: "a virtual environment that names the home", name: "home/it/.venv/bin/python",
			files: map[string]string{
				"home/it/.venv/bin/python*": elf, "home/it/.venv/pyvenv.cfg": "home = HOME/bin\n",
				"home/lib/python3": "", "home/bin/x": "",
			},
			want: []string{"home/it/.venv"},
		},
	} {
		t.Run(tt.about, func(t *testing.T) {
			dir := tree(t, nil)
			for name, text := range tt.files {
				tt.files[name] = strings.ReplaceAll(text, "HOME", filepath.Join(dir, "home"))
			}
			grow(t, dir, tt.files)
			o := LookupOptions{Environ: []string{"HOME=" + filepath.Join(dir, stdcmp.Or(tt.home, "home"))}}
			if tt.home == "-" {
				o.Environ = nil
			}
			p, err := Lookup(filepath.Join(dir, tt.name), o)
			if err != nil {
				t.Fatal(err)
			}
			needs, links := wantNeeds(dir, tt.want)
			if diff := cmp.Diff(needs, p.Needs, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Needs of %q differ (-want +got):\n%s", tt.name, diff)
			}
			if diff := cmp.Diff(links, p.Links, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("Links of %q differ (-want +got):\n%s", tt.name, diff)
			}
			if _, err := new(Lookuper).Verify(p); err != nil {
				t.Errorf("Verify = %v, want nil", err)
			}
		})
	}
}

// Files that every run sees anyway are not needed.
func TestNeedsNothing(t *testing.T) {
	dir := tree(t, map[string]string{
		"home/pack/bin/tool*": "#!/bin/sh\n", "home/pack/lib/x": "", "home/pack/link": "-> bin/tool",
		"home/ws/.venv/bin/python*": elf, "home/ws/.venv/lib/x": "",
	})
	o := LookupOptions{
		PackDir: filepath.Join(dir, "home/pack"), Exclude: []string{filepath.Join(dir, "home/pack"), filepath.Join(dir, "home/ws")},
		Environ: []string{"HOME=" + filepath.Join(dir, "home")},
	}
	for _, name := range []string{"./bin/tool", "./link", filepath.Join(dir, "home/ws/.venv/bin/python"), "/bin/sh"} {
		p, err := Lookup(name, o)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Needs) > 0 || len(p.Links) > 0 {
			t.Errorf("Lookup(%q) needs %q and links %q, want nothing", name, p.Needs, p.Links)
		}
		if dirs := p.PathDirs(); len(dirs) > 0 {
			t.Errorf("PathDirs of %q = %q, want none", name, dirs)
		}
	}
}

func TestNeedsOfInterpreters(t *testing.T) {
	dir := tree(t, map[string]string{
		"home/bin/tool*":          "#!/usr/bin/env lang\n",
		"home/lang/bin/lang*":     "#!ROOT/vm/bin/vm\n",
		"home/lang/share/x":       "",
		"vm/it/bin/vm*":           elf,
		"vm/it/lib/x":             "",
		"home/bin/own*":           "#!ROOT/env/bin/env lang\n",
		"home/bin/missing*":       "#!ROOT/broken\n",
		"broken*":                 "#!/no/such/program\n",
		"env/bin/env*":            elf,
		"home/bin/self*":          "#!ROOT/loop\n",
		"loop*":                   "#!ROOT/loop\n",
		"home/.nvm/n/bin/npm":     "-> ../lib/node_modules/npm/cli.js",
		"home/.nvm/n/bin/nodejs*": elf,
	})
	fill := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "ROOT", dir)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	fill("home/lang/bin/lang", "#!ROOT/vm/it/bin/vm\n")
	fill("home/bin/own", "#!ROOT/env/bin/env lang\n")
	fill("home/bin/missing", "#!ROOT/broken\n")
	fill("home/bin/self", "#!ROOT/loop\n")
	fill("loop", "#!ROOT/loop\n")
	grow(t, dir, map[string]string{"home/.nvm/n/lib/node_modules/npm/cli.js*": "#!/usr/bin/env nodejs\n"})

	o := LookupOptions{
		Path:    strings.Join([]string{filepath.Join(dir, "home/lang/bin"), filepath.Join(dir, "home/.nvm/n/bin")}, ":"),
		Environ: []string{"HOME=" + filepath.Join(dir, "home")},
	}
	for name, tt := range map[string]struct{ needs, dirs []string }{
		"home/bin/tool":       {[]string{"home/bin/tool", "home/lang", "vm/it"}, []string{"home/lang/bin"}},
		"home/bin/own":        {[]string{"home/bin/own", "env/bin/env"}, []string{"env/bin"}}, // not the system's env(1)
		"home/.nvm/n/bin/npm": {[]string{"home/.nvm/n"}, []string{"home/.nvm/n/bin"}},
	} {
		p, err := Lookup(filepath.Join(dir, name), o)
		if err != nil {
			t.Errorf("Lookup(%q) = %v", name, err)
			continue
		}
		needs, _ := wantNeeds(dir, tt.needs)
		if diff := cmp.Diff(needs, p.Needs); diff != "" {
			t.Errorf("Needs of %q differ (-want +got):\n%s", name, diff)
		}
		dirs, _ := wantNeeds(dir, tt.dirs)
		if diff := cmp.Diff(dirs, p.PathDirs()); diff != "" {
			t.Errorf("PathDirs of %q differ (-want +got):\n%s", name, diff)
		}
	}
	for name, want := range map[string]string{"home/bin/missing": "no such file", "home/bin/self": "is run by more than 8 programs"} {
		if p, err := Lookup(filepath.Join(dir, name), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Lookup(%q) = %+v, %v, want an error with %q", name, p, err, want)
		}
	}
}

func TestVerifyNeeds(t *testing.T) {
	files := map[string]string{
		"home/.ssh/bin/tool*": elf, "home/.ssh/lib/x": "",
		"home/apps/1/bin/tool*": elf, "home/apps/1/lib/x": "",
		"home/apps/now": "-> 1",
	}
	for about, change := range map[string]func(dir string) error{
		"the link leads elsewhere": func(dir string) error {
			return errors.Join(os.Remove(dir+"/apps/now"), os.Rename(dir+"/apps/1", dir+"/apps/2"), os.Symlink("2", dir+"/apps/now"))
		},
		"a folder is a link": func(dir string) error {
			return errors.Join(os.Rename(dir+"/apps/1", dir+"/apps/2"), os.Symlink("../.ssh", dir+"/apps/1"))
		},
		"a folder is gone": func(dir string) error { return os.RemoveAll(dir + "/apps/1") },
		"the link is spelled another way": func(dir string) error {
			return errors.Join(os.Remove(dir+"/apps/now"), os.Symlink("../apps/1", dir+"/apps/now"))
		},
	} {
		dir := filepath.Join(tree(t, files), "home")
		p, err := Lookup(dir+"/apps/now/bin/tool", LookupOptions{Environ: []string{"HOME=" + dir}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := new(Lookuper).Verify(p); err != nil {
			t.Fatal(err)
		}
		if err := change(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := new(Lookuper).Verify(p); !errors.As(err, new(*ChangedError)) {
			t.Errorf("Verify after %q = %v, want a *ChangedError", about, err)
		}
	}
}
