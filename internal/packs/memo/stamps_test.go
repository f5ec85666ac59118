package memo

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// Stamps only count on the root's own device, and if its file system is local.
func TestStampsThatAreTrusted(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "")
	needStamps(t, dir)
	info, err := os.Lstat(filepath.Join(dir, "a"))
	must(t, err)
	stamp, now := packfs.StampOf(info), time.Now().Add(later)
	here := NewStamper(dir, now)
	elsewhere := Stamper{device: here.device + 1, now: now}
	if here.Of(info) != stamp || !here.Same(stamp, info) {
		t.Error("a stamp of the root's device does not count")
	}
	if !elsewhere.Of(info).IsZero() || elsewhere.Same(stamp, info) {
		t.Error("a stamp of another device counts")
	}
	nowhere := Stamper{now: now}
	if !nowhere.Of(info).IsZero() || nowhere.Same(stamp, info) {
		t.Error("a stamp counts where the file system keeps none")
	}
	if early := NewStamper(dir, time.Now().Add(-time.Hour)); !early.Of(info).IsZero() {
		t.Error("a stamp of the future counts")
	}
	const remote = "/proc" // acts like one: its stamps mean nothing
	if info, err := os.Lstat(remote); err == nil && !packfs.StampOf(info).IsZero() && !packfs.Local(remote) {
		if st := NewStamper(remote, now); st.device != 0 {
			t.Errorf("the stamps of %s count", remote)
		}
	}
}

// A file that changed just now may change again with the same stamp: two looks at it
// never give the same value until it has settled.
func TestFingerprintInDoubt(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tools.json"), "{}\n")
	needStamps(t, dir)
	looks := func(now time.Time) (first, second uint64) {
		t.Helper()
		var got [2]uint64
		for i := range got {
			f := NewFingerprint(NewStamper(dir, now.Add(time.Duration(i))), onDisk{})
			f.Add(filepath.Join(dir, "tools.json"))
			got[i] = f.Value()
		}
		return got[0], got[1]
	}
	if first, second := looks(time.Now()); first == second {
		t.Error("two looks at a file that was written just now are the same")
	}
	if first, second := looks(time.Now().Add(later)); first != second {
		t.Error("two looks at a file that is settled differ")
	}
}

type onDisk struct{}

func (onDisk) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }
func (onDisk) Stat(path string) (fs.FileInfo, error)  { return os.Stat(path) }

// later is by how much these tests look at files later, so that what was just written
// counts as settled.
const later = 3 * time.Second

func needStamps(t *testing.T, dir string) {
	t.Helper()
	info, err := os.Lstat(dir)
	must(t, err)
	if packfs.StampOf(info).IsZero() || !packfs.Local(dir) {
		t.Skip("stamps: this file system has none that can be relied on")
	}
}
