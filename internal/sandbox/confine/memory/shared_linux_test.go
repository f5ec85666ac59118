//go:build amd64 || arm64

package memory

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const page = 4096

// self returns a thread that lives as long as the test, and gone one that does not
// exist.
func self() uint32 { return uint32(os.Getpid()) }

const gone = 1 << 30

// Existing pieces count with the sizes of the largest requests.
func TestSharedMemory(t *testing.T) {
	there := 0
	m := &Shared{Limit: 10 * page, Alive: func() (int, bool) { return there, true }}
	share := func(thread uint32, pages uint64, want bool) {
		t.Helper()
		m.next = time.Time{}
		if got := m.Share(thread, pages*page); got != want {
			t.Errorf("share of %d pages with %d of 10 = %v, want %v", pages, m.total/page, got, want)
		}
	}
	share(self(), 11, false)
	share(self(), 1<<40, false)
	share(gone, 1, true)
	share(gone+1, 6, true)
	share(gone+2, 3, true)
	there = 3
	share(self(), 1, false)
	there = 1 // the largest may be what is left
	share(self(), 5, false)
	share(self(), 4, true)
	there = 0 // this thread's mapping may not have been made yet
	share(gone+3, 7, false)
	share(gone+3, 6, true)
	if m.Keep(0) { // even an empty object takes a page
		t.Error("keep with nothing left = true, want false")
	}
	share(self(), 10, true)
}

// If the existing pieces cannot be counted, every request keeps counting.
func TestSharedMemoryUnsure(t *testing.T) {
	m := &Shared{Limit: 2 * page, Alive: func() (int, bool) { return 0, false }}
	if !m.Share(gone, 2*page) || m.Share(gone, 1) {
		t.Error("share went beyond the limit though nobody could look")
	}
	if m.Keep(1) {
		t.Error("keep went beyond the limit though nobody could look")
	}
}

// The memory for a program with very many mappings is bounded.
func TestSharedMemoryManyMappings(t *testing.T) {
	m := &Shared{Limit: 1 << 40, Alive: func() (int, bool) { return 0, true }}
	for n := range 3 * mostMappings {
		if m.next = (time.Time{}); !m.Share(self(), page) {
			t.Fatalf("mapping %d is refused", n)
		}
	}
	if len(m.settled) > mostMappings {
		t.Errorf("%d mappings are remembered, want at most %d", len(m.settled), mostMappings)
	}
}

// A child's pieces count, and this process's do not.
func TestSharedAlive(t *testing.T) {
	if _, err := unix.Mmap(-1, 0, page, unix.PROT_READ, unix.MAP_SHARED|unix.MAP_ANONYMOUS); err != nil {
		t.Fatal(err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	cmd := exec.Command(python, "-c", "import mmap; a = mmap.mmap(-1, 8192); b = mmap.mmap(-1, 4096); print('ready', flush=True); input()")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if n, ok := Alive(0, false); n != 2 || !ok {
		t.Errorf("Alive() = %d, %v, want 2, true", n, ok)
	}
}

// The memory for many threads that map once is bounded, too.
func TestSharedMemoryManyThreads(t *testing.T) {
	m := &Shared{Limit: 1 << 40, Alive: func() (int, bool) { return 0, false }}
	granted := 0
	for n := range uint32(2 * mostMappings) {
		if m.Share(gone+n, page) {
			granted++
		}
	}
	if granted != mostMappings || len(m.last)+len(m.settled) > mostMappings {
		t.Errorf("%d mappings are granted and %d remembered, want %d", granted, len(m.last)+len(m.settled), mostMappings)
	}
}

// A look that takes too long is given up, and reports that it is not sure.
func TestMappedPiecesInTime(t *testing.T) {
	device, ok := sharedDevice()
	if !ok {
		t.Fatal("no device of shared memory is found")
	}
	pid := os.Getpid()
	if !mappedPieces(pid, device, map[string]bool{}, func() bool { return false }) {
		t.Error("mappedPieces with time left = false, want true")
	}
	if mappedPieces(pid, device, map[string]bool{}, func() bool { return true }) {
		t.Error("mappedPieces with no time = true, want false")
	}
}
