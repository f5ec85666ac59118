package release

import (
	"debug/buildinfo"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// published returns the names of a release's files at GitHub.
func published(version string) []string {
	var all []string
	for _, system := range systems() {
		ext := ".tar.gz"
		if strings.HasPrefix(system, "windows") {
			ext = ".zip"
		}
		all = append(all, "packs-mcp_"+version+"_"+system+ext)
		for _, program := range programs() {
			all = append(all, program+"_"+version+"_"+system+".cdx.json")
		}
	}
	for _, ext := range []string{".deb", ".rpm", ".apk"} {
		for _, arch := range []string{"amd64", "arm64"} {
			all = append(all, "packs-mcp_"+version+"_linux_"+arch+ext)
		}
	}
	for _, system := range []string{"linux-amd64", "darwin-universal", "windows-amd64"} {
		all = append(all, "packs-mcp-"+system+".mcpb")
	}
	slices.Sort(all)
	return all
}

// A release has these files with these names, on which documents and other programs rely.
func TestNames(t *testing.T) {
	dir := dist(t)
	m := readMetadata(t, dir)
	text, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(text)) {
		_, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		got = append(got, name)
	}
	slices.Sort(got)
	if diff := cmp.Diff(published(m.Version), got); diff != "" {
		t.Errorf("checksums.txt (-want +got):\n%s", diff)
	}
}

// Each URL in the cask, the Scoop manifest and server.json names a file of this release at
// GitHub, and the right one.
func TestAddresses(t *testing.T) {
	dir := dist(t)
	m := readMetadata(t, dir)
	base := "https://github.com/packs-mcp/packs-mcp/releases/download/v" + m.Version + "/"
	archive := func(system, ext string) string { return base + "packs-mcp_" + m.Version + "_" + system + ext }
	download := regexp.MustCompile(`https://[^"\s]*/releases/download/[^"\s]*`)
	for file, want := range map[string][]string{
		"homebrew/Casks/packs-mcp.rb": {
			archive("darwin_amd64", ".tar.gz"), archive("darwin_arm64", ".tar.gz"), archive("linux_amd64", ".tar.gz"), archive("linux_arm64", ".tar.gz"),
		},
		"scoop/packs-mcp.json": {archive("windows_amd64", ".zip"), archive("windows_arm64", ".zip")},
		"server.json":          {base + "packs-mcp-darwin-universal.mcpb", base + "packs-mcp-linux-amd64.mcpb", base + "packs-mcp-windows-amd64.mcpb"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Error(err)
			continue
		}
		got := download.FindAllString(strings.ReplaceAll(string(text), "#{version}", m.Version), -1)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("addresses in %s (-want +got):\n%s", file, diff)
		}
		for _, address := range got {
			if _, err := os.Stat(filepath.Join(dir, path.Base(address))); err != nil {
				t.Errorf("%s names %s: %v", file, address, err)
			}
		}
	}
}

// serveReleases serves a release as GitHub does: by its version, and as the latest.
func serveReleases(t *testing.T, dir, version string, change func(name string, content []byte) []byte) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := path.Base(r.URL.Path)
		folder := path.Dir(r.URL.Path)
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || folder != "/releases/latest/download" && folder != "/releases/download/v"+version {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(change(name, content))
	}))
	t.Cleanup(server.Close)
	return server.URL + "/releases"
}

// install.sh installs this release, and the program reports what it was built from. It
// refuses an archive in which one bit differs.
func TestInstall(t *testing.T) {
	dir := dist(t)
	m := readMetadata(t, dir)
	if runtime.GOOS != "linux" {
		t.Skip("this is for Linux, whose programs a release has")
	}
	script, err := os.ReadFile("../install.sh")
	if err != nil {
		t.Fatal(err)
	}
	archive := "packs-mcp_" + m.Version + "_linux_" + runtime.GOARCH + ".tar.gz"
	install := func(t *testing.T, home string, change func(string, []byte) []byte, env ...string) (string, error) {
		cmd := exec.Command("sh")
		cmd.Stdin = strings.NewReader(string(script))
		cmd.Env = append([]string{"HOME=" + home, "PATH=/usr/bin:/bin", "no_proxy=*", "PACKS_MCP_URL=" + serveReleases(t, dir, m.Version, change)}, env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	same := func(_ string, content []byte) []byte { return content }

	for _, env := range [][]string{nil, {"PACKS_MCP_VERSION=" + m.Version}} {
		home := t.TempDir()
		if out, err := install(t, home, same, env...); err != nil {
			t.Fatalf("%v: %v\n%s", env, err, out)
		}
		program := filepath.Join(home, ".local/bin/packs-mcp")
		text, err := exec.Command(program, "version", "--json").Output()
		if err != nil {
			t.Fatal(err)
		}
		type module struct{ Path, Version, Sum string }
		type built struct {
			Version, Commit, Date, Go, OS, Arch string
			Modules                             []module
		}
		var got built
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		info, err := buildinfo.ReadFile(program)
		if err != nil {
			t.Fatal(err)
		}
		want := built{"v" + m.Version, m.Commit, commitTime(t, m.Commit).UTC().Format(time.RFC3339), info.GoVersion, "linux", runtime.GOARCH, nil}
		for _, dep := range info.Deps {
			want.Modules = append(want.Modules, module{dep.Path, dep.Version, dep.Sum})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("version --json (-want +got):\n%s", diff)
		}
		if _, err := buildinfo.ReadFile(filepath.Join(home, ".local/bin/packs-mcp-sigstore")); err != nil {
			t.Error(err)
		}
	}

	home := t.TempDir()
	out, err := install(t, home, func(name string, content []byte) []byte {
		if name == archive {
			content[len(content)/2] ^= 1
		}
		return content
	})
	if err == nil || !strings.Contains(out, "checksums.txt says") || !strings.Contains(out, "nothing was installed") {
		t.Errorf("a changed archive: %v\n%s", err, out)
	}
	if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}
