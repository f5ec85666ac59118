// Package terminal is the terminal's side of the approvals: it finds the running
// servers of this user by what they announce, and passes answers on to them. It shows
// nothing: the commands do.
package terminal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/runfolder"
)

const (
	maxAnnouncement = 16 << 10 // bytes; a real one has about 400

	// findTimeout is how long a server may take to answer [Find]. It only has to
	// list its waiting calls.
	findTimeout = 3 * time.Second
	// findAtOnce is how many servers are contacted at the same time.
	findAtOnce = 8
)

// Found is the result of [Find].
type Found struct {
	Servers []*Server // that answer, oldest first
	Skipped []Skipped // what looks like an announcement but leads to no server
}

// Skipped is a run folder, or a file of one, that was not used.
type Skipped struct {
	File   string // absolute
	Reason string // one line, safe to show
	// Silent means that a server of this user may be running but could not be
	// asked: calls may wait there.
	Silent bool
}

// A silentError says why an announced server could not be asked.
type silentError struct{ error }

// Find returns the running servers of this user: those that are announced in one
// of runDirs, which are absolute paths, and that answer to the key in the
// announcement. A missing folder means that no server has run there yet. The only
// error is that ctx ended.
//
// Find ignores a folder or file that other users can read or write, that belongs
// to another user, or that is a link. It never sends a key to an address that is
// not on the loopback interface. It removes the file of a process that has ended;
// where that is not certain, as in a container, the file stays.
func Find(ctx context.Context, runDirs ...string) (Found, error) {
	return find(ctx, runDirs, runfolder.ProcessGone)
}

// find is [Find] with a function that reports whether a process is certainly
// gone.
func find(ctx context.Context, runDirs []string, gone func(pid int) bool) (Found, error) {
	s := search{gone: gone, slots: make(chan struct{}, findAtOnce)}
	var seen []fs.FileInfo
	for _, path := range runDirs {
		dir, err := openRunDir(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			s.skip(path, err)
			continue
		}
		defer dir.Close()
		// Two names may lead to one folder.
		info, err := dir.Stat(".")
		if err != nil {
			s.skip(path, err)
			continue
		}
		if slices.ContainsFunc(seen, func(other fs.FileInfo) bool { return os.SameFile(info, other) }) {
			continue
		}
		seen = append(seen, info)
		s.in(ctx, dir, path)
	}
	s.wg.Wait()
	found := s.found
	slices.SortFunc(found.Servers, func(a, b *Server) int {
		return cmp.Or(a.Started.Compare(b.Started), cmp.Compare(a.PID, b.PID), cmp.Compare(a.base, b.base))
	})
	slices.SortFunc(found.Skipped, func(a, b Skipped) int { return cmp.Compare(a.File, b.File) })
	return found, ctx.Err()
}

// A search is one call of [Find].
type search struct {
	gone  func(pid int) bool
	wg    sync.WaitGroup
	slots chan struct{} // one for each server that is being asked

	mu    sync.Mutex
	found Found // guarded by mu
}

// skip notes that a file or folder is not used.
func (s *search) skip(path string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, silent := errors.AsType[*silentError](err)
	s.found.Skipped = append(s.found.Skipped, Skipped{path, oneLine(err.Error()), silent})
}

// in contacts the servers that are announced in one folder, without waiting for
// their answers.
func (s *search) in(ctx context.Context, dir *os.Root, path string) {
	entries, err := fs.ReadDir(dir.FS(), ".")
	if err != nil {
		s.skip(path, err)
		return
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), control.Suffix) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		s.slots <- struct{}{}
		s.wg.Go(func() {
			defer func() { <-s.slots }()
			one, err := reach(ctx, dir, path, e.Name(), s.gone)
			if err != nil {
				s.skip(filepath.Join(path, e.Name()), err)
			} else if one != nil {
				s.mu.Lock()
				defer s.mu.Unlock()
				s.found.Servers = append(s.found.Servers, one)
			}
		})
	}
}

