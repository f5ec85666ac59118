package git

import (
	"context"
	"encoding/hex"
	"errors"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/sourcestest"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
)

// A served is a bare repository that the real git serves over HTTP.
type served struct {
	t   *testing.T
	dir string
	url string
}

func serveGit(t *testing.T) *served {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git: not found")
	}
	out, err := exec.Command(program, "--exec-path").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &served{t: t, dir: filepath.Join(dir, "acme", "packs.git")}
	s.git("", "init", "--quiet", "--bare", "--initial-branch=main", s.dir)
	s.git("", "--git-dir", s.dir, "config", "uploadpack.allowAnySHA1InWant", "true")
	server := httptest.NewServer(&cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"),
		Env:  []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + dir},
	})
	t.Cleanup(server.Close)
	s.url = server.URL + "/acme/packs.git"
	return s
}

// git runs git with input, and returns what it prints.
func (s *served) git(input string, args ...string) string {
	s.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Stdin = strings.NewReader(input)
	cmd.Env = append(os.Environ(), "HOME="+filepath.Dir(s.dir), "GIT_CONFIG_NOSYSTEM=1", "GIT_DIR="+s.dir,
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org",
		"GIT_AUTHOR_DATE=2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z")
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// A line is one entry of a tree: its mode, name and content.
type line struct{ mode, name, content string }

// tree makes a tree of entries, hostile ones too, since git checks nothing here.
func (s *served) tree(lines ...line) string {
	s.t.Helper()
	var in strings.Builder
	for _, l := range lines {
		hash := l.content
		if l.mode != "40000" && l.mode != "160000" {
			hash = s.git(l.content, "hash-object", "-w", "--stdin")
		}
		raw, err := hex.DecodeString(hash)
		if err != nil {
			s.t.Fatal(err)
		}
		in.WriteString(l.mode + " " + l.name + "\x00" + string(raw))
	}
	return s.git(in.String(), "hash-object", "-t", "tree", "--literally", "-w", "--stdin")
}

// commit makes a commit of a tree and moves a branch to it.
func (s *served) commit(tree, branch string) string {
	s.t.Helper()
	c := s.git("", "commit-tree", "-m", "x", tree)
	s.git("", "update-ref", "refs/heads/"+branch, c)
	return c
}

func TestGit(t *testing.T) {
	s := serveGit(t)
	scripts := s.tree(line{"100755", "run.sh", "#!/bin/sh\n"})
	pack := s.tree(line{"100644", "SKILL.md", sourcestest.Document}, line{"120000", "README.md", "SKILL.md"}, line{"40000", "scripts", scripts})
	first := s.commit(s.tree(line{"40000", "triage", pack}, line{"100644", "aux.c", "not of the pack"}), "main")
	s.git("", "tag", "-a", "-m", "one", "v1", first)
	second := s.commit(s.tree(line{"40000", "triage", s.tree(line{"100644", "SKILL.md", sourcestest.Document + "More.\n"})}), "feature/x")

	for _, tt := range []struct {
		name, address, commit string
		files                 []string
	}{
		{"over http", s.url, first, []string{"README.md -> SKILL.md", "SKILL.md", "scripts/run.sh*"}},
		{"a tag", s.url + "@v1", first, []string{"README.md -> SKILL.md", "SKILL.md", "scripts/run.sh*"}},
		{"a branch", s.url + "@feature/x", second, []string{"SKILL.md"}},
		{"a commit", s.url + "@" + second, second, []string{"SKILL.md"}},
		{"a repository here", "file://" + s.dir + "@v1#triage", first, []string{"README.md -> SKILL.md", "SKILL.md", "scripts/run.sh*"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := address.Parse(tt.address)
			if err != nil {
				t.Fatal(err)
			}
			snap, err := Open(t.Context(), &web.Access{Private: []string{"127.0.0.1"}}, r)
			if err != nil {
				t.Fatal(err)
			}
			defer snap.Close()
			if snap.Pin() != "git:"+tt.commit {
				t.Errorf("pin = %s, want %s", snap.Pin(), tt.commit)
			}
			found, err := sources.Survey(t.Context(), snap, r.Path)
			if err != nil || len(found) != 1 || found[0].Path != "triage" || found[0].Name != "triage" || !found[0].Valid {
				t.Fatalf("packs = %+v, %v, want triage", found, err)
			}
			tree, _, err := sourcestest.Fill(t, snap, "triage")
			if err != nil {
				t.Fatal(err)
			}
			if got := sourcestest.Paths(tree); !slices.Equal(got, tt.files) {
				t.Errorf("files = %q, want %q", got, tt.files)
			}
		})
	}
	for _, text := range []string{s.url + "@nothing", s.url + "@" + first[:12], strings.Replace(s.url, "packs.git", "none.git", 1)} {
		r, err := address.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if snap, err := Open(t.Context(), &web.Access{Private: []string{"127.0.0.1"}}, r); err == nil {
			t.Errorf("%s: %s was fetched", text, snap.Resolved())
		} else {
			t.Log(err)
		}
	}
	r, err := address.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), &web.Access{}, r); !errors.As(err, new(*web.HostError)) {
		t.Errorf("a private address: %v, want a *web.HostError", err)
	}
}

