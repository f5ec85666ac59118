//go:build unix

package program

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/file"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/shim"
)

const elf = "\x7fELF"

// files joins file trees; later ones win.
func files(trees ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, tree := range trees {
		maps.Copy(all, tree)
	}
	return all
}

// A shimCase looks up a program in a tree in which ROOT stands for its path. HOME is
// home, the project's folder is home/proj, and PATH has the folders in bins.
type shimCase struct {
	about string
	files map[string]string
	more  func(dir string) error // makes other changes to the tree
	env   []string
	name  string
	want  string // below the root
	shim  string // below the root
	err   string // part of it
}

// plantShims makes a tree with ROOT filled in.
func plantShims(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := tree(t, nil)
	filled := map[string]string{}
	for name, text := range files {
		filled[name] = strings.ReplaceAll(text, "ROOT/", dir+"/")
	}
	grow(t, dir, filled)
	return dir
}

func (tt *shimCase) options(dir string, bins []string) LookupOptions {
	o := LookupOptions{
		Environ: []string{"HOME=" + filepath.Join(dir, "home")},
		Dir:     filepath.Join(dir, "home/proj"),
		PackDir: filepath.Join(dir, "home/proj/pack"),
		Exclude: []string{filepath.Join(dir, "home/proj/pack"), filepath.Join(dir, "home/ws")},
	}
	for _, kv := range tt.env {
		o.Environ = append(o.Environ, strings.ReplaceAll(kv, "ROOT/", dir+"/"))
	}
	var path []string
	for _, bin := range bins {
		path = append(path, filepath.Join(dir, bin))
	}
	o.Path = strings.Join(path, ":")
	return o
}

func testShims(t *testing.T, bins []string, base map[string]string, cases []shimCase) {
	for _, tt := range cases {
		t.Run(tt.about, func(t *testing.T) {
			dir := plantShims(t, files(base, map[string]string{"home/proj/pack/x": ""}, tt.files))
			if tt.more != nil {
				if err := tt.more(dir); err != nil {
					t.Fatal(err)
				}
			}
			o := tt.options(dir, bins)
			name := strings.ReplaceAll(tt.name, "ROOT/", dir+"/")
			p, err := Lookup(name, o)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("Lookup(%q) = %q, %v, want an error with %q", name, p.Path, err, tt.err)
				} else if strings.ContainsAny(err.Error(), "\n\r\x00") {
					t.Errorf("Lookup(%q) = %q, which is more than a line", name, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("Lookup(%q) = %v, want %q", name, err, tt.want)
			}
			if p.Path != filepath.Join(dir, tt.want) {
				t.Errorf("Lookup(%q).Path = %q, want %q", name, p.Path, filepath.Join(dir, tt.want))
			}
			shim := ""
			if tt.shim != "" {
				shim = filepath.Join(dir, tt.shim)
			}
			if p.Shim != shim {
				t.Errorf("Lookup(%q).Shim = %q, want %q", name, p.Shim, shim)
			}
			if want := filepath.Dir(p.Path); p.Shim != "" && !slices.Equal(p.PathDirs(), []string{want}) {
				t.Errorf("Lookup(%q).PathDirs() = %q, want %q", name, p.PathDirs(), want)
			}
			if _, err := new(Lookuper).Verify(p); err != nil {
				t.Errorf("Verify = %v, want nil", err)
			}
		})
	}
}

const pyenvShim = `#!/usr/bin/env bash
set -e
[ -n "$PYENV_DEBUG" ] && set -x

program="${0##*/}"

export PYENV_ROOT="ROOT/home/.pyenv"
exec "ROOT/home/.pyenv/libexec/pyenv" exec "$program" "$@"
`

