//go:build windows

package windows

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/winjob"
)

const (
	// maxLabels is how many files and folders a writable folder may have: each
	// is labelled before a run, and again after it.
	maxLabels = 200_000

	// maxLabelDepth is how many folders deep that goes; each takes a handle.
	maxLabelDepth = 200
)

// A labeler gives folders and their contents low integrity while runs need to write
// there, and removes it afterwards: from everything that has it then, including what
// the runs made and what a killed server left.
//
// It works file by file, since Windows' own inheritance follows junctions, which a
// run may have made. It does not label a file with a second name, so that stays
// read-only for the run: the other name may be anywhere.
//
// Servers do not know of each other's labels. If another server finishes with a
// folder while one of our runs is in it, the run can no longer write to existing
// files there.
type labeler struct {
	log *slog.Logger

	// mu guards holds, and is held while folders are labelled, so that a run
	// does not start before its folders are ready.
	mu    sync.Mutex
	holds winjob.Holds

	lowFolder, lowFile, none, medium *windows.SECURITY_DESCRIPTOR
}

func newLabeler(log *slog.Logger) (*labeler, error) {
	lb := &labeler{log: log}
	for _, d := range []struct {
		sd   **windows.SECURITY_DESCRIPTOR
		sddl string
	}{
		{&lb.lowFolder, winjob.LowFolder}, {&lb.lowFile, winjob.LowFile},
		{&lb.none, winjob.Unlabeled}, {&lb.medium, winjob.Medium},
	} {
		sd, err := windows.SecurityDescriptorFromString(d.sddl)
		if err != nil {
			return nil, fmt.Errorf("integrity label %q: %w", d.sddl, err)
		}
		*d.sd = sd
	}
	return lb, nil
}

// take makes the folders writable to programs of low integrity until release is
// called.
func (lb *labeler) take(folders []string) (release func(), err error) {
	var taken []string
	release = func() {
		lb.mu.Lock()
		defer lb.mu.Unlock()
		for _, folder := range taken {
			for _, free := range lb.holds.Give(folder) {
				lb.restore(free)
			}
		}
	}
	for _, folder := range folders {
		folder = filepath.Clean(folder)
		lb.mu.Lock()
		taken = append(taken, folder)
		if lb.holds.Take(folder) {
			err = lb.lower(folder)
		}
		lb.mu.Unlock()
		if err != nil {
			release()
			return nil, fmt.Errorf("making folder %q writable: %w", folder, err)
		}
	}
	return release, nil
}

// lower labels the folder, unless it is low because of its place, like everything in
// AppData\LocalLow.
func (lb *labeler) lower(folder string) error {
	left, first := 0, error(nil)
	err := walkLabels(folder, func(e labelEntry) (bool, error) {
		sd := lb.lowFile
		if e.dir {
			sd = lb.lowFolder
		}
		switch {
		case e.path == folder:
			if low, inherited := e.low(); low && inherited {
				return false, nil
			}
			return true, e.label(sd)
		case !e.dir && e.links > 1:
			return false, nil
		}
		if err := e.label(sd); err != nil {
			left, first = left+1, cmp.Or(first, err)
			return false, nil
		}
		return true, nil
	})
	if left > 0 {
		lb.log.Warn("files that cannot be labelled are read-only to the run", "dir", folder, "files", left, "err", first)
	}
	return err
}

// restore removes the label from the folder and its contents.
func (lb *labeler) restore(folder string) {
	left, first := 0, error(nil)
	err := walkLabels(folder, func(e labelEntry) (bool, error) {
		low, inherited := e.low()
		if e.path == folder && low && inherited {
			return false, nil
		}
		if !low {
			return true, nil
		}
		err := e.label(lb.none)
		if low, _ = e.low(); err != nil || low {
			err = e.label(lb.medium) // which is the same as no label
		}
		if err != nil {
			left, first = left+1, cmp.Or(first, err)
		}
		return true, nil
	})
	if err != nil && !errors.Is(err, os.ErrNotExist) { // a removed file has no label
		left, first = left+1, cmp.Or(first, err)
	}
	if left > 0 {
		lb.log.Warn("files stay writable to later runs", "dir", folder, "files", left, "err", first)
	}
}

