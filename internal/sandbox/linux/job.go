//go:build linux && (amd64 || arm64)

package linux

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/groups"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/seccomp"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/supervised"
)

// job builds the job for the helper.
func (s *confiner) job(l *level.Launch) (*confine.Job, error) {
	network := l.Policy.Network
	if network.OwnLoopback() && !s.namespaces {
		return nil, &sandbox.ConfineError{Level: s.level, Step: "giving the program a loopback network of its own",
			Err: errors.New("that takes level full")}
	}
	j := &confine.Job{
		Path: l.Argv[0], Args: l.Argv[1:], Env: l.Env,
		Namespaces: s.namespaces, HostNet: network == sandbox.NetworkFull, Loopback: network.OwnLoopback(),
		Filter: s.filter(l),
	}
	if l.Listener != nil {
		j.Listen = level.ListenPort
	}
	supervised.SetLimits(j, l.Policy.Limits)
	j.Limits.Together, j.Limits.Processors = l.Policy.Together.Memory, int64(l.Policy.Together.Processors)
	if os.Getuid() == 0 || l.Policy.Together != (sandbox.Together{}) {
		// The kernel's limit on processes does not apply to root.
		j.Group = groups.Prefix + rand.Text()
	}
	t := view{confined: s, job: j, images: l.Images}
	t.fill(l)
	if err := t.check(l.Command.Dir); err != nil {
		return nil, err
	}
	if !s.namespaces {
		j.Env = t.withoutHidden(l.Env)
	}
	if err := t.enter(l.Command); err != nil {
		return nil, err
	}
	t.pin(l)
	t.order()
	supervised.Restrict(&j.Landlock, s.landlock, j.Filter.Network != seccomp.NetworkNone)
	return j, nil
}

// filter returns what seccomp must refuse.
func (s *confiner) filter(l *level.Launch) seccomp.Filter {
	f := seccomp.Filter{Alone: !s.namespaces, NoScope: s.landlock < 6}
	if s.noListener != nil {
		f.NoListener, f.Piece = true, supervised.PieceOf(l.Policy.Limits)
	}
	switch {
	case l.Policy.Network == sandbox.NetworkNone:
	case !s.opensSockets(l):
		f.Network = seccomp.NetworkInternet
	default:
		f.Network = seccomp.NetworkLocal
	}
	if f.Alone && f.NoScope {
		f.Keep = []int64{int64(os.Getpid()), int64(unix.Getpgrp()), int64(os.Getppid())}
	}
	return f
}

// opensSockets reports whether a run may use named unix sockets. It must not reach
// those of other programs. From ABI 9 on, Landlock ensures that. On older kernels, a
// run may use them only if it sees no folder in which other programs could have one;
// the program's installation and the user's projects are such folders.
func (s *confiner) opensSockets(l *level.Launch) bool {
	if !s.namespaces || s.landlock < 6 && l.Policy.Network == sandbox.NetworkFull { // abstract names belong to the network
		return false
	}
	if s.landlock >= 9 {
		return true
	}
	for _, path := range slices.Concat(l.Command.Program.Needs, l.Policy.ReadOnly, l.Policy.Writable, l.Policy.LayerFolders()) {
		if !l.Images.Covers(path) && !slices.Contains(l.Policy.Private, path) && !inSystem(path) && !isFile(path) {
			return false
		}
	}
	return true
}

// inSystem reports whether path leads into a folder of the system.
func inSystem(path string) bool {
	resolved, err := filepath.EvalSymlinks(path)
	return err == nil && paths.IsSystem(resolved)
}