func TestPyenv(t *testing.T) {
	base := map[string]string{
		"home/.pyenv/shims/python3*":                            pyenvShim,
		"home/.pyenv/shims/black*":                              pyenvShim,
		"home/.pyenv/shims/gone*":                               pyenvShim,
		"home/.pyenv/versions/3.11.7/bin/python3*":              elf,
		"home/.pyenv/versions/3.11.7/lib/x":                     "",
		"home/.pyenv/versions/3.9.18/bin/python3*":              elf,
		"home/.pyenv/versions/3.9.18/bin/black*":                elf,
		"home/.pyenv/versions/3.9.2/bin/python3*":               elf,
		"home/.pyenv/versions/3.9.20rc1/bin/python3*":           elf,
		"home/.pyenv/versions/3.9.18/envs/proj-env/bin/python3": "-> ../../../bin/python3",
		"home/.pyenv/versions/proj-env":                         "-> 3.9.18/envs/proj-env",
		"home/.pyenv/version":                                   "3.11.7\n",
		"usr/python3*":                                          elf,
		"home/secret":                                           "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n",
	}
	const shim, path311, path39 = "home/.pyenv/shims/python3", "home/.pyenv/versions/3.11.7/bin/python3", "home/.pyenv/versions/3.9.18/bin/python3"
	local := func(text string) map[string]string { return map[string]string{"home/proj/.python-version": text} }
	testShims(t, []string{"home/.pyenv/shims", "usr"}, base, []shimCase{
		{about: "the global version", name: "python3", want: path311, shim: shim},
		{about: "by its path", name: "ROOT/home/.pyenv/shims/python3", want: path311, shim: shim},
		{about: "the variable", env: []string{"PYENV_VERSION=3.9.18"}, files: local("3.11.7"), name: "python3", want: path39, shim: shim},
		{about: "the project", files: local("3.9.18\n"), name: "python3", want: path39, shim: shim},
		{about: "a folder above", files: map[string]string{"home/.python-version": "3.9.18"}, name: "python3", want: path39, shim: shim},
		{about: "an empty file", files: local("\n# nothing\n"), name: "python3", want: "usr/python3", shim: shim},
		{about: "CRLF and a comment", files: local("# ours\r\n 3.9.18 # it\r\n"), name: "python3", want: path39, shim: shim},
		{about: "a prefix", files: local("3.9\n"), name: "python3", want: path39, shim: shim},
		{about: "a prefix in words", files: local("python-3.9\n"), name: "python3", want: path39, shim: shim},
		{about: "a virtual environment", files: local("proj-env\n"), name: "python3", want: "home/.pyenv/versions/proj-env/bin/python3", shim: shim},
		{about: "several versions", files: local("3.11.7\n3.9.18\n"), name: "black", want: "home/.pyenv/versions/3.9.18/bin/black", shim: "home/.pyenv/shims/black"},
		{about: "several in one line", files: local("3.11.7:3.9.18\n"), name: "black", want: "home/.pyenv/versions/3.9.18/bin/black", shim: "home/.pyenv/shims/black"},
		{about: "system", files: local("system\n"), name: "python3", want: "usr/python3", shim: shim},
		{about: "a link to the shim", files: map[string]string{"usr2/python3": "-> ../home/.pyenv/shims/python3"}, name: "ROOT/usr2/python3", want: path311, shim: "usr2/python3"},
		{about: "a linked file", files: map[string]string{"home/dot/pv": "3.9.18", "home/proj/.python-version": "-> ../dot/pv"}, name: "python3", want: path39, shim: shim},

		{about: "in no version", name: "gone", err: `cannot be followed: it leaves "gone" to the rest of PATH`},
		{about: "not installed", files: local("3.12"), name: "python3", err: `version "3.12", which`},
		{about: "what to do", files: local("3.12"), name: "python3", err: "name the program by its absolute path instead"},
		{about: "out of the folder", files: local("../../usr\n"), name: "python3", err: "not a plain word"},
		{about: "a hidden name", files: local("..\n"), name: "python3", err: "not a plain word"},
		{about: "an absolute version", files: local("ROOT/home/ws\n"), name: "python3", err: "not a plain word"},
		{about: "a version with a slash", files: local("3.9.18/envs/proj-env\n"), name: "python3", err: "not a plain word"},
		{about: "an option", files: local("-x\n"), name: "python3", err: "not a plain word"},
		{about: "a NUL", files: local("3.9\x00.18\n"), name: "python3", err: "not a plain word"},
		{about: "one good, one not", files: local("3.11.7:../x\n"), name: "black", err: "not a plain word"},
		{about: "somebody's key", files: map[string]string{"home/proj/.python-version": "-> ../secret"}, name: "python3", err: "names a version that is not a plain word"},
		{about: "a huge file", files: local(strings.Repeat("#\n", 256<<10)), name: "python3", err: "larger than any such file"},
		{about: "a folder", files: map[string]string{"home/proj/.python-version/x": ""}, name: "python3", err: "not a regular file"},
		{about: "a loop", files: map[string]string{"home/proj/.python-version": "-> .python-version"}, name: "python3", err: "cannot be read"},
		{about: "a link into the pack", files: map[string]string{"home/proj/pack/v": "3.9.18", "home/proj/.python-version": "-> pack/v"}, name: "python3", err: "into the pack"},
		{about: "a version in the workspace", name: "python3", err: "is in the pack or the workspace", files: files(local("evil"), map[string]string{
			"home/ws/bin/python3*": elf, "home/.pyenv/versions/evil": "-> ../../ws",
		})},
		{about: "a folder of anybody", name: "python3", err: "others may write to", files: files(local("open"), map[string]string{"home/.pyenv/versions/open/bin/python3*": elf}), more: func(dir string) error {
			return os.Chmod(filepath.Join(dir, "home/.pyenv/versions/open/bin"), 0o777)
		}},
		{about: "a version that leads nowhere", files: files(local("loop"), map[string]string{"home/.pyenv/versions/loop": "-> loop"}), name: "python3", err: "is not installed"},
		{about: "a shim in front of itself", files: files(local("self"), map[string]string{"home/.pyenv/versions/self/bin/python3": "-> ../../../shims/python3"}), name: "python3", err: "leads from one shim to the next"},
		{about: "its folder in the workspace", name: "ROOT/o/shims/python3", err: "its folder is in the pack or the workspace", files: map[string]string{
			"o/shims/python3*": strings.ReplaceAll(pyenvShim, "ROOT/home/.pyenv", "ROOT/home/ws/.pyenv"),
		}},
	})
}