// A labelEntry is an open file or folder that is not a link.
type labelEntry struct {
	handle windows.Handle
	path   string
	dir    bool
	links  uint32 // names of the file
}

func (e labelEntry) label(sd *windows.SECURITY_DESCRIPTOR) error {
	return windows.SetKernelObjectSecurity(e.handle, windows.LABEL_SECURITY_INFORMATION, sd)
}

// low reports whether e has low integrity, and whether it only inherits that from its
// folder.
func (e labelEntry) low() (low, inherited bool) {
	sd, err := windows.GetSecurityInfo(e.handle, windows.SE_FILE_OBJECT, windows.LABEL_SECURITY_INFORMATION)
	if err != nil {
		return false, false
	}
	return winjob.Low(sd.String())
}

var (
	errTooMany = errors.New("it has too many files")
	errIsLink  = errors.New("it is a link")
)

// walkLabels calls visit for the folder and everything in it except links (reparse
// points of any kind), each folder before its contents, which it skips if visit
// returns false. Files that cannot be opened are left out, except the folder itself.
//
// Each is opened by name relative to its folder's handle, so that no exchange on the
// way leads out of the folder.
func walkLabels(folder string, visit func(labelEntry) (descend bool, err error)) error {
	name, err := windows.UTF16PtrFromString(winjob.Extended(folder))
	if err != nil {
		return err
	}
	handle, err := windows.CreateFile(name, labelAccess|windows.FILE_LIST_DIRECTORY, shareAll, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return err
	}
	w := labelWalk{visit: visit}
	return w.entry(handle, folder, 0)
}

const (
	labelAccess = windows.READ_CONTROL | windows.WRITE_OWNER | windows.FILE_READ_ATTRIBUTES | windows.SYNCHRONIZE
	shareAll    = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
)

type labelWalk struct {
	visit func(labelEntry) (bool, error)
	seen  int
}

// entry visits what is open as handle, and closes it.
func (w *labelWalk) entry(handle windows.Handle, path string, depth int) error {
	file := os.NewFile(uintptr(handle), path)
	defer file.Close()

	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(handle, &info); err != nil {
		return skipBelow(depth, err)
	}
	if info.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0 {
		return skipBelow(depth, errIsLink)
	}
	if w.seen++; w.seen > maxLabels {
		return fmt.Errorf("%w: the most are %d", errTooMany, maxLabels)
	}
	e := labelEntry{handle, path, info.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0, info.NumberOfLinks}
	descend, err := w.visit(e)
	if err != nil || !descend || !e.dir || depth == maxLabelDepth {
		return err
	}
	for {
		entries, err := file.ReadDir(256)
		for _, d := range entries {
			child, err := openIn(handle, d.Name(), d.IsDir())
			if err != nil {
				continue // gone, replaced meanwhile, or not ours to label
			}
			if err := w.entry(child, filepath.Join(path, d.Name()), depth+1); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return skipBelow(depth, err)
		}
	}
}

// skipBelow returns err for the folder itself, and nil for its contents.
func skipBelow(depth int, err error) error {
	if depth > 0 {
		return nil
	}
	return err
}

// openIn opens name in the open folder, without following links.
func openIn(folder windows.Handle, name string, dir bool) (windows.Handle, error) {
	wide, err := windows.NewNTUnicodeString(name)
	if err != nil {
		return 0, err
	}
	attributes := windows.OBJECT_ATTRIBUTES{RootDirectory: folder, ObjectName: wide}
	attributes.Length = uint32(unsafe.Sizeof(attributes))
	var (
		handle  windows.Handle
		status  windows.IO_STATUS_BLOCK
		access  = uint32(labelAccess)
		options = uint32(windows.FILE_NON_DIRECTORY_FILE)
	)
	if dir {
		access |= windows.FILE_LIST_DIRECTORY
		options = windows.FILE_DIRECTORY_FILE
	}
	options |= windows.FILE_OPEN_REPARSE_POINT | windows.FILE_OPEN_FOR_BACKUP_INTENT | windows.FILE_SYNCHRONOUS_IO_NONALERT
	err = windows.NtCreateFile(&handle, access, &attributes, &status, nil, 0, shareAll, windows.FILE_OPEN, options, 0, 0)
	return handle, err
}