// openRunDir opens a run folder, unless other users could put files there.
func openRunDir(path string) (*os.Root, error) {
	fi, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, errors.New("it is not a folder")
	}
	if why := runfolder.Foreign(fi); why != "" {
		return nil, fmt.Errorf("it %s", why)
	}
	if why := runfolder.Exposed(fi); why != "" {
		return nil, &silentError{fmt.Errorf("it %s", why)}
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	if now, err := root.Stat("."); err != nil || !os.SameFile(fi, now) {
		return nil, errors.Join(errors.New("it was replaced"), err, root.Close())
	}
	return root, nil
}

// reach turns one announcement into a server. It returns nil and no error if the
// server has ended.
func reach(ctx context.Context, dir *os.Root, runDir, name string, gone func(pid int) bool) (*Server, error) {
	a, err := readAnnouncement(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // it has just ended
	}
	if err != nil {
		return nil, err
	}
	if gone(a.PID) {
		// The name has random letters, so no other server can have reused it.
		if err := dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("removing what an ended server left: %w", err)
		}
		return nil, nil
	}
	s := newServer(a, runDir)
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	_, err = s.Pending(ctx)
	if r, ok := errors.AsType[*RefusedError](err); ok && r.Problem == control.ProblemPageOnly {
		s.PageOnly, err = true, nil
	}
	if err != nil {
		if _, lost := dir.Lstat(name); errors.Is(lost, fs.ErrNotExist) {
			return nil, nil // it ended while it was asked
		}
		return nil, &silentError{fmt.Errorf("the server with pid %d does not answer here: %w", a.PID, err)}
	}
	return s, nil
}

// readAnnouncement reads a file that only this user can have written.
func readAnnouncement(dir *os.Root, name string) (control.Announcement, error) {
	fi, err := dir.Lstat(name)
	if err != nil {
		return control.Announcement{}, fmt.Errorf("reading it: %w", err)
	}
	if !fi.Mode().IsRegular() {
		return control.Announcement{}, errors.New("it is not a regular file")
	}
	if why := runfolder.Exposed(fi); why != "" {
		return control.Announcement{}, fmt.Errorf("it %s", why)
	}
	f, err := dir.OpenFile(name, runfolder.OpenFlags, 0)
	if err != nil {
		return control.Announcement{}, fmt.Errorf("reading it: %w", err)
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(fi, now) {
		return control.Announcement{}, errors.Join(errors.New("it was replaced"), err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxAnnouncement+1))
	if err != nil {
		return control.Announcement{}, fmt.Errorf("reading it: %w", err)
	}
	if len(data) > maxAnnouncement {
		return control.Announcement{}, fmt.Errorf("it is larger than %d bytes", maxAnnouncement)
	}
	var a control.Announcement
	if err := json.Unmarshal(data, &a); err != nil {
		return control.Announcement{}, fmt.Errorf("it is not what a server writes: %w", err)
	}
	return a, check(a)
}

// check returns an error that says what is wrong with an announcement.
func check(a control.Announcement) error {
	if a.Version != control.Version {
		return &silentError{fmt.Errorf("it is of version %d, and this program knows version %d: use the packs-mcp that the server was started with", a.Version, control.Version)}
	}
	if a.PID <= 0 {
		return fmt.Errorf("it has the pid %d", a.PID)
	}
	// A host name would need a lookup. The server that answers the lookup could
	// direct the key to itself.
	at, err := netip.ParseAddrPort(a.Address)
	if err != nil || !at.Addr().Unmap().IsLoopback() || at.Addr().Zone() != "" || at.Port() == 0 {
		return fmt.Errorf("its address %q is not on this machine's loopback interface", a.Address)
	}
	notInHeader := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(a.Key) < 32 || strings.ContainsFunc(a.Key, notInHeader) {
		return errors.New("it has no key")
	}
	return nil
}
