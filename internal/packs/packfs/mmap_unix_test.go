//go:build unix

package packfs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A write through a mapping that is already dirty changes none of the file's times, so
// only reading the bytes reveals it.
func TestDigestSeesMapping(t *testing.T) {
	dir := tree(t, map[string]string{"run.sh": "echo good"})
	f, err := os.OpenFile(filepath.Join(dir, "run.sh"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, 9, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Skipf("mmap: %v", err)
	}
	defer unix.Munmap(m)
	m[0] = 'e'

	cache := &DigestCache{now: func() time.Time { return time.Now().Add(time.Hour) }}
	before := digest(t, dir, cache)
	copy(m[5:], "evil")
	after := digest(t, dir, cache)
	if before.Digest == after.Digest {
		t.Errorf("Digest = %s before and after the bytes changed", after.Digest)
	}
	if want := "sha256:" + hexSum("echo evil"); after.Files[0].Digest != want {
		t.Errorf("Files[0].Digest = %s, want %s", after.Files[0].Digest, want)
	}
}
