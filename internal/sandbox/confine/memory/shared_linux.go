//go:build amd64 || arm64

package memory

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/processes"
)

// Shared bounds the total memory that a run's processes share without a file.
//
// Every shared mapping counts with its full size when it is requested. Mappings of
// files count too, since the descriptor may stand for /dev/zero by the time it is used.
// When the limit is reached, Shared counts the pieces of memory that still exist: if
// there are k of them, they are at most as large as the k largest requests. The other
// requests no longer count.
type Shared struct {
	Limit int64              // bytes; 0: none
	Alive func() (int, bool) // see the function Alive

	// Requests so far. A thread's last mapping may not have been made yet; it has been
	// once the thread asks for another or is gone.
	last    map[uint32]int64 // by thread
	settled []int64
	kept    int64 // for objects that exist without being mapped (System V)
	total   int64 // all of these

	next time.Time // when existing pieces may be counted again
}

// mostMappings is how many mappings are remembered. Beyond that, Shared counts the
// existing ones.
const mostMappings = 4096

// mostLook bounds the processor time for listing mappings. During that time the
// supervisor obeys no order. A program can have so many mappings that listing them
// takes half a minute; then every request keeps counting.
//
// It does not bound elapsed time: on a busy machine the supervisor waits for a
// processor, and the program would be refused memory that is free. While the program
// holds the lock of its mappings, however, no processor time passes; mostLookElapsed
// bounds that.
const (
	mostLook        = 50 * time.Millisecond
	mostLookElapsed = 10 * mostLook
)

// Share reports whether a thread may make a shared mapping of this size.
func (m *Shared) Share(thread uint32, size uint64) bool {
	if m.Limit <= 0 {
		return true
	}
	if size > uint64(m.Limit) {
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
	if !m.hasRoom(n) {
		m.look()
	}
	if !m.hasRoom(n) {
		return false
	}
	m.last[thread] = n
	m.total += n
	return true
}

// hasRoom reports whether one more mapping is within the limit, and can be
// remembered.
func (m *Shared) hasRoom(size int64) bool {
	return m.total+size <= m.Limit && len(m.settled)+len(m.last) < mostMappings
}

// Keep reports whether an object of this size may be made that lasts until the run
// ends.
func (m *Shared) Keep(size uint64) bool {
	if m.Limit <= 0 {
		return true
	}
	// Even an empty one takes memory.
	const least = 4096
	if size > uint64(m.Limit) || m.total+max(int64(size), least) > m.Limit {
		return false
	}
	m.kept += max(int64(size), least)
	m.total += max(int64(size), least)
	return true
}

// look stops counting mappings that no longer exist.
func (m *Shared) look() {
	if time.Now().Before(m.next) {
		return
	}
	runtime.LockOSThread() // its processor time is measured
	defer runtime.UnlockOSThread()
	worked, elapsed := threadTime(), time.Now()
	for thread, size := range m.last {
		if _, err := os.Lstat("/proc/" + strconv.FormatUint(uint64(thread), 10)); os.IsNotExist(err) {
			m.settled = append(m.settled, size)
			delete(m.last, thread)
		}
	}
	n, ok := m.Alive()
	// It obeys no orders while it waits, either.
	took := max(threadTime()-worked, time.Since(elapsed)/10)
	defer func() {
		if took > mostLook/10 || m.total > m.Limit/2 { // it was slow or of little use, and must not take all the time
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

// Alive counts the pieces of shared memory without a file that this process's
// descendants, except the init, have mapped. ok is false if it cannot be sure: a
// process could not be examined, or came or went meanwhile and may have taken a piece
// along.
func Alive(init int, namespaces bool) (n int, ok bool) {
	device, ok := sharedDevice()
	if !ok {
		return 0, false
	}
	end, elapsed := threadTime()+mostLook, time.Now().Add(mostLookElapsed)
	over := func() bool { return threadTime() > end || time.Now().After(elapsed) }
	before := processes.Descendants()
	pieces := map[string]bool{}
	for _, pid := range before {
		if namespaces && pid == init {
			continue
		}
		if !mappedPieces(pid, device, pieces, over) {
			return 0, false
		}
	}
	// Twice: a process that ends while the list is made can hide its children once.
	for range 2 {
		after := processes.Descendants()
		slices.Sort(before)
		slices.Sort(after)
		if !slices.Equal(before, after) {
			return 0, false
		}
	}
	return len(pieces), true
}

// mappedPieces adds the files of a device that a process has mapped, by inode. It
// returns false if it cannot, or if over reports true.
func mappedPieces(pid int, device string, pieces map[string]bool, over func() bool) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	lines, err := addPieces(dir+"/maps", device, pieces, over)
	if errors.Is(err, unix.ESRCH) || err == nil && lines == 0 { // its first thread has ended, and perhaps no other
		var tasks []os.DirEntry
		tasks, err = os.ReadDir(dir + "/task")
		for _, task := range tasks {
			if lines, err = addPieces(dir+"/task/"+task.Name()+"/maps", device, pieces, over); lines > 0 {
				break
			}
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				err = nil // the process has ended, too
			}
		}
	}
	return err == nil
}

// addPieces adds the mappings of a device from the list at path, and returns how many
// lines it read.
func addPieces(path, device string, pieces map[string]bool, over func() bool) (lines int, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	const clockEvery = 64 // lines
	on := []byte(" " + device + " ")
	for r := bufio.NewReaderSize(f, 16<<10); ; lines++ {
		line, err := r.ReadSlice('\n')
		if err == io.EOF && len(line) == 0 {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
		if lines%clockEvery == 0 && over() {
			return lines, os.ErrDeadlineExceeded
		}
		if !bytes.Contains(line, on) {
			continue
		}
		// 7f0000000000-7f0000001000 rw-s 00000000 00:01 1027    /dev/zero (deleted)
		if fields := strings.Fields(string(line)); len(fields) >= 5 && fields[3] == device {
			pieces[fields[4]] = true
		}
	}
}

// threadTime returns the processor time that the calling thread has used.
func threadTime() time.Duration {
	var used unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &used) // cannot fail
	return time.Duration(used.Nano())
}

// sharedDevice returns the device of shared memory without a file, as /proc writes
// it.
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
			// The addresses in maps have at least eight digits.
			if from, _, _ := strings.Cut(fields[0], "-"); strings.TrimLeft(from, "0") == start {
				return fields[3], true
			}
		}
	}
	return "", false
}