// Files in the pack or the workspace choose no version, however they are reached.
func TestPackChoosesNoVersion(t *testing.T) {
	dir := plantShims(t, map[string]string{
		"home/.pyenv/shims/python3*":              pyenvShim,
		"home/.pyenv/version":                     "1\n",
		"home/.pyenv/versions/1/bin/python3*":     elf,
		"home/.pyenv/versions/2/bin/python3*":     elf,
		"home/proj/pack/.python-version":          "2\n",
		"home/proj/pack/sub/.python-version":      "2\n",
		"home/proj/pack/run*":                     "#!/usr/bin/env python3\n",
		"home/proj/pack/shims/tool*":              pyenvShim,
		"home/proj/pack/shims/other*":             "#!/bin/sh\n# asdf-plugin: python 2\n",
		"home/proj/pack/abs*":                     "#!ROOT/home/.pyenv/shims/python3\n",
		"home/proj/pack/envabs*":                  "#!/usr/bin/env ROOT/home/.pyenv/shims/python3\n",
		"home/elsewhere":                          "-> proj/pack/sub",
		"home/.pyenv/shims/__pycache__/x":         "",
		"home/.pyenv/versions/1/bin/__pycache__/": "",
	})
	tt := shimCase{}
	for _, at := range []string{"home/proj", "home/proj/pack", "home/proj/pack/sub", "home/elsewhere", "nowhere", ""} {
		o := tt.options(dir, []string{"home/.pyenv/shims"})
		o.Dir = filepath.Join(dir, at)
		if at == "home/elsewhere" {
			// A folder is compared as it is spelled; its file is resolved.
			if _, err := Lookup("python3", o); err == nil || !strings.Contains(err.Error(), "into the pack") {
				t.Errorf("Lookup from %q = %v, want it refused", at, err)
			}
			continue
		}
		p, err := Lookup("python3", o)
		if want := filepath.Join(dir, "home/.pyenv/versions/1/bin/python3"); err != nil || p.Path != want {
			t.Errorf("Lookup from %q = %q, %v, want %q", at, p.Path, err, want)
		}
		p, err = Lookup("./run", o)
		if want := filepath.Join(dir, "home/.pyenv/versions/1/bin/python3"); err != nil || p.Interpreters[len(p.Interpreters)-1].Path != want || p.Shim != "" {
			t.Errorf("Lookup of a script from %q has interpreter %q, %v, want %q", at, p.Interpreters[len(p.Interpreters)-1].Path, err, want)
		} else if dirs := p.PathDirs(); !slices.Equal(dirs, []string{filepath.Dir(want)}) {
			t.Errorf("PathDirs of a script = %q, want %q", dirs, filepath.Dir(want))
		}
	}
	o := tt.options(dir, []string{"home/.pyenv/shims"})
	// A script of the pack that looks like a shim is only a script.
	o.Path += ":/usr/bin:/bin"
	for _, name := range []string{"./shims/tool", "./shims/other"} {
		if p, err := Lookup(name, o); err == nil && p.Shim != "" || errors.Is(err, shim.ErrOnPath) {
			t.Errorf("Lookup(%q) = %q, %v, want the script itself", name, p.Path, err)
		}
	}
	for _, name := range []string{"./abs", "./envabs"} {
		if _, err := Lookup(name, o); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "it is a shim of pyenv") {
			t.Errorf("Lookup(%q) = %v, want the shim named", name, err)
		}
	}
}

