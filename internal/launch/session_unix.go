//go:build unix && !darwin

package launch

import (
	"bufio"
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// managerTime is how long the user's service manager may take to answer. It
// answers within milliseconds or is broken.
const managerTime = 2 * time.Second

// withSession returns environ with the variables of the user's graphical session,
// if environ has no display. Some clients start servers with HOME and PATH alone.
// It adds nothing over SSH, since the person is not at this machine's screen.
//
// It believes only what other users cannot have put there: what the user's own
// service manager says, and sockets of this user's.
func withSession(environ []string) []string {
	return withSessionOf(systemProgram("systemctl", isFile), environ)
}

// withSessionOf is withSession with the path of the program that queries the service
// manager; empty if there is none.
func withSessionOf(systemctl string, environ []string) []string {
	for _, name := range []string{"DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"} {
		if valueOf(environ, name) != "" {
			return environ
		}
	}
	environ = slices.Clip(environ)
	add := func(name, value string) {
		if valueOf(environ, name) == "" {
			environ = append(environ, name+"="+value)
		}
	}
	// The folder that "XDG Base Directory Specification" calls XDG_RUNTIME_DIR, and
	// that pam_systemd and elogind make at this place.
	dir := valueOf(environ, "XDG_RUNTIME_DIR")
	if dir == "" {
		dir = filepath.Join("/run/user", strconv.Itoa(os.Geteuid()))
	}
	if info, err := os.Lstat(dir); err == nil && info.IsDir() && info.Mode().Perm()&0o077 == 0 && owned(info) {
		add("XDG_RUNTIME_DIR", dir)
		if bus := filepath.Join(dir, "bus"); isSocket(bus) {
			add("DBUS_SESSION_BUS_ADDRESS", "unix:path="+bus)
		}
		for name, value := range managed(systemctl, environ) {
			add(name, value)
		}
		if valueOf(environ, "DISPLAY") == "" {
			if name := firstSocket(filepath.Join(dir, "wayland-[0-9]*")); name != "" {
				add("WAYLAND_DISPLAY", name)
			}
		}
	}
	if valueOf(environ, "WAYLAND_DISPLAY") == "" {
		if name := firstSocket("/tmp/.X11-unix/X[0-9]*"); name != "" {
			add("DISPLAY", ":"+strings.TrimPrefix(name, "X"))
		}
	}
	return environ
}

// managed returns what the user's service manager knows of the graphical session:
// desktops tell it these variables. It is empty where there is no such manager.
func managed(systemctl string, environ []string) map[string]string {
	if systemctl == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), managerTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, systemctl, "--user", "show-environment")
	cmd.Env, cmd.Dir = environ, "/"
	cmd.WaitDelay = managerTime
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	// These suffice to reach the display, and tell xdg-open which desktop it is.
	wanted := []string{
		"DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_SESSION_TYPE",
		"XDG_CURRENT_DESKTOP", "DESKTOP_SESSION", "KDE_FULL_SESSION", "KDE_SESSION_VERSION", "XDG_DATA_DIRS",
	}
	found := make(map[string]string)
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "=")
		// A value with unusual characters is quoted for a shell; no display has one.
		if slices.Contains(wanted, name) && value != "" && !strings.HasPrefix(value, "$'") {
			found[name] = value
		}
	}
	return found
}

// firstSocket returns the name of the first socket of this user's that a pattern
// matches; empty if there is none.
func firstSocket(pattern string) string {
	all, _ := filepath.Glob(pattern) // the pattern is well formed
	for _, path := range all {
		if isSocket(path) {
			return filepath.Base(path)
		}
	}
	return ""
}

// isSocket reports whether path is a socket that this user made.
func isSocket(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.Mode().Type() == fs.ModeSocket && owned(info)
}

// owned reports whether a file belongs to this user.
func owned(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid()
}

// valueOf returns the value of a variable. If it occurs more than once, the last counts.
func valueOf(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}
