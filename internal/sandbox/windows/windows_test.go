//go:build windows

package windows

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/windows"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/winjob"
)

func TestWalkLabels(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	for _, f := range []string{"a/b/c", "a/d", "e"} {
		path := filepath.Join(dir, filepath.FromSlash(f))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(elsewhere, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	linked := os.Symlink(elsewhere, filepath.Join(dir, "link")) == nil // needs a privilege
	var got []string
	visit := func(e labelEntry) (bool, error) {
		rel, _ := filepath.Rel(dir, e.path)
		got = append(got, filepath.ToSlash(rel))
		return rel != "a", nil
	}
	if err := walkLabels(dir, visit); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{".", "a", "e"}, got); diff != "" {
		t.Errorf("walkLabels (-want +got):\n%s", diff)
	}
	if linked {
		if err := walkLabels(filepath.Join(dir, "link"), visit); err == nil {
			t.Error("walkLabels of a link = nil, want an error")
		}
	}
	if err := walkLabels(filepath.Join(dir, "none"), visit); err == nil {
		t.Error("walkLabels of nothing = nil, want an error")
	}
}

func TestLowToken(t *testing.T) {
	token, err := lowToken()
	if err != nil {
		t.Fatal(err)
	}
	defer token.Close()
	groups, err := token.GetTokenGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups.AllGroups() {
		if g.Sid.IsWellKnown(windows.WinBuiltinAdministratorsSid) && g.Attributes&windows.SE_GROUP_USE_FOR_DENY_ONLY == 0 {
			t.Error("the token has the rights of an administrator")
		}
	}
}

func TestCommandLine(t *testing.T) {
	argv := []string{`C:\Program Files\x.exe`, "", `a"b`, `c\`, `d\\"`, "ü 😀"}
	got, err := windows.DecomposeCommandLine(commandLine(argv))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(argv, got); diff != "" {
		t.Errorf("commandLine, taken apart (-want +got):\n%s", diff)
	}
	var large *sandbox.TooLargeError
	if n := len([]rune(commandLine(argv))) + 2; !errors.As(level.TooLarge(argv, nil), &large) || large.Size != n { // one more for 😀, one for the 0
		t.Errorf("TooLarge(%q) = %v, want a size of %d", argv, large, n)
	}
}

func TestShieldServer(t *testing.T) {
	if err := shieldServer(); err != nil {
		t.Fatal(err)
	}
	sd, err := windows.GetSecurityInfo(windows.CurrentProcess(), windows.SE_KERNEL_OBJECT, windows.LABEL_SECURITY_INFORMATION)
	if err != nil {
		t.Fatal(err)
	}
	if got := sd.String(); winjob.Shield(got) != got {
		t.Errorf("the label of the server is %q, want %q", got, winjob.Shield(got))
	}
}
