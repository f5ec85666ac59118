//go:build linux && (amd64 || arm64)

package linux

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
)

// Hint says, as far as can be found out, what keeps this machine from a better level
// and what to do about it: clauses without a full stop, commands in backquotes. It is
// empty if there is no better level or no reason is found.
func (System) Hint(r *sandbox.Report) string {
	if r.Level == sandbox.LevelFull {
		return ""
	}
	m := machine{files: os.DirFS("/"), env: os.Getenv, root: os.Geteuid() == 0}
	_, _, m.landlock = unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if exe, err := os.Executable(); err == nil {
		if m.exe, err = filepath.EvalSymlinks(exe); err != nil {
			m.exe = exe
		}
	}
	return m.hint(r)
}

// A machine is what a hint is based on: what the system reports about itself, never
// its version.
type machine struct {
	files    fs.FS // the root folder
	env      func(name string) string
	landlock syscall.Errno // the kernel's error when asked for Landlock's version; 0: it has Landlock
	root     bool          // we are root
	exe      string        // this program's path
}

func (m *machine) hint(r *sandbox.Report) string {
	// With Landlock, only the full level needs namespaces; without it, the
	// partial one as well, and the full one is not tried.
	wanted := sandbox.LevelFull
	if m.landlock != 0 {
		wanted = sandbox.LevelPartial
	}
	var hints []string
	if m.landlock != 0 && len(problems(r, sandbox.LevelFull)) > 0 {
		hints = append(hints, m.aboutLandlock())
	}
	if found := problems(r, wanted); len(found) > 0 {
		hints = append(hints, m.aboutNamespaces(found)...)
	}
	return strings.Join(hints, "; also, ")
}

// problems returns why a level does not work, apart from our own configuration.
func problems(r *sandbox.Report, of sandbox.Level) []string {
	var found []string
	for _, t := range r.Trials {
		if t.Level == of && t.Problem != "" && t.Problem != level.ErrSkipped.Error() {
			found = append(found, t.Problem)
		}
	}
	return found
}

func (m *machine) aboutLandlock() string {
	switch {
	case m.landlock == syscall.EOPNOTSUPP:
		order := "landlock,…"
		if lsm := m.text("sys/kernel/security/lsm"); lsm != "" {
			order = "landlock," + lsm
		}
		return fmt.Sprintf("the kernel has Landlock, and it was not switched on at boot: add `lsm=%s` to the kernel's parameters, and start the machine again", order)
	case m.filtered():
		return fmt.Sprintf("%s forbids the system calls of Landlock: let its seccomp filter allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self, or start packs-mcp outside of it", cmp.Or(m.container().words, m.sandbox(), "what this program was started in"))
	case m.landlock == syscall.ENOSYS:
		return "the kernel was built without Landlock: a kernel of your distribution that has CONFIG_SECURITY_LANDLOCK brings it"
	}
	return fmt.Sprintf("the kernel refuses to use Landlock (%v): look into the system's log for what forbids it", m.landlock)
}

// aboutNamespaces says why namespaces do not work. Settings of the machine that
// forbid them come before guesses from the surroundings.
func (m *machine) aboutNamespaces(problems []string) []string {
	var hints []string
	on := "" // where the kernel's settings are
	where := m.container()
	if where.words != "" {
		on = " on the machine that the container runs on"
	}
	for _, kind := range []string{"user", "mnt", "pid", "net", "ipc", "uts"} {
		if m.text("proc/sys/user/max_"+kind+"_namespaces") == "0" {
			hints = append(hints, fmt.Sprintf("the setting user.max_%s_namespaces allows no namespaces: run `sudo sysctl -w user.max_%[1]s_namespaces=10000`%s", kind, on))
		}
	}
	if !m.root && m.text("proc/sys/kernel/unprivileged_userns_clone") == "0" {
		hints = append(hints, fmt.Sprintf("the setting kernel.unprivileged_userns_clone keeps user namespaces to root: run `sudo sysctl -w kernel.unprivileged_userns_clone=1`%s", on))
	}
	label := m.text("proc/self/attr/current")
	if !m.root && m.text("proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && (label == "" || strings.HasPrefix(label, "unconfined")) {
		hint := "AppArmor keeps programs from using user namespaces: "
		if where.words == "" && plainPath(m.exe) {
			hint += fmt.Sprintf("allow it for this one with `echo 'abi <abi/4.0>, profile packs-mcp \"%s\" flags=(unconfined) { userns, }' | sudo tee /etc/apparmor.d/packs-mcp && sudo apparmor_parser -r /etc/apparmor.d/packs-mcp`, or for every program with ", m.exe)
		} else {
			hint += "allow it for every program with "
		}
		hints = append(hints, hint+"`sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"+on)
	}
	covered := m.covered()
	proc := len(covered) > 0 && slices.ContainsFunc(problems, func(p string) bool { return strings.Contains(p, "/proc:") })
	confined := label != "" && !strings.HasPrefix(label, "unconfined")
	switch {
	case where.words != "" && proc && where.unmask != "":
		return append(hints, fmt.Sprintf("%s covers parts of /proc, so that no new one can be had: %s", where.words, where.unmask))
	case where.words != "" && (m.filtered() || confined || len(covered) > 0):
		return append(hints, fmt.Sprintf("%s keeps programs from making namespaces or mounts: %s (the container itself is then less closed)", where.words, where.open))
	case where.words == "" && proc:
		return append(hints, fmt.Sprintf("parts of /proc are covered by other mounts (%s), and no new /proc can be had as long as they are: unmount them", strings.Join(covered, ", ")))
	}
	if len(hints) > 0 {
		return hints
	}
	if sandbox := m.sandbox(); sandbox != "" {
		return []string{fmt.Sprintf("packs-mcp was started inside of %s, which allows no namespaces: have it started outside, or leave this sandbox out for it in your client's settings", sandbox)}
	}
	return nil
}

