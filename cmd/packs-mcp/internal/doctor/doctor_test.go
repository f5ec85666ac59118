package doctor

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// examined returns what doctor prints if some levels are not available.
func examined(t *testing.T, require string, asJSON bool, skip ...sandbox.Level) (out string, err error) {
	t.Helper()
	dir := t.TempDir()
	var stdout, stderr bytes.Buffer
	a := &app{&cli.Env{
		Environ: []string{"PACKS_MCP_HOME=" + filepath.Join(dir, "state"), "HOME=" + dir, "PACKS_MCP_SANDBOX_REQUIRE=" + require},
		Stdin:   strings.NewReader(""), Stdout: &stdout, Stderr: &stderr,
	}}
	err = a.doctor(t.Context(), runner.Options{Skip: skip}, asJSON)
	if stderr.Len() > 0 {
		t.Errorf("doctor prints on standard error: %s", &stderr)
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 0 {
		t.Errorf("doctor left %v behind", entries)
	}
	return stdout.String(), err
}

func TestDoctorWithoutConfinement(t *testing.T) {
	none := []sandbox.Level{sandbox.LevelFull, sandbox.LevelPartial}
	for _, tt := range []struct {
		require string
		ok      bool
		want    []string
	}{
		{"none", true, []string{
			"\nsandbox   level none; required is none\n",
			"\n            none     nothing confines what runs but limits on its time and\n",
			"\nAn approved call can run here.\n",
		}},
		{"partial", false, []string{
			"\nsandbox   level none, which is less than what is required: partial\n",
			"\nstops runs: runs are confined at level none here, and the configuration\n  requires partial\n",
			"\nNo call can run here as it is now.\n",
		}},
	} {
		t.Run(tt.require, func(t *testing.T) {
			out, err := examined(t, tt.require, false, none...)
			if (err == nil) != tt.ok {
				t.Errorf("doctor() = %v, want ok %v", err, tt.ok)
			}
			for _, want := range tt.want {
				if !strings.Contains(out, want) {
					t.Errorf("doctor() lacks %q:\n%s", want, out)
				}
			}
			for line := range strings.Lines(out) {
				if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > 80 && !strings.Contains(line, "/") {
					t.Errorf("a line has %d characters: %q", n, line)
				}
			}
			out, err = examined(t, tt.require, true, none...)
			if (err == nil) != tt.ok {
				t.Errorf("doctor() as JSON = %v, want ok %v", err, tt.ok)
			}
			var c checkup
			if err := json.Unmarshal([]byte(out), &c); err != nil {
				t.Fatal(err)
			}
			if c.OK != tt.ok || c.Sandbox.Met != tt.ok || c.Sandbox.Level != sandbox.LevelNone || len(c.Stops) != map[bool]int{true: 0, false: 1}[tt.ok] {
				t.Errorf("doctor() = %+v, want ok %v", c, tt.ok)
			}
		})
	}
}

// Levels that are not available are named as such, and the next one is found.
func TestDoctorPartial(t *testing.T) {
	out, err := examined(t, "full", true, sandbox.LevelFull)
	if err == nil {
		t.Errorf("doctor() is fine at a level below full, want an error")
	}
	var c checkup
	if err := json.Unmarshal([]byte(out), &c); err != nil {
		t.Fatal(err)
	}
	if c.Sandbox.Level == sandbox.LevelFull || c.Sandbox.Met {
		t.Errorf("doctor() = %+v, want less than full", c.Sandbox)
	}
	for _, trial := range c.Sandbox.Trials {
		if trial.Works != (trial.Level == c.Sandbox.Level) {
			t.Errorf("trial %+v beside level %v", trial, c.Sandbox.Level)
		}
	}
}

// NW-17: if the network is not restricted for runs, doctor says so, and only then.
func TestDoctorNetworkOpen(t *testing.T) {
	const gap = "\n            gap: the network is not kept from runs;"
	for _, tt := range []struct {
		level sandbox.Level
		kept  bool
		want  bool
	}{
		{sandbox.LevelPartial, false, true}, {sandbox.LevelPartial, true, false}, {sandbox.LevelFull, true, false},
	} {
		c := &checkup{Sandbox: checkedSandbox{Level: tt.level, Met: true, NetworkEnforced: tt.kept, Trials: []trial{{Level: tt.level, Works: true}}}}
		var out bytes.Buffer
		if err := printCheckup(&out, c); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), gap); got != tt.want {
			t.Errorf("printCheckup(%+v) has the gap: %v, want %v:\n%s", c.Sandbox, got, tt.want, &out)
		}
	}
}

func TestDoctorKeepsCommandsOnOneLine(t *testing.T) {
	long := "`" + strings.Repeat("sudo sysctl ", 12) + "`"
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"a b  c", []string{"a", "b", "c"}},
		{"run " + long + ", or not", []string{"run", long + ",", "or", "not"}},
		{`see "/a b/c" now`, []string{"see", `"/a b/c"`, "now"}},
		{"an open ` quote", []string{"an", "open", "` quote"}},
		{"", nil},
	} {
		if diff := cmp.Diff(tt.want, words(tt.text)); diff != "" {
			t.Errorf("words(%q) (-want +got):\n%s", tt.text, diff)
		}
	}
}

func TestClientFiles(t *testing.T) {
	home, project := filepath.Join(t.TempDir(), "home"), filepath.Join(t.TempDir(), "project")
	for _, goos := range []string{"linux", "darwin", "windows"} {
		place := &clients.Place{GOOS: goos, Home: home, Project: project}
		for _, c := range clients.All() {
			files := c.Files(place, clients.ScopeUser)
			if len(files) == 0 {
				t.Errorf("on %s, no file of %s is known", goos, c.Name)
			}
			for _, f := range append(files, c.Files(place, clients.ScopeProject)...) {
				if !filepath.IsAbs(f) {
					t.Errorf("on %s, the file of %s is %q, want an absolute path", goos, c.Name, f)
				}
			}
		}
	}
	for _, c := range clients.All() {
		if files := c.Files(&clients.Place{GOOS: "linux"}, clients.ScopeUser); len(files) != 0 {
			t.Errorf("files of %s without a home folder = %v, want none", c.Name, files)
		}
	}
	elsewhere := filepath.Join(t.TempDir(), "codex")
	codex, _ := clients.ByID("codex")
	if files := codex.Files(&clients.Place{GOOS: "linux", Environ: []string{"CODEX_HOME=" + elsewhere}, Home: home}, clients.ScopeUser); files[0] != filepath.Join(elsewhere, "config.toml") {
		t.Errorf("CODEX_HOME is not heeded: %v", files)
	}
}
