//go:build linux && (amd64 || arm64)

package linux

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// mounts is the list of mount points. It is read again only when the kernel reports a
// change. The zero value is ready. Safe for concurrent use.
type mounts struct {
	mu      sync.Mutex
	file    *os.File // guarded by mu; nil: not opened yet
	points  []string // guarded by mu: mount points
	changes uint64   // guarded by mu: how often the list was read
}

// list returns the mount points, and a number that changes when they do. The caller
// does not modify the list.
func (m *mounts) list() ([]string, uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file == nil {
		// Not os.Open: the runtime's poller would consume the change notices.
		fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, 0, err
		}
		m.file = os.NewFile(uintptr(fd), "mountinfo")
	} else if !m.changed() {
		return m.points, m.changes, nil
	}
	// Changes from here on are reported at the next call.
	data, err := readFromStart(m.file)
	if err != nil {
		m.reset()
		return nil, 0, err
	}
	// proc_pid_mountinfo(5): ID PARENT MAJOR:MINOR ROOT MOUNTPOINT …
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	m.points = nil
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) >= 5 {
			m.points = append(m.points, unescape.Replace(fields[4]))
		}
	}
	m.changes++
	return m.points, m.changes, nil
}

// changed reports whether something was mounted or unmounted since the last call, or
// since the file was opened. The kernel signals it by POLLPRI and POLLERR; see
// proc_pid_mounts(5). In doubt, it returns true.
func (m *mounts) changed() bool {
	fds := []unix.PollFd{{Fd: int32(m.file.Fd()), Events: unix.POLLPRI}}
	n, err := unix.Poll(fds, 0)
	return err != nil || n != 0
}

func readFromStart(f *os.File) ([]byte, error) {
	_, err := f.Seek(0, io.SeekStart)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	if err == nil && len(data) == 0 {
		err = errors.New("the list of mounts is empty")
	}
	return data, err
}

// reset forgets the list.
func (m *mounts) reset() {
	_ = m.file.Close()
	m.file, m.points = nil, nil
}

// close closes the file. The list can still be used.
func (m *mounts) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.file != nil {
		m.reset()
	}
}