// A place is a kind of container.
type place struct {
	words  string // "this Docker container"; empty: none
	open   string // what lets it have namespaces
	unmask string // what lets it have its own /proc, if only that is missing
}

func (m *machine) container() place {
	cgroups := m.text("proc/self/cgroup") + m.text("proc/1/cgroup")
	kind := m.env("container")
	switch {
	case m.env("KUBERNETES_SERVICE_HOST") != "" || strings.Contains(cgroups, "kubepods"):
		return place{
			"this Kubernetes container",
			"give it `hostUsers: false` and `securityContext: {seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}, procMount: Unmasked}`",
			"give it `hostUsers: false` and `securityContext: {procMount: Unmasked}`",
		}
	case m.exists("run/.containerenv") || kind == "podman" || strings.Contains(cgroups, "libpod"):
		return place{
			"this Podman container",
			"start it with `--security-opt seccomp=unconfined --security-opt unmask=ALL`",
			"start it with `--security-opt unmask=ALL`",
		}
	case m.exists(".dockerenv") || kind == "docker" || strings.Contains(cgroups, "docker"):
		return place{
			"this Docker container",
			"start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined`",
			"start it with `--security-opt systempaths=unconfined`",
		}
	case kind == "lxc" || strings.Contains(cgroups, "lxc"):
		return place{"this LXC container", "allow nesting in it, as with `lxc config set NAME security.nesting true`", ""}
	case kind != "" && kind != "flatpak" && kind != "snap" || strings.Contains(cgroups, "containerd"):
		return place{"this container", "let its seccomp filter and its security module allow namespaces and mounts, and show it all of /proc", ""}
	}
	return place{}
}

// sandbox names the sandbox that we were started in, if there is one.
func (m *machine) sandbox() string {
	switch {
	case m.exists(".flatpak-info") || m.env("container") == "flatpak":
		return "Flatpak's sandbox"
	case m.env("SNAP") != "":
		return "a snap's sandbox"
	case m.text("proc/1/comm") == "bwrap":
		return "a bubblewrap sandbox"
	case m.filtered() || m.status("NoNewPrivs") == "1":
		return "another sandbox, perhaps your client's own"
	}
	return ""
}

// filtered reports whether a seccomp filter applies to this process.
func (m *machine) filtered() bool { return m.status("Seccomp") == "2" }

func (m *machine) status(key string) string {
	for line := range strings.Lines(m.text("proc/self/status")) {
		if name, value, ok := strings.Cut(line, ":"); ok && name == key {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// covered returns at most three mounts on top of parts of /proc, except the one that
// every machine has.
func (m *machine) covered() []string {
	var found []string
	for line := range strings.Lines(m.text("proc/self/mountinfo")) {
		fields := strings.Fields(line)
		if len(fields) < 5 || !strings.HasPrefix(fields[4], "/proc/") || fields[4] == "/proc/sys/fs/binfmt_misc" || slices.Contains(found, fields[4]) {
			continue
		}
		if len(found) == 3 {
			return append(found, "…")
		}
		found = append(found, fields[4])
	}
	return found
}

// text returns a file's content without surrounding space, or "".
func (m *machine) text(name string) string {
	data, err := fs.ReadFile(m.files, name)
	if err != nil {
		return ""
	}
	return strings.TrimRight(strings.TrimSpace(string(data)), "\x00")
}

func (m *machine) exists(name string) bool {
	_, err := fs.Stat(m.files, name)
	return err == nil
}

// plainPath reports whether path needs no escaping in shell quotes and in an AppArmor
// profile.
func plainPath(path string) bool {
	return filepath.IsAbs(path) && !strings.ContainsFunc(path, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("/._+-", r))
	})
}
