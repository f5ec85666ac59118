package runner

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/capture"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

const (
	maxWalked    = 10_000 // entries of a workspace that are looked at
	maxDepth     = 64     // folders below each other that are looked into
	maxArtifacts = 200    // that are listed, and as many that are skipped
)

// clockStep is how much a file's time may lag behind the clock.
const clockStep = 20 * time.Millisecond

// A workspace finds a run's changes in its folder.
type workspace struct {
	root   *os.Root
	before snapshot
}

// folder returns the open folder; nil: there is no workspace.
func (w *workspace) folder() *os.Root {
	if w == nil {
		return nil
	}
	return w.root
}

// A snapshot is the state of a workspace at one time.
type snapshot struct {
	entries  map[string]paths.Stamp // slash path → its stamp; has a folder only if it could not be read
	complete bool                   // nothing was left out
}

// scan takes a snapshot. It opens folders only, so nothing in the workspace
// can make it wait.
func scan(root *os.Root) snapshot {
	s := snapshot{entries: map[string]paths.Stamp{}, complete: true}
	seen := 0
	dirs := []string{"."}
	for len(dirs) > 0 {
		dir := dirs[len(dirs)-1]
		dirs = dirs[:len(dirs)-1]
		f, err := root.OpenFile(dir, os.O_RDONLY|paths.DirOnly, 0)
		if err != nil {
			if info, err := root.Lstat(dir); err == nil {
				s.entries[dir] = paths.StampOf(info)
			}
			continue
		}
		for more := true; more; {
			list, err := f.ReadDir(256)
			more = err == nil
			for _, e := range list {
				if seen++; seen > maxWalked {
					s.complete, more, dirs = false, false, nil
					break
				}
				name := path.Join(dir, e.Name())
				info, err := root.Lstat(name)
				switch {
				case err != nil: // gone again
				case !info.IsDir():
					s.entries[name] = paths.StampOf(info)
				case strings.Count(name, "/") < maxDepth:
					dirs = append(dirs, name)
				default:
					s.complete = false
				}
			}
		}
		_ = f.Close()
	}
	return s
}

// changedSince reports whether the entry at name is new, or differs from the one in
// s. The program was started at the given time.
func (s *snapshot) changedSince(name string, now paths.Stamp, started time.Time) bool {
	then, ok := s.entries[name]
	if !ok && !s.complete {
		return !now.Changed.Before(started.Add(-clockStep))
	}
	return !ok || then != now
}

// report adds to res what the run changed in the workspace.
func (w *workspace) report(res *sandbox.Result, limits sandbox.Limits) {
	after := scan(w.root)
	res.Incomplete = !after.complete
	for _, c := range []*sandbox.Capture{&res.Stdout, &res.Stderr, &res.Merged} {
		if c.File != "" {
			res.Artifacts = append(res.Artifacts, sandbox.Artifact{Path: c.File, Size: c.Total})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after.entries)) {
		st := after.entries[name]
		if slices.Contains(strings.Split(name, "/"), capture.Dir) || !w.before.changedSince(name, st, res.Started) {
			continue
		}
		size, reason := w.artifact(name, st, limits)
		switch {
		case reason == "" && len(res.Artifacts) < maxArtifacts:
			res.Artifacts = append(res.Artifacts, sandbox.Artifact{Path: name, Size: size})
		case reason != "" && len(res.Skipped) < maxArtifacts:
			res.Skipped = append(res.Skipped, sandbox.SkippedArtifact{Path: name, Reason: reason})
		default:
			res.MoreArtifacts++
		}
	}
}

// artifact returns the size of the regular file at name, or the reason why it is no
// artifact.
func (w *workspace) artifact(name string, st paths.Stamp, limits sandbox.Limits) (size int64, reason string) {
	if reason := unfit(st, limits); reason != "" {
		return 0, reason
	}
	f, err := w.root.OpenFile(name, os.O_RDONLY|paths.Nonblock, 0)
	if err != nil {
		return 0, "cannot be read: " + paths.Cause(err)
	}
	defer f.Close()
	// The open file may not be the one that was scanned.
	info, err := f.Stat()
	if err != nil {
		return 0, "cannot be read: " + paths.Cause(err)
	}
	if reason := unfit(paths.StampOf(info), limits); reason != "" {
		return 0, reason
	}
	return info.Size(), ""
}

func unfit(st paths.Stamp, limits sandbox.Limits) string {
	switch {
	case st.Mode&fs.ModeSymlink != 0:
		return "is a symbolic link"
	case st.Mode&fs.ModeNamedPipe != 0:
		return "is a FIFO"
	case st.Mode&fs.ModeSocket != 0:
		return "is a socket"
	case st.Mode&fs.ModeDevice != 0:
		return "is a device"
	case st.Mode.IsDir():
		return "is a folder that cannot be read"
	case !st.Mode.IsRegular():
		return "is not a regular file"
	case st.Mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
		return "runs with the rights of its owner or group (set-ID)"
	case st.Links > 1:
		return "has more than one name (hard links)"
	case st.Size > limits.FileSize:
		return fmt.Sprintf("is larger than %d bytes", limits.FileSize)
	}
	return ""
}
