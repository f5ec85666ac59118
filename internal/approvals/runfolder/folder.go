// Package runfolder is the folder in which the servers of one user announce
// themselves and leave the one-time files that lead to their pages. It sees to it
// that no other user can read or write there, and removes what killed servers left.
package runfolder

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
)

const (
	// EntryTime is how long a file that leads to the page works.
	EntryTime = 2 * time.Minute
	// EntryPrefix is the prefix of the names of such files.
	EntryPrefix = "open-"
)

// A Folder is the run folder. It is held open, so that files are written into
// the folder that was checked, whatever its path leads to later.
type Folder struct {
	path string // absolute
	root *os.Root

	mu   sync.Mutex
	held map[string]*os.File // :: name → a locked file that write created; guarded by mu
}

// Open creates the folder if needed, and closes it to other users.
func Open(path string) (*Folder, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("the run folder: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making the run folder: %w", err)
	}
	before, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("the run folder: %w", err)
	}
	if before.Mode()&fs.ModeSymlink != 0 || !before.IsDir() {
		return nil, fmt.Errorf("the run folder %q is a link, or no folder: remove it", path)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, fmt.Errorf("opening the run folder: %w", err)
	}
	f := &Folder{path: path, root: root}
	if err := f.check(before); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	f.sweep()
	return f, nil
}

// check examines the folder that was opened, since only an open folder cannot be
// swapped.
func (f *Folder) check(before fs.FileInfo) error {
	info, err := f.root.Stat(".")
	if err != nil {
		return fmt.Errorf("the run folder: %w", err)
	}
	if !os.SameFile(before, info) {
		return fmt.Errorf("the run folder %q was replaced while it was opened", f.path)
	}
	if why := Foreign(info); why != "" {
		return fmt.Errorf("the run folder %q %s: remove it, or set PACKS_MCP_HOME to a folder of yours", f.path, why)
	}
	if shared(info) {
		// Its names are random and its files are 0600, so nothing that others
		// did in it before matters.
		if err := f.root.Chmod(".", 0o700); err != nil {
			return fmt.Errorf("closing the run folder to others: %w", err)
		}
	}
	return nil
}

// sweep removes what killed servers left: files with servers' names that no
// server has locked, and parts that will never be completed.
func (f *Folder) sweep() {
	entries, err := fs.ReadDir(f.root.FS(), ".")
	if err != nil {
		return
	}
	for _, e := range entries {
		name := e.Name()
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || Foreign(info) != "" {
			continue
		}
		left := false
		switch pid := announcedBy(name); {
		case strings.HasPrefix(name, partPrefix): // a part is not locked at first
			left = time.Since(info.ModTime()) > 2*EntryTime
		case strings.HasPrefix(name, EntryPrefix), pid > 0:
			left = f.abandoned(name, info, pid)
		}
		if left {
			_ = f.root.Remove(name)
		}
	}
}

// announcedBy returns the process whose announcement has that name; 0 if the
// name is not an announcement's.
func announcedBy(name string) int {
	number, rest, ok := strings.Cut(name, "-")
	pid, err := strconv.Atoi(number)
	if !ok || err != nil || pid <= 0 || !strings.HasSuffix(rest, control.Suffix) {
		return 0
	}
	return pid
}

// partPrefix is the prefix of the names of incomplete files.
const partPrefix = ".part-"

// Write puts a new file into the folder that only the user can read. The file
// appears complete. Where the system can lock files, it stays locked until it is
// removed or this process ends, so that sweep can tell it from one that was left
// behind.
func (f *Folder) Write(name string, content []byte) error {
	part := partPrefix + rand.Text()
	file, err := f.root.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		_, err = file.Write(content)
		if locked := lock(file); !locked || err != nil {
			err = errors.Join(err, file.Close())
			file = nil
		}
		if err == nil {
			err = f.root.Rename(part, name)
		}
		if err != nil {
			_ = f.root.Remove(part)
		}
	}
	if err != nil {
		if file != nil {
			_ = file.Close()
		}
		return fmt.Errorf("writing into the run folder %q: %w", f.path, err)
	}
	f.hold(name, file)
	return nil
}

// hold keeps a file open under a name, replacing the one held before; nil holds
// none.
func (f *Folder) hold(name string, file *os.File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if old := f.held[name]; old != nil {
		_ = old.Close()
	}
	delete(f.held, name)
	if file != nil {
		if f.held == nil {
			f.held = map[string]*os.File{}
		}
		f.held[name] = file
	}
}

// Remove removes a file, which may already be gone.
func (f *Folder) Remove(name string) error {
	defer f.hold(name, nil)
	if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Announce writes the announcement and returns its name.
func (f *Folder) Announce(a control.Announcement) (name string, err error) {
	content, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	name = strconv.Itoa(a.PID) + "-" + rand.Text() + ".json"
	return name, f.Write(name, append(content, '\n'))
}

// Path returns the folder's absolute path.
func (f *Folder) Path() string { return f.path }

// Close closes the folder and every file that is still held.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range f.held {
		_ = file.Close()
	}
	f.held = nil
	return f.root.Close()
}
