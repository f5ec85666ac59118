package watch

// This file decides which directories the system watches.

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

func (n *notified) follow(ctx context.Context, lib Library, took time.Duration) (fresh []string, err error) {
	n.lib = lib
	if took > 0 {
		n.recheck.Reset(max(n.opts.Recheck, 100*took))
		n.next = time.Now().Add(max(n.opts.Every, 20*took))
	} else if n.watched != nil && len(n.moved) == 0 && !n.came && !n.lost {
		return nil, nil
	}
	for _, err := range n.beside(func() { fresh, err = n.change(ctx, lib) }) {
		n.failed(err)
	}
	return fresh, err
}

// change starts and stops watching directories until those of lib are watched. It
// returns the new ones.
func (n *notified) change(ctx context.Context, lib Library) (fresh []string, err error) {
	for path := range n.watched {
		// A path that was renamed must not be watched under its old name.
		if n.lost || isOrBelow(path, n.moved) {
			n.unwatch(path)
		}
	}
	n.moved, n.came, n.lost = make(map[string]bool), false, false
	begins := n.watched == nil
	if begins {
		n.watched = make(map[string]use)
		n.files = filesOf(lib)
	}

	// There may be very many directories, so do not make a second map of them.
	n.round ^= round
	var added []string
	count := 0
	for dir := range lib.Dirs() {
		if ctx.Err() != nil {
			return nil, nil
		}
		if count++; n.most > 0 && count > n.most {
			return nil, fmt.Errorf("more than %d directories", n.most)
		}
		was, known := n.watched[dir]
		if !known {
			added = append(added, dir)
			continue
		}
		n.watched[dir] = forPacks | n.round
		if was&forPacks == 0 && !begins {
			fresh = append(fresh, dir)
		}
	}
	paths := make(map[string]use)
	n.findPaths(lib, paths)
	for path := range paths {
		if why, known := n.watched[path]; known && why&round == n.round {
			n.watched[path] |= forPath
		} else if known {
			n.watched[path] = forPath | n.round
		}
	}
	for path, why := range n.watched {
		if why&round != n.round {
			n.unwatch(path)
		}
	}
	for _, path := range added {
		if ctx.Err() != nil {
			return nil, nil
		}
		if _, known := n.watched[path]; known {
			continue // roots overlap
		}
		switch ok, err := n.watch(path, forPacks|paths[path]); {
		case err != nil:
			return nil, fmt.Errorf("watching %d directories: %w", count, err)
		case ok && !begins:
			fresh = append(fresh, path)
		}
	}
	for path := range paths {
		if _, known := n.watched[path]; !known {
			if _, err := n.watch(path, forPath); err != nil {
				return nil, fmt.Errorf("watching %d directories: %w", count, err)
			}
		}
	}
	// A look at the new directories may find more.
	n.came = len(fresh) > 0
	// This may have changed between the look and the events.
	n.all = n.rootsMoved() || n.all
	n.file = n.files.changed() || n.file
	for path, was := range n.spots {
		if is, _ := spot(path); is != was {
			n.moved[is], n.all = true, true
		}
	}
	return fresh, nil
}

// watch reports whether a directory is now watched. It is not an error if the
// directory is gone, was replaced, or may not be read: an event above it says so. An
// error means that the system can watch no more directories.
func (n *notified) watch(path string, why use) (bool, error) {
	err := n.watcher.Add(path)
	switch {
	case err == nil:
		n.watched[path] = why | n.round
	case isNoMore(err):
		return false, err
	default:
		n.opts.Logger.Debug("watching a folder of packs", "dir", path, "err", err)
	}
	return err == nil, nil
}

// isNoMore reports whether an error says that the system can watch no more
// directories.
func isNoMore(err error) bool {
	return packfs.IsStarved(err) || errors.Is(err, syscall.ENOSPC) // of inotify: too many watches
}

func (n *notified) unwatch(path string) {
	// It is not an error if the directory is gone, and so no longer watched.
	_ = n.watcher.Remove(path)
	delete(n.watched, path)
}
