package sandbox

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

func TestBaseEnv(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows keeps names of its own")
	}
	bin, pack := t.TempDir(), t.TempDir()
	got := BaseEnv([]string{
		"USER=me", "HOME=/home/me", "LANG=de_DE.UTF-8", "LC_TIME=C", "LCX=1", "LC_SECRET=x", "LC_=x", "LC_ALL_TOKEN=x", "TZ=UTC", "TERM=xterm-256color", "SHELL=/bin/zsh",
		"PATH=" + bin + ":.:relative:" + pack + "/bin:" + bin, "GITHUB_TOKEN=x", "LD_PRELOAD=x", "NODE_OPTIONS=x", "USER=other", "broken", "path=/x",
	}, EnvOptions{Home: "/ws", Exclude: []string{pack}})
	want := []string{"HOME=/ws", "LANG=de_DE.UTF-8", "LC_TIME=C", "PATH=" + bin, "TERM=dumb", "TZ=UTC", "USER=other"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("BaseEnv differs (-want +got):\n%s", diff)
	}
	if got := BaseEnv([]string{"PATH=.:x"}, EnvOptions{}); !cmp.Equal(got, []string{"TERM=dumb"}) {
		t.Errorf("BaseEnv without a usable PATH = %q, want no PATH at all", got)
	}
}

func TestMergeEnv(t *testing.T) {
	got := MergeEnv([]string{"B=1", "A=1"}, nil, []string{"A=2=3", "C="}, []string{"C=x"})
	if diff := cmp.Diff([]string{"A=2=3", "B=1", "C=x"}, got); diff != "" {
		t.Errorf("MergeEnv differs (-want +got):\n%s", diff)
	}
	if got := MergeEnv(); got == nil {
		t.Error("MergeEnv() = nil, which os/exec takes for this process's environment")
	}
}

func TestFilterPath(t *testing.T) { // RP-06
	if runtime.GOOS == "windows" {
		t.Skip("modes are those of Unix")
	}
	dir := t.TempDir()
	mk := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, group := mk("good", 0o755), mk("group", 0o775)
	shared, sticky := mk("shared", 0o777), mk("sticky", 0o777|os.ModeSticky)
	pack := mk("pack", 0o755)
	inPack := mk("pack/bin", 0o755)
	sibling := mk("pack-tools", 0o755)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	link, intoPack := filepath.Join(dir, "link"), filepath.Join(dir, "intopack")
	for name, target := range map[string]string{link: good, intoPack: inPack} {
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	path := strings.Join([]string{
		"", ".", "bin", "..", "./x", good, good + "/", group, shared, sticky, pack, inPack, sibling, file,
		filepath.Join(dir, "gone"), link, intoPack, good + "/../shared",
	}, ":")
	want := strings.Join([]string{good, group, sibling, link}, ":")
	if got := program.FilterPath(path, []string{pack, ""}); got != want {
		t.Errorf("FilterPath(%q) =\n%q, want\n%q", path, got, want)
	}
	if got := program.FilterPath(path, []string{intoPack}); strings.Contains(got, inPack) {
		t.Errorf("FilterPath, excluding a link to %q, has it: %q", inPack, got)
	}
}