func TestShimFIFO(t *testing.T) {
	dir := plantShims(t, map[string]string{"home/.pyenv/shims/python3*": pyenvShim, "home/proj/x": "", "home/.pyenv/versions/1/bin/python3*": elf})
	if err := unix.Mkfifo(filepath.Join(dir, "home/proj/.python-version"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := Lookup("python3", (&shimCase{}).options(dir, []string{"home/.pyenv/shims"}))
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("Lookup = %v, want the FIFO refused", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Lookup waits for the other end of a FIFO")
	}
}

func asdfShim(name string, tools ...string) string {
	text := "#!/usr/bin/env bash\n"
	for _, tool := range tools {
		text += "# asdf-plugin: " + tool + "\n"
	}
	return text + fmt.Sprintf("exec asdf exec %q \"$@\"", name)
}

func TestAsdf(t *testing.T) {
	base := map[string]string{
		"home/.asdf/shims/node*":                       asdfShim("node", "nodejs 22.1.0", "nodejs 20.0.0"),
		"home/.asdf/shims/go*":                         asdfShim("go", "golang 1.22.0"),
		"home/.asdf/shims/both*":                       asdfShim("both", "nodejs 20.0.0", "python 3.12.1"),
		"home/.asdf/shims/old*":                        "#!/usr/bin/env bash\n# asdf-plugin: nodejs 20.0.0\nexec /home/me/.asdf/bin/asdf exec \"old\" \"$@\" # asdf_allow: ' asdf '\n",
		"home/.asdf/shims/evil*":                       asdfShim("evil", "../../ws 1.0"),
		"home/.asdf/installs/nodejs/22.1.0/bin/node*":  elf,
		"home/.asdf/installs/nodejs/20.0.0/bin/node*":  elf,
		"home/.asdf/installs/nodejs/20.0.0/bin/old*":   elf,
		"home/.asdf/installs/nodejs/ref-v1/bin/node*":  elf,
		"home/.asdf/installs/golang/1.22.0/go/bin/go*": elf,
		"home/.asdf/installs/python/3.12.1/bin/both*":  elf,
		"home/.tool-versions":                          "nodejs 22.1.0\ngolang 1.22.0\npython 3.12.1\n",
		"usr/node*":                                    elf,
	}
	const shim, node22, node20 = "home/.asdf/shims/node", "home/.asdf/installs/nodejs/22.1.0/bin/node", "home/.asdf/installs/nodejs/20.0.0/bin/node"
	local := func(text string) map[string]string { return map[string]string{"home/proj/.tool-versions": text} }
	legacy := map[string]string{"home/.asdfrc": "legacy_version_file = yes\n", "home/proj/.nvmrc": "20"}
	testShims(t, []string{"home/.asdf/shims", "usr"}, base, []shimCase{
		{about: "the home", name: "node", want: node22, shim: shim},
		{about: "the project", files: local("nodejs 20.0.0 # comment\n"), name: "node", want: node20, shim: shim},
		{about: "another tool's line", files: local("ruby 3\n# nodejs 1\nnodejs 20.0.0\nnodejs 22.1.0\n"), name: "node", want: node20, shim: shim},
		{about: "the first that has it", files: local("nodejs 1.0.0 20.0.0\n"), name: "node", want: node20, shim: shim},
		{about: "the variable", env: []string{"ASDF_NODEJS_VERSION=20.0.0"}, name: "node", want: node20, shim: shim},
		{about: "another file name", env: []string{"ASDF_TOOL_VERSIONS_FILENAME=.tools"}, files: map[string]string{"home/proj/.tools": "nodejs 20.0.0"}, name: "node", want: node20, shim: shim},
		{about: "system", files: local("nodejs system\n"), name: "node", want: "usr/node", shim: shim},
		{about: "a folder inside", name: "go", want: "home/.asdf/installs/golang/1.22.0/go/bin/go", shim: "home/.asdf/shims/go"},
		{about: "the second tool", name: "both", want: "home/.asdf/installs/python/3.12.1/bin/both", shim: "home/.asdf/shims/both"},
		{about: "a shim in Bash", files: local("nodejs 20.0.0"), name: "old", want: "home/.asdf/installs/nodejs/20.0.0/bin/old", shim: "home/.asdf/shims/old"},
		{about: "a ref", name: "node", want: "home/.asdf/installs/nodejs/ref-v1/bin/node", shim: shim, files: files(local("nodejs ref:v1"), map[string]string{"home/.asdf/shims/node*": asdfShim("node", "nodejs ref:v1")})},
		{about: "a file that counts for another tool", files: map[string]string{"home/.asdfrc": "legacy_version_file = yes\n", "home/proj/.nvmrc": "20"}, name: "go", want: "home/.asdf/installs/golang/1.22.0/go/bin/go", shim: "home/.asdf/shims/go"},
		{about: "a legacy file after", files: files(legacy, local("nodejs 20.0.0")), name: "node", want: node20, shim: shim},

		{about: "a legacy file", files: legacy, name: "node", err: "only a plugin can read"},
		{about: "not of the shim", files: local("nodejs 1.0.0"), name: "node", err: `"node" is in none of the versions that are set: nodejs 1.0.0`},
		{about: "nothing set", files: map[string]string{"home/.tool-versions": ""}, name: "node", err: "no version of its tool is set"},
		{about: "a path", files: local("nodejs path:/home/me/x"), name: "node", err: "not a plain word"},
		{about: "out of the folder", files: local("nodejs ../../../ws"), name: "node", err: "not a plain word"},
		{about: "a tool out of the folder", name: "evil", err: "the shim names a tool that is not a plain word"},
		{about: "a file name that is a path", env: []string{"ASDF_TOOL_VERSIONS_FILENAME=../x"}, name: "node", err: "a name that is a path"},
	})
}

func TestMise(t *testing.T) {
	const data = "home/.local/share/mise/"
	base := map[string]string{
		"home/.local/bin/mise*":                            elf,
		data + "shims/node":                                "-> ROOT/home/.local/bin/mise",
		data + "shims/npm":                                 "-> ROOT/home/.local/bin/mise",
		data + "shims/rg":                                  "-> ROOT/home/.local/bin/mise",
		data + "shims/prettier":                            "-> ROOT/home/.local/bin/mise",
		data + "installs/node/22.1.0/bin/node*":            elf,
		data + "installs/node/22.1.0/bin/npm*":             elf,
		data + "installs/node/22.0.9/bin/node*":            elf,
		data + "installs/node/20.0.0/bin/node*":            elf,
		data + "installs/node/20":                          "-> ./20.0.0",
		data + "installs/npm-prettier/3.1.0/bin/prettier*": elf,
		data + "installs/ripgrep/14.1.0/ripgrep-14-x/rg*":  elf,
		data + "installs/npm/10.0.0/bin/npm*":              elf,
		"home/.config/mise/config.toml":                    "[tools]\nnode = \"22\"\nripgrep = \"latest\"\n\"npm:prettier\" = \"3\"\n",
		"usr/node*":                                        elf,
	}
	const shim, node22, node20 = data + "shims/node", data + "installs/node/22.1.0/bin/node", data + "installs/node/20/bin/node"
	local := func(text string) map[string]string { return map[string]string{"home/proj/mise.toml": text} }
	testShims(t, []string{data + "shims", "usr"}, base, []shimCase{
		{about: "the user's file", name: "node", want: node22, shim: shim},
		{about: "mise itself", name: "ROOT/home/.local/bin/mise", want: "home/.local/bin/mise"},
		{about: "the project", files: local("[tools]\nnode = '20'\n"), name: "node", want: node20, shim: shim},
		{about: "a list", files: local("[tools]\nnode = [\n  \"20\", # old\n  '22',\n]\n"), name: "node", want: node20, shim: shim},
		{about: "an alias", files: local("[tools]\nnodejs = \"20\"\n"), name: "node", want: node20, shim: shim},
		{about: "a dotted key", files: local("tools.node = \"20\"\n"), name: "node", want: node20, shim: shim},
		{about: "with everything around it", name: "node", want: node20, shim: shim, files: local(
			"min_version = \"2024\"\n# [tools]\n[env]\nA = { file = \".env\" }\n[tasks.x]\nrun = '''\n[tools]\nnode = \"9\"\n'''\nother = \"\"\"\nnode = \\\"9\\\" \"\"\"\n[tools] # ours\nnode = \"20\" # it\ngo = { version = \"1\" }\n[[x]]\nnode = 1\n")},
		{about: "what counts first", files: files(local("[tools]\nnode = \"1\"\n"), map[string]string{"home/proj/mise.local.toml": "[tools]\nnode = \"20\"\n"}), name: "node", want: node20, shim: shim},
		{about: "a fragment", files: map[string]string{"home/.config/mise/conf.d/b.toml": "[tools]\nnode = \"20\"\n", "home/.config/mise/config.toml": ""}, name: "node", want: node20, shim: shim},
		{about: ".tool-versions", files: map[string]string{"home/proj/.tool-versions": "nodejs 20\n"}, name: "node", want: node20, shim: shim},
		{about: "the variable", env: []string{"MISE_NODE_VERSION=20"}, name: "node", want: node20, shim: shim},
		{about: "latest, and a folder around it", name: "rg", want: data + "installs/ripgrep/14.1.0/ripgrep-14-x/rg", shim: data + "shims/rg"},
		{about: "a tool of a backend", name: "prettier", want: data + "installs/npm-prettier/3.1.0/bin/prettier", shim: data + "shims/prettier"},
		{about: "a tool's second program", name: "npm", want: data + "installs/node/22.1.0/bin/npm", shim: data + "shims/npm"},
		{about: "system", files: local("[tools]\nnode = \"system\"\n"), name: "node", want: "usr/node", shim: shim},
		{about: "nothing configured", files: map[string]string{"home/.config/mise/config.toml": ""}, name: "node", want: "usr/node", shim: shim},
		{about: "another folder of data", env: []string{"MISE_DATA_DIR=ROOT/data"}, name: "ROOT/usr2/node", want: "data/installs/node/22.5.0/bin/node", shim: "usr2/node", files: map[string]string{
			"usr2/node": "-> ../home/.local/bin/mise", "data/installs/node/22.5.0/bin/node*": elf,
		}},
		{about: "a tool that says more, and has not got it", files: local("[tools]\ngo = { version = \"1\" }\n[tools.python]\nversion = \"3\"\n"), name: "node", want: node22, shim: shim},

		{about: "a tool that says more", files: local("[tools]\nnode = { version = \"20\" }\n"), name: "node", err: `says of "node" more than a version`},
		{about: "a table of a tool", files: local("[tools.node]\nversion = \"20\"\n"), name: "node", err: `says of "node" more than a version`},
		{about: "a tool said twice", files: local("[tools]\nnode = \"20\"\nnode = \"22\"\n"), name: "node", err: `says of "node" more than a version`},
		{about: "a template", files: local("[tools]\nnode = \"{{ env.X }}\"\n"), name: "node", err: "not a plain word"},
		{about: "an escape", files: local("[tools]\nnode = \"2\\u0030\"\n"), name: "node", err: "more than a version"},
		{about: "a table of tools in a line", files: local("tools = { node = \"20\" }\n"), name: "node", err: "its tools are not a table"},
		{about: "not installed", files: local("[tools]\nnode = \"18\"\n"), name: "node", err: `version "18" of "node", which`},
		{about: "a path", files: local("[tools]\nnode = \"path:/x\"\n"), name: "node", err: "not a plain word"},
		{about: "out of the folder", files: local("[tools]\nnode = \"../../../../ws\"\n"), name: "node", err: "not a plain word"},
		{about: "no TOML", files: local("[tools\nnode = \"20\"\n"), name: "node", err: "cannot be understood"},
		{about: "two tools that have it", files: local("[tools]\nnpm = \"10\"\n"), name: "npm", err: "more than one of its tools"},
		{about: "an environment", env: []string{"MISE_ENV=ci"}, name: "node", err: "MISE_ENV is set"},
		{about: "a version in the workspace", name: "node", err: "is in the pack or the workspace", files: files(local("[tools]\nnode = \"evil\"\n"), map[string]string{
			"home/ws/bin/node*": elf, data + "installs/node/evil": "-> ROOT/home/ws",
		})},
	})
}

func TestVolta(t *testing.T) {
	const image = "home/.volta/tools/image/"
	base := map[string]string{
		"home/.volta/bin/volta-shim*":              elf,
		"home/.volta/bin/node":                     "-> volta-shim",
		"home/.volta/bin/npm":                      "-> volta-shim",
		"home/.volta/bin/yarn":                     "-> volta-shim",
		"home/.volta/bin/pnpm":                     "-> volta-shim",
		"home/.volta/bin/tsc":                      "-> volta-shim",
		"home/.volta/bin/lost":                     "-> volta-shim",
		"home/.volta/tools/user/platform.json":     `{"node": {"runtime": "22.1.0", "npm": null}, "pnpm": null, "yarn": "1.22.0"}`,
		"home/.volta/tools/user/bins/tsc.json":     `{"name": "tsc", "package": "@ts/typescript", "version": "5.0.0", "platform": {"node": "20.0.0"}, "manager": "Npm"}`,
		image + "node/22.1.0/bin/node*":            elf,
		image + "node/22.1.0/bin/npm*":             elf,
		image + "node/20.0.0/bin/node*":            elf,
		image + "npm/9.0.0/bin/npm*":               elf,
		image + "yarn/1.22.0/bin/yarn*":            elf,
		image + "packages/@ts/typescript/bin/tsc*": elf,
		"usr/node*": elf,
	}
	bin := func(name string) string { return "home/.volta/bin/" + name }
	local := func(text string) map[string]string { return map[string]string{"home/proj/package.json": text} }
	testShims(t, []string{"home/.volta/bin", "usr"}, base, []shimCase{
		{about: "the default", name: "node", want: image + "node/22.1.0/bin/node", shim: bin("node")},
		{about: "npm of Node", name: "npm", want: image + "node/22.1.0/bin/npm", shim: bin("npm")},
		{about: "yarn", name: "yarn", want: image + "yarn/1.22.0/bin/yarn", shim: bin("yarn")},
		{about: "the project", files: local(`{"volta": {"node": "20.0.0", "npm": "9.0.0"}}`), name: "node", want: image + "node/20.0.0/bin/node", shim: bin("node")},
		{about: "the project's npm", files: local(`{"volta": {"node": "20.0.0", "npm": "9.0.0"}}`), name: "npm", want: image + "npm/9.0.0/bin/npm", shim: bin("npm")},
		{about: "yarn besides the project's", files: local(`{"volta": {"node": "20.0.0"}}`), name: "yarn", want: image + "yarn/1.22.0/bin/yarn", shim: bin("yarn")},
		{about: "a project that pins nothing", files: local(`{"name": "x"}`), name: "node", want: image + "node/22.1.0/bin/node", shim: bin("node")},
		{about: "a package", name: "tsc", want: image + "packages/@ts/typescript/bin/tsc", shim: bin("tsc")},
		{about: "no default", files: map[string]string{"home/.volta/tools/user/platform.json": "{}"}, name: "node", want: "usr/node", shim: bin("node")},

		{about: "the project's own", files: local(`{"devDependencies": {"@ts/typescript": "5"}}`), name: "tsc", err: "the project has its own copy"},
		{about: "versions from elsewhere", files: local(`{"volta": {"extends": "../x.json"}}`), name: "node", err: "from elsewhere"},
		{about: "not installed", files: local(`{"volta": {"node": "18.0.0"}}`), name: "node", err: `version "18.0.0" of node`},
		{about: "out of the folder", files: local(`{"volta": {"node": "../../../../ws"}}`), name: "node", err: "not a plain word"},
		{about: "no JSON", files: local("secret"), name: "node", err: "is not the JSON that it should be"},
		{about: "another type", files: local(`{"volta": {"node": 20}}`), name: "node", err: "is not the JSON that it should be"},
		{about: "unknown", name: "lost", err: `it leaves "lost" to the rest of PATH`},
		{about: "a package out of the folder", files: map[string]string{"home/.volta/tools/user/bins/tsc.json": `{"name": "tsc", "package": "../../../../ws"}`}, name: "tsc", err: "names no package"},
		{about: "a package that is none", files: map[string]string{"home/.volta/tools/user/bins/tsc.json": `{"name": "tsc", "package": "."}`}, name: "tsc", err: "is not installed"},
	})
}

func TestRustup(t *testing.T) {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "i686"}[runtime.GOARCH]
	if arch == "" {
		t.Skip("toolchains for this machine are not known")
	}
	host := "-" + arch + "-unknown-linux-gnu"
	const chains, shim = "home/.rustup/toolchains/", "home/.cargo/bin/cargo"
	stable := chains + "stable" + host + "/bin/cargo"
	base := map[string]string{
		"home/.cargo/bin/rustup*":           elf,
		shim:                                "-> rustup",
		"home/.cargo/bin/cargo-fmt":         "-> rustup",
		"home/.cargo/bin/rg*":               elf,
		stable + "*":                        elf,
		chains + "stable" + host + "/lib/x": "",
		chains + "nightly-2024-01-01" + host + "/bin/cargo*": elf,
		chains + "nightly" + host + "/bin/cargo*":            elf,
		chains + "1.70.1" + host + "/bin/cargo*":             elf,
		chains + "mine/bin/cargo*":                           elf,
		"home/.rustup/settings.toml":                         "version = \"12\"\ndefault_toolchain = \"stable" + host + "\"\n\n[overrides]\n\"ROOT/home/over\" = \"nightly" + host + "\"\n",
	}
	testShims(t, []string{"home/.cargo/bin"}, base, []shimCase{
		{about: "the default", name: "cargo", want: stable, shim: shim},
		{about: "not a shim", name: "rg", want: "home/.cargo/bin/rg"},
		{about: "the variable", env: []string{"RUSTUP_TOOLCHAIN=mine"}, name: "cargo", want: chains + "mine/bin/cargo", shim: shim},
		{about: "a channel", files: map[string]string{"home/proj/rust-toolchain": "nightly\n"}, name: "cargo", want: chains + "nightly" + host + "/bin/cargo", shim: shim},
		{about: "TOML", files: map[string]string{"home/proj/rust-toolchain.toml": "[toolchain]\nchannel = \"nightly-2024-01-01\"\ncomponents = [\n\"rustfmt\"]\n"}, name: "cargo", want: chains + "nightly-2024-01-01" + host + "/bin/cargo", shim: shim},
		{about: "a folder above", files: map[string]string{"home/rust-toolchain": "[toolchain]\nchannel = \"mine\"\n"}, name: "cargo", want: chains + "mine/bin/cargo", shim: shim},
		{about: "a hard link", name: "rustc", want: chains + "mine/bin/rustc", shim: "home/.cargo/bin/rustc", env: []string{"RUSTUP_TOOLCHAIN=mine"}, files: map[string]string{chains + "mine/bin/rustc*": elf}, more: func(dir string) error {
			return os.Link(filepath.Join(dir, "home/.cargo/bin/rustup"), filepath.Join(dir, "home/.cargo/bin/rustc"))
		}},
		{about: "an override", files: map[string]string{"home/.rustup/settings.toml": "[overrides]\n\"ROOT/home/proj\" = \"mine\"\n"}, name: "cargo", want: chains + "mine/bin/cargo", shim: shim},

		{about: "not installed", files: map[string]string{"home/proj/rust-toolchain": "1.70\n"}, name: "cargo", err: `toolchain "1.70", which`},
		{about: "a path", files: map[string]string{"home/proj/rust-toolchain.toml": "[toolchain]\npath = \"/x\"\n"}, name: "cargo", err: "names no channel"},
		{about: "out of the folder", files: map[string]string{"home/proj/rust-toolchain": "../../ws\n"}, name: "cargo", err: "not a plain word"},
		{about: "a component that is not there", name: "cargo-fmt", err: "has no \"cargo-fmt\""},
		{about: "no settings", files: map[string]string{"home/.rustup/settings.toml": ""}, name: "cargo", err: "no toolchain is set"},
	})
}

func TestShimsLeadOn(t *testing.T) {
	dir := plantShims(t, map[string]string{
		"home/.pyenv/shims/node*":              pyenvShim,
		"home/.pyenv/versions/1/bin/x":         "",
		"home/.pyenv/version":                  "1",
		"home/.asdf/shims/node*":               asdfShim("node", "nodejs 1"),
		"home/.tool-versions":                  "nodejs system",
		"home/.volta/bin/volta-shim*":          elf,
		"home/.volta/bin/node":                 "-> volta-shim",
		"home/.volta/tools/user/platform.json": "",
		"usr/node*":                            elf,
	})
	o := (&shimCase{}).options(dir, []string{"home/.pyenv/shims", "home/.asdf/shims", "home/.volta/bin", "usr"})
	p, err := Lookup("node", o)
	if want := filepath.Join(dir, "usr/node"); err != nil || p.Path != want || p.Shim != filepath.Join(dir, "home/.pyenv/shims/node") {
		t.Errorf("Lookup through three managers = %q by %q, %v, want %q", p.Path, p.Shim, err, want)
	}
}

func TestPathDirs(t *testing.T) {
	for _, tt := range []struct {
		p    Program
		want []string
	}{
		{Program{Path: "/usr/bin/x"}, nil},
		{Program{Path: "/home/x/bin/x"}, nil},
		{Program{Path: "/home/x/bin/x", Shim: "/s/x"}, []string{"/home/x/bin"}},
		{Program{Path: "/home/x/bin/x", Interpreters: []Interpreter{{Path: "/bin/sh"}}}, nil},
		{Program{Path: "/home/x/bin/x", Interpreters: []Interpreter{{Path: "/home/y/bin/y"}}}, []string{"/home/y/bin"}},
		{Program{Path: "/home/x/bin/x", Interpreters: []Interpreter{{Path: "/home/x/bin/y"}}, Shim: "/s/x"}, []string{"/home/x/bin"}},
		// Its folder may have another program of the interpreter's name.
		{Program{Path: "/home/x/bin/x", Interpreters: []Interpreter{{Path: "/usr/bin/y"}}, Shim: "/s/x"}, []string{"/usr/bin", "/home/x/bin"}},
		{Program{Path: "/usr/bin/x", Interpreters: []Interpreter{{Path: "/usr/bin/y"}}, Shim: "/s/x"}, nil},
		{Program{Path: "/home/x/bin/x", Interpreters: []Interpreter{{Path: "/home/y:/tmp/bin/y"}}, Shim: "/s/x"}, []string{"/home/x/bin"}},
	} {
		if got := tt.p.PathDirs(); !slices.Equal(got, tt.want) {
			t.Errorf("PathDirs of %+v = %q, want %q", tt.p, got, tt.want)
		}
	}
}

// This machine's pyenv agrees with us.
func TestRealPyenv(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Skip("no home: ", err)
	}
	root := cmp.Or(os.Getenv("PYENV_ROOT"), filepath.Join(home, ".pyenv"))
	shims, err := os.ReadDir(filepath.Join(root, "shims"))
	pyenv := filepath.Join(root, "bin", "pyenv")
	if err != nil || !file.Runnable(pyenv) || len(shims) == 0 {
		t.Skip("no pyenv in ", root)
	}
	dir := t.TempDir()
	o := LookupOptions{Path: os.Getenv("PATH"), Environ: os.Environ(), Dir: dir}
	for _, name := range []string{"python3", "python", "pip"} {
		cmd := exec.Command(pyenv, "which", name)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			t.Logf("pyenv which %q: %v", name, err)
			continue
		}
		want := strings.TrimSpace(string(out))
		p, err := Lookup(filepath.Join(root, "shims", name), o)
		if err != nil || p.Path != want {
			t.Errorf("Lookup(%q) = %q, %v, want %q", name, p.Path, err, want)
		}
	}
}
