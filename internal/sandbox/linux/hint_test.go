//go:build linux && (amd64 || arm64)

package linux

import (
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
)

func TestHint(t *testing.T) {
	const denied = "make namespaces: operation not permitted"
	full := []sandbox.Trial{{Level: sandbox.LevelFull, Problem: denied}, {Level: sandbox.LevelPartial}}
	const masked = "22 1 0:20 / /proc rw - proc proc rw\n23 22 0:21 / /proc/sys/fs/binfmt_misc rw - autofs x rw\n" +
		"24 22 0:22 / /proc/kcore rw - tmpfs x rw\n25 22 0:22 / /proc/kcore rw - tmpfs x rw\n"
	type files map[string]string
	tests := []struct {
		name     string
		files    files
		env      map[string]string
		landlock syscall.Errno
		root     bool
		exe      string
		trials   []sandbox.Trial
		level    sandbox.Level
		want     string
	}{
		{name: "nothing is wrong", trials: []sandbox.Trial{{Level: sandbox.LevelFull}}, level: sandbox.LevelFull},
		{
			name: "left out by configuration", files: files{"proc/sys/user/max_user_namespaces": "0\n"}, landlock: syscall.ENOSYS,
			trials: []sandbox.Trial{{Level: sandbox.LevelFull, Problem: level.ErrSkipped.Error()}, {Level: sandbox.LevelPartial, Problem: level.ErrSkipped.Error()}, {Level: sandbox.LevelNone}},
		},
		{name: "nobody knows", files: files{"proc/self/status": "NoNewPrivs:\t0\nSeccomp:\t0\n"}, trials: full, level: sandbox.LevelPartial},
		{
			name: "Ubuntu", trials: full, level: sandbox.LevelPartial, exe: "/usr/local/bin/packs-mcp",
			files: files{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n", "proc/sys/kernel/unprivileged_userns_clone": "1\n", "proc/self/attr/current": "unconfined\n"},
			want: "AppArmor keeps programs from using user namespaces: allow it for this one with `echo 'abi <abi/4.0>, profile packs-mcp \"/usr/local/bin/packs-mcp\" flags=(unconfined) { userns, }'" +
				" | sudo tee /etc/apparmor.d/packs-mcp && sudo apparmor_parser -r /etc/apparmor.d/packs-mcp`, or for every program with `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`",
		},
		{
			name: "Ubuntu, with a path that a profile reads in another way", trials: full, level: sandbox.LevelPartial, exe: "/home/a{b}/it's/packs-mcp",
			files: files{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"},
			want:  "AppArmor keeps programs from using user namespaces: allow it for every program with `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`",
		},
		{
			name: "Ubuntu, with the profile, and something else is wrong", trials: full, level: sandbox.LevelPartial,
			files: files{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n", "proc/self/attr/current": "packs-mcp (unconfined)\n"},
		},
		{
			name: "Ubuntu, as root", trials: full, level: sandbox.LevelPartial, root: true,
			files: files{"proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n", "proc/sys/kernel/unprivileged_userns_clone": "0\n"},
		},
		{
			name: "Debian's switch", trials: full, level: sandbox.LevelPartial,
			files: files{"proc/sys/kernel/unprivileged_userns_clone": "0\n"},
			want:  "the setting kernel.unprivileged_userns_clone keeps user namespaces to root: run `sudo sysctl -w kernel.unprivileged_userns_clone=1`",
		},
		{
			name: "no namespaces at all", trials: full, level: sandbox.LevelPartial,
			files: files{"proc/sys/user/max_user_namespaces": "0\n", "proc/sys/user/max_net_namespaces": "15000\n"},
			want:  "the setting user.max_user_namespaces allows no namespaces: run `sudo sysctl -w user.max_user_namespaces=10000`",
		},
		{
			name: "Docker", trials: full, level: sandbox.LevelPartial,
			files: files{".dockerenv": "", "proc/self/status": "Seccomp:\t2\n", "proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n", "proc/self/attr/current": "docker-default (enforce)\n"},
			want: "this Docker container keeps programs from making namespaces or mounts: start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined" +
				" --security-opt systempaths=unconfined` (the container itself is then less closed)",
		},
		{
			name: "Docker, without a filter, on Ubuntu", trials: []sandbox.Trial{{Level: sandbox.LevelFull, Problem: "create the file system for /proc: operation not permitted"}, {Level: sandbox.LevelPartial}}, level: sandbox.LevelPartial, exe: "/packs-mcp",
			files: files{".dockerenv": "", "proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n", "proc/self/attr/current": "unconfined\n", "proc/self/mountinfo": masked},
			want: "AppArmor keeps programs from using user namespaces: allow it for every program with `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` on the machine that the container runs on; also, " +
				"this Docker container covers parts of /proc, so that no new one can be had: start it with `--security-opt systempaths=unconfined`",
		},
		{
			name: "an image of Docker's that is no container any more", trials: []sandbox.Trial{{Level: sandbox.LevelFull, Problem: "open /proc/self/setgroups: permission denied"}, {Level: sandbox.LevelPartial}}, level: sandbox.LevelPartial,
			files: files{".dockerenv": "", "proc/self/status": "NoNewPrivs:\t0\nSeccomp:\t0\n", "proc/self/mountinfo": "22 1 0:20 / /proc rw - proc proc rw\n"},
		},
		{
			name: "Podman", trials: full, level: sandbox.LevelPartial, env: map[string]string{"container": "podman"}, files: files{"proc/self/status": "Seccomp:\t2\n"},
			want: "this Podman container keeps programs from making namespaces or mounts: start it with `--security-opt seccomp=unconfined --security-opt unmask=ALL` (the container itself is then less closed)",
		},
		{
			name: "Kubernetes", trials: full, level: sandbox.LevelPartial, files: files{"proc/1/cgroup": "0::/kubepods/burstable/pod1\n", "proc/self/mountinfo": masked},
			want: "this Kubernetes container keeps programs from making namespaces or mounts: give it `hostUsers: false` and `securityContext: {seccompProfile: {type: Unconfined}, appArmorProfile: {type: Unconfined}, procMount: Unmasked}` (the container itself is then less closed)",
		},
		{
			name: "LXC", trials: full, level: sandbox.LevelPartial, env: map[string]string{"container": "lxc"}, files: files{"proc/self/attr/current": "lxc-container-default-cgns (enforce)"},
			want: "this LXC container keeps programs from making namespaces or mounts: allow nesting in it, as with `lxc config set NAME security.nesting true` (the container itself is then less closed)",
		},
		{
			name: "some container", trials: full, level: sandbox.LevelPartial, env: map[string]string{"container": "oci"}, files: files{"proc/self/status": "Seccomp:\t2\n"},
			want: "this container keeps programs from making namespaces or mounts: let its seccomp filter and its security module allow namespaces and mounts, and show it all of /proc (the container itself is then less closed)",
		},
		{
			name: "a covered /proc", trials: []sandbox.Trial{{Level: sandbox.LevelFull, Problem: "create the file system for /proc: operation not permitted"}, {Level: sandbox.LevelPartial}}, level: sandbox.LevelPartial,
			files: files{"proc/self/mountinfo": masked},
			want:  "parts of /proc are covered by other mounts (/proc/kcore), and no new /proc can be had as long as they are: unmount them",
		},
		{
			name: "Flatpak", trials: full, level: sandbox.LevelPartial, files: files{".flatpak-info": "", "proc/self/status": "Seccomp:\t2\n"}, env: map[string]string{"container": "flatpak"},
			want: "packs-mcp was started inside of Flatpak's sandbox, which allows no namespaces: have it started outside, or leave this sandbox out for it in your client's settings",
		},
		{
			name: "a snap", trials: full, level: sandbox.LevelPartial, env: map[string]string{"SNAP": "/snap/code/1"},
			want: "packs-mcp was started inside of a snap's sandbox, which allows no namespaces: have it started outside, or leave this sandbox out for it in your client's settings",
		},
		{
			name: "bubblewrap", trials: full, level: sandbox.LevelPartial, files: files{"proc/1/comm": "bwrap\n"},
			want: "packs-mcp was started inside of a bubblewrap sandbox, which allows no namespaces: have it started outside, or leave this sandbox out for it in your client's settings",
		},
		{
			name: "the client's sandbox", trials: full, level: sandbox.LevelPartial, files: files{"proc/self/status": "Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t1\n"},
			want: "packs-mcp was started inside of another sandbox, perhaps your client's own, which allows no namespaces: have it started outside, or leave this sandbox out for it in your client's settings",
		},
		{
			name: "Landlock is off", landlock: syscall.EOPNOTSUPP, level: sandbox.LevelPartial, files: files{"sys/kernel/security/lsm": "capability,yama,apparmor"},
			trials: []sandbox.Trial{{Level: sandbox.LevelFull, Problem: "the kernel has no Landlock"}, {Level: sandbox.LevelPartial}},
			want:   "the kernel has Landlock, and it was not switched on at boot: add `lsm=landlock,capability,yama,apparmor` to the kernel's parameters, and start the machine again",
		},
		{
			name: "no Landlock", landlock: syscall.ENOSYS, level: sandbox.LevelPartial,
			trials: []sandbox.Trial{{Level: sandbox.LevelFull, Problem: "the kernel has no Landlock"}, {Level: sandbox.LevelPartial}},
			want:   "the kernel was built without Landlock: a kernel of your distribution that has CONFIG_SECURITY_LANDLOCK brings it",
		},
		{
			name: "a container forbids Landlock, and namespaces too", landlock: syscall.ENOSYS, files: files{".dockerenv": "", "proc/self/status": "Seccomp:\t2\n"},
			trials: []sandbox.Trial{{Level: sandbox.LevelFull, Problem: "the kernel has no Landlock"}, {Level: sandbox.LevelPartial, Problem: denied}, {Level: sandbox.LevelNone}},
			want: "this Docker container forbids the system calls of Landlock: let its seccomp filter allow landlock_create_ruleset, landlock_add_rule and landlock_restrict_self, or start packs-mcp outside of it; also, " +
				"this Docker container keeps programs from making namespaces or mounts: start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined` (the container itself is then less closed)",
		},
		{
			name: "Landlock is refused", landlock: syscall.EPERM, level: sandbox.LevelPartial,
			trials: []sandbox.Trial{{Level: sandbox.LevelFull, Problem: "the kernel has no Landlock"}, {Level: sandbox.LevelPartial}},
			want:   "the kernel refuses to use Landlock (operation not permitted): look into the system's log for what forbids it",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for name, text := range tt.files {
				fsys[name] = &fstest.MapFile{Data: []byte(text)}
			}
			m := machine{files: fsys, env: func(name string) string { return tt.env[name] }, landlock: tt.landlock, root: tt.root, exe: tt.exe}
			if got := m.hint(&sandbox.Report{Level: tt.level, Trials: tt.trials}); got != tt.want {
				t.Errorf("hint() =\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// Hint works on this machine, whatever it is.
func TestHintHere(t *testing.T) {
	r := &sandbox.Report{Trials: []sandbox.Trial{{Level: sandbox.LevelFull, Problem: "x"}, {Level: sandbox.LevelPartial, Problem: "x"}, {Level: sandbox.LevelNone}}}
	t.Logf("hint here, if nothing worked: %q", System{}.Hint(r))
}
