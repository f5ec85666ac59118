//go:build unix

package terminal

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A file that other users could have written is not used: the writer of
// an announcement chooses what a person is asked, and who gets the answer.
func TestFindRefusesWhatOthersCanTouch(t *testing.T) {
	good := serveControl(t, emptyQueue())
	for _, tc := range []struct {
		name  string
		plant func(t *testing.T, dir, path string)
		want  string
	}{
		{"readable by the group", func(t *testing.T, _, path string) { mustChmod(t, path, 0o640) }, "it can be accessed by other users (mode -rw-r-----)"},
		{"writable by others", func(t *testing.T, _, path string) { mustChmod(t, path, 0o602) }, "it can be accessed by other users (mode -rw-----w-)"},
		{"a link", func(t *testing.T, dir, path string) {
			mustRename(t, path, filepath.Join(dir, "other"))
			if err := os.Symlink("other", path); err != nil {
				t.Fatal(err)
			}
		}, "it is not a regular file"},
		{"a pipe", func(t *testing.T, dir, path string) {
			mustRename(t, path, filepath.Join(dir, "other"))
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "it is not a regular file"},
		{"a folder", func(t *testing.T, dir, path string) {
			mustRename(t, path, filepath.Join(dir, "other"))
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "it is not a regular file"},
		{"another user's", func(t *testing.T, _, path string) {
			if err := os.Chown(path, 1, -1); err != nil {
				t.Skipf("chown: only root can give a file away: %v", err)
			}
		}, "it belongs to another user"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := runFolder(t)
			tc.plant(t, dir, plantAnnouncement(t, dir, "1-a.json", good))
			found, err := find(t.Context(), []string{dir}, neverGone)
			if err != nil || len(found.Servers) != 0 || len(found.Skipped) != 1 || found.Skipped[0].Reason != tc.want {
				t.Errorf("find() = %+v, %v; want it skipped with %q", found, err, tc.want)
			}
		})
	}
}

// A folder that others can touch is not searched. The others are.
func TestFindRefusesAFolderOthersCanTouch(t *testing.T) {
	good := serveControl(t, emptyQueue())
	for _, tc := range []struct {
		name  string
		plant func(t *testing.T, dir string) (folder string)
		want  Skipped
	}{
		{"a link", func(t *testing.T, dir string) string {
			link := filepath.Join(t.TempDir(), "link")
			if err := os.Symlink(dir, link); err != nil {
				t.Fatal(err)
			}
			return link
		}, Skipped{Reason: "it is not a folder"}},
		{"of the group", func(t *testing.T, dir string) string { mustChmod(t, dir, 0o770); return dir },
			Skipped{Reason: "it can be accessed by other users (mode -rwxrwx---)", Silent: true}},
		{"another user's", func(t *testing.T, dir string) string {
			if err := os.Chown(dir, 1, -1); err != nil {
				t.Skipf("chown: only root can give a folder away: %v", err)
			}
			return dir
		}, Skipped{Reason: "it belongs to another user"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bad, own := runFolder(t), runFolder(t)
			plantAnnouncement(t, bad, "1-a.json", good)
			plantAnnouncement(t, own, "1-a.json", good)
			tc.want.File = tc.plant(t, bad)
			found, err := find(t.Context(), []string{tc.want.File, own}, neverGone)
			if err != nil || len(found.Servers) != 1 || found.Servers[0].runDir != own || len(found.Skipped) != 1 || found.Skipped[0] != tc.want {
				t.Errorf("find() = %+v, %v; want the server of the other folder, and %+v", found, err, tc.want)
			}
		})
	}
}

func mustChmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

func mustRename(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}
