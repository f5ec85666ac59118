package upstream

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A Repo is a repository, with a work tree, that the real git serves.
type Repo struct {
	Dir string // its folder, which has .git
	URL string // over http, from the loopback interface

	t testing.TB
}

// NewRepo creates a repository without commits. wrap, which may be nil, wraps its server's
// handler.
func NewRepo(t testing.TB, wrap func(http.Handler) http.Handler) *Repo {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		Absent(t, "git", "not found")
	}
	dir := t.TempDir()
	r := &Repo{t: t, Dir: filepath.Join(dir, "acme", "packs.git")}
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.Git("init", "--quiet", "--initial-branch=main")
	r.Git("config", "uploadpack.allowAnySHA1InWant", "true")
	r.Git("config", "uploadpack.allowFilter", "true")
	r.Git("config", "http.receivepack", "false")
	var handler http.Handler = &cgi.Handler{
		Path: filepath.Join(r.Git("--exec-path"), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + dir},
	}
	if wrap != nil {
		handler = wrap(handler)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	r.URL = server.URL + "/acme/packs.git"
	return r
}

// Git runs git in the repository, and returns its output.
func (r *Repo) Git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = r.Dir
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(r.Dir), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// Commit replaces all files in the repository with these, and returns the commit.
func (r *Repo) Commit(files Files) string {
	r.t.Helper()
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != ".git" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(r.Dir, e.Name())))
		}
	}
	if err := errors.Join(err, Write(r.Dir, files)); err != nil {
		r.t.Fatal(err)
	}
	r.Git("add", "--all")
	r.Git("commit", "--quiet", "--allow-empty", "--message", "x")
	return r.Git("rev-parse", "HEAD")
}

// Write writes files below a folder.
func Write(dir string, files Files) error {
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(path, []byte(data), mode(name)); err != nil {
			return err
		}
	}
	return nil
}
