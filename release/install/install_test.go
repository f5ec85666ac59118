// Package install tests install.sh with a server on this machine, as it is used: piped
// into a shell, and with releases that are good and bad.
package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// archive returns an archive of two programs, which are scripts.
func archive(t *testing.T, says string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, name := range []string{"LICENSE", "packs-mcp", "packs-mcp-sigstore"} {
		text := "#!/bin/sh\necho '" + says + "'\n"
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const name = "packs-mcp_1.2.3_" + runtime.GOOS + "_" + runtime.GOARCH + ".tar.gz"

func sumOf(content []byte) string { return fmt.Sprintf("%x", sha256.Sum256(content)) }

// install runs install.sh against a release, with the programs of the given folder before
// those of the system. :: path below /releases → content
func install(t *testing.T, release map[string]string, programs map[string]string, env ...string) (home, out string, err error) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("install.sh is for Linux and macOS")
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		content, ok := release[strings.TrimPrefix(r.URL.Path, "/releases/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, content)
	}))
	defer server.Close()
	home = t.TempDir()
	bin := t.TempDir()
	for name, text := range programs {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script, err := os.Open("../../install.sh")
	if err != nil {
		t.Fatal(err)
	}
	defer script.Close()
	cmd := exec.Command("sh")
	cmd.Stdin = script
	cmd.Dir = t.TempDir()
	cmd.Env = append([]string{"HOME=" + home, "PATH=" + bin + ":/usr/bin:/bin", "TMPDIR=" + t.TempDir(), "PACKS_MCP_URL=" + server.URL + "/releases", "no_proxy=*"}, env...)
	text, err := cmd.CombinedOutput()
	return home, string(text), err
}

// good is a release as it should be.
func good(t *testing.T) map[string]string {
	content := archive(t, "packs-mcp v1.2.3")
	sums := sumOf(content) + "  " + name + "\n" + strings.Repeat("0", 64) + "  packs-mcp_1.2.3_plan9_mips.tar.gz\n"
	all := make(map[string]string)
	for _, base := range []string{"latest/download/", "download/v1.2.3/"} {
		all[base+"checksums.txt"] = sums
		all[base+"checksums.txt.sigstore.json"] = "{}"
		all[base+name] = string(content)
	}
	return all
}

func TestGoodRelease(t *testing.T) {
	for _, env := range [][]string{nil, {"PACKS_MCP_VERSION=1.2.3"}, {"PACKS_MCP_VERSION=v1.2.3"}} {
		home, out, err := install(t, good(t), nil, env...)
		if err != nil {
			t.Fatalf("%v: %v\n%s", env, err, out)
		}
		for _, program := range []string{"packs-mcp", "packs-mcp-sigstore"} {
			if said, err := exec.Command(filepath.Join(home, ".local/bin", program)).Output(); err != nil || string(said) != "packs-mcp v1.2.3\n" {
				t.Errorf("%s says %q, %v", program, said, err)
			}
		}
		if !strings.Contains(out, "has the checksum of the release") {
			t.Errorf("it said:\n%s", out)
		}
	}
}

// A folder of one's own, with an older version in it.
func TestReplaces(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "packs-mcp"), []byte("old"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, out, err := install(t, good(t), nil, "PACKS_MCP_DIR="+dir)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "packs-mcp")); err != nil || string(text) == "old" {
		t.Errorf("the older version is still there: %v", err)
	}
}