// A forbidden file makes the pack that has it refused, by name, and no other pack.
func TestHostileGit(t *testing.T) {
	s := serveGit(t)
	for name, tt := range map[string]struct {
		entry line
		want  string
	}{
		"parent":       {line{"100644", "..", "x"}, `leads elsewhere`},
		"slash":        {line{"100644", "../x", "x"}, `leads elsewhere`},
		"git":          {line{"100644", ".git", "x"}, `git's own folder`},
		"git, hidden":  {line{"100644", ".g\u200cit", "x"}, `git's own folder`},
		"git, short":   {line{"100644", "GIT~1", "x"}, `git's own folder`},
		"twin":         {line{"100644", "skill.MD", "x"}, `many systems take its name`},
		"link out":     {line{"120000", "l", "../x"}, `leads out`},
		"link to root": {line{"120000", "l", "/etc/passwd"}, `leads out`},
		"link nowhere": {line{"120000", "l", "nothing"}, `leads to nothing`},
		"submodule":    {line{"160000", "sub", "0123456789012345678901234567890123456789"}, `another repository`},
		"device":       {line{"100644", "con.txt", "x"}, `a device on Windows`},
		"control":      {line{"100644", "a\nb", "x"}, `control characters`},
		"backslash":    {line{"100644", `a\b`, "x"}, `a backslash`},
		"large":        {line{"100644", "big", strings.Repeat("x", 17<<20)}, `more than 16 MiB`},
	} {
		t.Run(name, func(t *testing.T) {
			bad := s.tree(line{"100644", "SKILL.md", sourcestest.Document}, tt.entry)
			good := s.tree(line{"100644", "SKILL.md", sourcestest.Document})
			s.commit(s.tree(line{"40000", "bad", bad}, line{"40000", "good", good}), "main")
			r, err := address.Parse(s.url)
			if err != nil {
				t.Fatal(err)
			}
			snap, err := Open(t.Context(), &web.Access{Private: []string{"127.0.0.1"}}, r)
			if err != nil {
				t.Fatal(err)
			}
			defer snap.Close()
			if found, err := sources.Survey(t.Context(), snap, ""); err != nil || len(found) < 1 {
				t.Errorf("packs = %v, %v", found, err)
			}
			if _, _, err := sourcestest.Fill(t, snap, "good"); err != nil {
				t.Errorf("good: %v", err)
			}
			_, _, err = sourcestest.Fill(t, snap, "bad")
			if !errors.As(err, new(*stage.RefusedError)) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("bad: %v, want %q", err, tt.want)
			}
		})
	}
}

// A repository that would unpack to gigabytes is refused in time.
func TestGitBomb(t *testing.T) {
	s := serveGit(t)
	blob := s.git(strings.Repeat("\x00", 130<<20), "hash-object", "-w", "--stdin")
	s.commit(s.git("100644 blob "+blob+"\tzeros\x00", "mktree", "-z"), "main")
	r, err := address.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(context.Background(), &web.Access{Private: []string{"127.0.0.1"}}, r); !errors.Is(err, stage.ErrTooLarge) {
		t.Errorf("a file of 130 MiB in 130 KiB: %v, want ErrTooLarge", err)
	}
}

// A commit that descends from another is told from one that replaced it.
func TestFollows(t *testing.T) {
	s := serveGit(t)
	tree := s.tree(line{"100644", "SKILL.md", sourcestest.Document})
	on := func(parent, message string) string {
		args := []string{"commit-tree", "-m", message, tree}
		if parent != "" {
			args = append(args, "-p", parent)
		}
		return s.git("", args...)
	}
	root := on("", "root")
	first := on(root, "first")
	next := on(on(first, "second"), "third")
	other := on(on(root, "another first"), "another second")
	s.git("", "update-ref", "refs/heads/old", first)
	s.git("", "update-ref", "refs/heads/main", next)
	s.git("", "update-ref", "refs/heads/other", other)
	for _, at := range []string{s.url, "file://" + s.dir} {
		for _, tt := range []struct {
			branch, old string
			want        bool
		}{{"main", first, true}, {"main", root, true}, {"main", next, true}, {"other", first, false}, {"old", next, false}, {"main", strings.Repeat("1", 40), false}} {
			r, err := address.Parse(at + "@" + tt.branch)
			if err != nil {
				t.Fatal(err)
			}
			snap, err := Open(t.Context(), &web.Access{Private: []string{"127.0.0.1"}}, r)
			if err != nil {
				t.Fatal(err)
			}
			got, err := snap.(sources.Past).Follows(t.Context(), "git:"+tt.old)
			if err != nil || got != tt.want {
				t.Errorf("%s: %s follows %s: %v, %v, want %v", at, tt.branch, tt.old, got, err, tt.want)
			}
			got, err = snap.(sources.Past).Precedes(t.Context(), "git:"+tt.old)
			if want := tt.old == next; (err != nil) != (tt.old == strings.Repeat("1", 40)) || got != want {
				t.Errorf("%s: %s precedes %s: %v, %v, want %v", at, tt.branch, tt.old, got, err, want)
			}
			if err := snap.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
