//go:build amd64 || arm64

package confine

import (
	"bytes"
	"cmp"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sharedMemory bounds the memory that a run's processes share without a file,
// all of it together. The kernel has no limit for it: it is of no one process.
//
// Every shared mapping counts with its size when it is asked for, also one of a
// file, since its descriptor may be of /dev/zero by the time that it is used.
// When the limit is reached, the pieces of memory that are still there are
// counted: if there are k of them, they are no more than the k largest of what
// was asked for. Everything else is forgiven.
type sharedMemory struct {
	limit int64 // bytes; 0: none
	alive func() (int, bool)

	// What was asked for. A thread's last mapping may not have been made yet.
	// When the thread asks for another, or is gone, it has.
	last    map[uint32]int64 // by thread
	settled []int64
	kept    int64 // of what is there without being mapped (System V)
	total   int64 // all of these

	next time.Time // when looking at what is there may be done again
}

// mostSettled is how many mappings are remembered before sharedMemory looks at
// what is there.
const mostSettled = 4096

// share reports whether a thread may make a shared mapping of that size.
func (m *sharedMemory) share(thread uint32, size uint64) bool {
	if m.limit <= 0 {
		return true
	}
	if size > uint64(m.limit) {
		return false
	}
	page := int64(os.Getpagesize())
	n := (int64(size) + page - 1) / page * page
	if m.last == nil {
		m.last = map[uint32]int64{}
	}
	if former, ok := m.last[thread]; ok {
		m.settled = append(m.settled, former)
		delete(m.last, thread)
	}
	if m.total+n > m.limit || len(m.settled) >= mostSettled {
		m.look()
	}
	if m.total+n > m.limit || len(m.settled) >= mostSettled {
		return false
	}
	m.last[thread] = n
	m.total += n
	return true
}

// keep reports whether something of that size may be made that stays until the
// run ends.
func (m *sharedMemory) keep(size uint64) bool {
	if m.limit <= 0 {
		return true
	}
	// Even an empty one takes memory.
	const least = 4096
	if size > uint64(m.limit) || m.total+max(int64(size), least) > m.limit {
		return false
	}
	m.kept += max(int64(size), least)
	m.total += max(int64(size), least)
	return true
}

// look forgives what is not there any more.
func (m *sharedMemory) look() {
	now := time.Now()
	if now.Before(m.next) {
		return
	}
	for thread, size := range m.last {
		if _, err := os.Lstat("/proc/" + strconv.FormatUint(uint64(thread), 10)); os.IsNotExist(err) {
			m.settled = append(m.settled, size)
			delete(m.last, thread)
		}
	}
	n, ok := m.alive()
	took := time.Since(now)
	defer func() {
		if m.total > m.limit/2 { // it was of little use, and must not be all that is done
			m.next = time.Now().Add(10 * took)
		}
	}()
	if !ok {
		return
	}
	slices.SortFunc(m.settled, func(a, b int64) int { return cmp.Compare(b, a) })
	m.settled = m.settled[:min(n, len(m.settled))]
	m.total = m.kept
	for _, size := range m.last {
		m.total += size
	}
	for _, size := range m.settled {
		m.total += size
	}
}

// sharedAlive counts the pieces of shared memory without a file that this
// process's descendants have mapped, but for the init. It reports false when it
// cannot be sure: a process is not to be looked into, or came or went meanwhile
// and may have taken a piece along.
func sharedAlive(init int, namespaces bool) (n int, ok bool) {
	device, ok := sharedDevice()
	if !ok {
		return 0, false
	}
	before := descendants()
	pieces := map[string]bool{}
	for _, pid := range before {
		if namespaces && pid == init {
			continue
		}
		if !mappedPieces(pid, device, pieces) {
			return 0, false
		}
	}
	// Twice: one that ends while the list is made can hide its children once.
	for range 2 {
		after := descendants()
		slices.Sort(before)
		slices.Sort(after)
		if !slices.Equal(before, after) {
			return 0, false
		}
	}
	return len(pieces), true
}

// mappedPieces adds what a process has mapped of a device, by inode.
func mappedPieces(pid int, device string, pieces map[string]bool) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	maps, err := os.ReadFile(dir + "/maps")
	if errors.Is(err, unix.ESRCH) || err == nil && len(maps) == 0 { // its first thread has ended, and perhaps no other
		var tasks []string
		tasks, err = readNames(dir + "/task")
		for _, task := range tasks {
			if maps, _ = os.ReadFile(dir + "/task/" + task + "/maps"); len(maps) > 0 {
				break
			}
		}
	}
	if err != nil {
		return false
	}
	for line := range bytes.Lines(maps) {
		// 7f0000000000-7f0000001000 rw-s 00000000 00:01 1027    /dev/zero (deleted)
		fields := strings.Fields(string(line))
		if len(fields) >= 5 && fields[3] == device {
			pieces[fields[4]] = true
		}
	}
	return true
}

// sharedDevice returns the device that shared memory without a file is on, as
// /proc has it.
func sharedDevice() (string, bool) {
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(os.Getpagesize()), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		return "", false
	}
	defer func() { _ = unix.MunmapPtr(p, uintptr(os.Getpagesize())) }()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return "", false
	}
	start := strconv.FormatUint(uint64(uintptr(unsafe.Pointer(p))), 16)
	for line := range bytes.Lines(maps) {
		if fields := strings.Fields(string(line)); len(fields) >= 5 {
			// The addresses of maps have at least eight digits.
			if from, _, _ := strings.Cut(fields[0], "-"); strings.TrimLeft(from, "0") == start {
				return fields[3], true
			}
		}
	}
	return "", false
}