// Whatever is wrong with a release, nothing of it is installed.
func TestBadReleases(t *testing.T) {
	for _, c := range []struct {
		name     string
		change   func(map[string]string)
		programs map[string]string
		env      []string
		says     string
	}{
		{name: "a changed archive", change: func(r map[string]string) { r["latest/download/"+name] = string(archive(t, "evil")) }, says: "checksums.txt says"},
		{name: "a cut archive", change: func(r map[string]string) { r["latest/download/"+name] = r["latest/download/"+name][:40] }, says: "checksums.txt says"},
		{name: "no checksums", change: func(r map[string]string) { delete(r, "latest/download/checksums.txt") }, says: "cannot download"},
		{name: "empty checksums", change: func(r map[string]string) { r["latest/download/checksums.txt"] = "" }, says: "exactly one archive"},
		{name: "a page in place of checksums", change: func(r map[string]string) { r["latest/download/checksums.txt"] = "<html>404</html>" }, says: "exactly one archive"},
		{name: "two checksums", change: func(r map[string]string) {
			r["latest/download/checksums.txt"] += strings.Repeat("1", 64) + "  " + strings.Replace(name, "1.2.3", "1.2.4", 1) + "\n"
		}, says: "exactly one archive"},
		{name: "a path in the name", change: func(r map[string]string) {
			r["latest/download/checksums.txt"] = strings.Replace(r["latest/download/checksums.txt"], name, "packs-mcp_../../x_linux_amd64.tar.gz", 1)
		}, says: "exactly one archive"},
		{name: "no archive", change: func(r map[string]string) { delete(r, "latest/download/"+name) }, says: "cannot download"},
		{name: "an unknown version", env: []string{"PACKS_MCP_VERSION=9.9.9"}, says: "cannot download"},
		{name: "another version than asked", change: func(r map[string]string) {
			r["download/v1.0.0/checksums.txt"] = r["latest/download/checksums.txt"]
		}, env: []string{"PACKS_MCP_VERSION=1.0.0"}, says: "names " + name},
		{name: "a system without a program", programs: map[string]string{"uname": `case $1 in -s) echo Plan9 ;; *) echo x86_64 ;; esac`}, says: "no packs-mcp for Plan9"},
		{name: "a processor without a program", programs: map[string]string{"uname": `case $1 in -s) echo Linux ;; *) echo sparc64 ;; esac`}, says: "no packs-mcp for the processor sparc64"},
		{name: "plain HTTP", env: []string{"PACKS_MCP_URL=http://example.invalid/releases"}, says: "not an https address"},
		{name: "a signature of somebody else", programs: map[string]string{"cosign": "exit 1"}, says: "not the release workflow's"},
		{name: "no signature", change: func(r map[string]string) { delete(r, "latest/download/checksums.txt.sigstore.json") }, programs: map[string]string{"cosign": "exit 0"}, says: "no signature"},
		{name: "no cosign where it is required", env: []string{"PACKS_MCP_SIGNATURE=require"}, says: "no cosign"},
	} {
		t.Run(c.name, func(t *testing.T) {
			release := good(t)
			if c.change != nil {
				c.change(release)
			}
			home, out, err := install(t, release, c.programs, c.env...)
			if err == nil {
				t.Errorf("it succeeded:\n%s", out)
			}
			for _, want := range []string{c.says, "nothing was installed", "hint: "} {
				if !strings.Contains(out, want) {
					t.Errorf("it did not say %q:\n%s", want, out)
				}
			}
			if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
				t.Errorf("it left %v, %v", left, err)
			}
		})
	}
}

// Where there is cosign, it is asked about this repository's release workflow.
func TestSignature(t *testing.T) {
	home, out, err := install(t, good(t), map[string]string{"cosign": `printf '%s\n' "$@" >"$HOME/asked"`})
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	asked, err := os.ReadFile(filepath.Join(home, "asked"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"verify-blob\n", "https://token.actions.githubusercontent.com\n", `^https://github\.com/packs-mcp/packs-mcp/\.github/workflows/release\.yml@refs/tags/v[0-9]` + "\n"} {
		if !strings.Contains(string(asked), want) {
			t.Errorf("cosign was not asked with %q:\n%s", want, asked)
		}
	}
}

// A script that was cut off on its way does nothing.
func TestCutScript(t *testing.T) {
	script, err := os.ReadFile("../../install.sh")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []int{4, 3, 2} {
		home := t.TempDir()
		cmd := exec.Command("sh")
		cmd.Stdin = bytes.NewReader(script[:len(script)-len(script)/part])
		cmd.Env = []string{"HOME=" + home, "PATH=/usr/bin:/bin", "PACKS_MCP_URL=http://127.0.0.1:1"}
		out, _ := cmd.CombinedOutput() // it fails, or ends early
		if left, err := os.ReadDir(home); err != nil || len(left) > 0 {
			t.Errorf("it left %v, %v:\n%s", left, err, out)
		}
	}
}
