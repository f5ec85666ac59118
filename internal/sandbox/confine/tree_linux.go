//go:build amd64 || arm64

package confine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"path"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/broker"
)

// Slots of a plan. A slot keeps its value until the next step that sets it.
const (
	slotRoot ref = iota + 1 // the root of the new tree, for the whole plan
	slotFrom                // what is bound, or being configured
	slotTree                // a mount that is not attached yet
	slotAt                  // where it goes
	slotGot                 // how much was read
)

const (
	resolve    = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	readOnly   = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	writable   = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	device     = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC // writing to a device does not change its file
	emptyPaths = unix.MOVE_MOUNT_F_EMPTY_PATH | unix.MOVE_MOUNT_T_EMPTY_PATH
)

const sizeofMountAttr = int(unsafe.Sizeof(unix.MountAttr{}))

// maxFiles bounds the files of a tmpfs, each of which takes memory.
const maxFiles = "200000"

// namespaces gives the child its own user namespace, with the ids it had, and its own
// file tree, and moves it there.
func (p *plan) namespaces(j *Job, uid, gid int) {
	p.sacrifice()
	if uid == 0 {
		p.mapped()
	} else {
		p.write("/proc/self/setgroups", "deny")
		p.write("/proc/self/uid_map", fmt.Sprintf("%d %d 1", uid, uid))
		p.write("/proc/self/gid_map", fmt.Sprintf("%d %d 1", gid, gid))
	}
	if j.Loopback && !j.HostNet {
		p.loopback()
		p.listen(j.Listen)
	}
	p.call("keep mounts to ourselves", unix.SYS_MOUNT, 0, "/", 0, unix.MS_REC|unix.MS_PRIVATE, 0)

	// The parents of all binds are made first, so that nested binds can be made in
	// order.
	p.tmpfs("/", 16<<20, "0755", writable)
	made := map[string]bool{"/": true}
	for _, dir := range []string{"/proc", "/dev/shm", "/dev/pts", "/tmp", "/var", "/run"} {
		p.folder(made, dir)
	}
	p.tmpfs("/tmp", j.TmpSize, "1777", writable)
	p.tmpfs("/dev/shm", j.TmpSize, "1777", writable|unix.MOUNT_ATTR_NOEXEC)
	p.terminals()
	for _, l := range j.Links {
		p.folder(made, path.Dir(l.Path))
		p.in(path.Dir(l.Path))
		p.call("link "+l.Path, unix.SYS_SYMLINKAT, l.Target, slotAt, path.Base(l.Path)).ignore[0] = uintptr(unix.EEXIST)
	}
	layers := p.layers(j)
	for i, b := range j.Binds {
		p.bind(j, b, made, covered(j.Binds[:i], b.Path))
	}
	if layers {
		p.handOver()
	}
	p.proc()
	p.maskProc(made, uid)
	p.call("make the root read-only", unix.SYS_MOUNT_SETATTR, slotRoot, "", unix.AT_EMPTY_PATH,
		p.attr(unix.MOUNT_ATTR_RDONLY), sizeofMountAttr)

	// pivot_root(2), "pivot_root(".", ".")": the old root ends up on top of the new one,
	// and is removed with everything below it.
	p.call("enter the root", unix.SYS_FCHDIR, slotRoot)
	p.call("pivot_root", unix.SYS_PIVOT_ROOT, ".", ".")
	p.call("leave the old root", unix.SYS_UMOUNT2, ".", unix.MNT_DETACH)
	p.call("enter the new root", unix.SYS_CHDIR, "/")
	p.call("close what leads to the host", unix.SYS_CLOSE_RANGE, 3, fdOrders-1, 0)
	p.call("close what leads to the host", unix.SYS_CLOSE_RANGE, fdServer, ^uintptr(0)>>32, 0)

	const host = "sandbox"
	p.call("set the host name", unix.SYS_SETHOSTNAME, host, len(host))
}

// write writes a file of /proc in one call, as these require.
func (p *plan) write(name, text string) {
	p.call("open "+name, unix.SYS_OPENAT, fdCWD, name, unix.O_WRONLY|unix.O_CLOEXEC, 0).out = uint8(slotFrom)
	p.call("write "+name, unix.SYS_WRITE, slotFrom, text, len(text))
	p.call("close "+name, unix.SYS_CLOSE, slotFrom)
}

func (p *plan) attr(set uint64) unsafe.Pointer {
	return unsafe.Pointer(&unix.MountAttr{Attr_set: set})
}

// tmpfs mounts an empty file system in memory at a folder of the new tree, or as its
// root.
func (p *plan) tmpfs(at string, size int64, mode string, attrs int) {
	p.openTmpfs(at, [][2]string{{"size", fmt.Sprint(size)}, {"nr_inodes", maxFiles}, {"mode", mode}})
	p.place(at, attrs)
}

func (p *plan) openTmpfs(what string, settings [][2]string) {
	p.call("make a tmpfs for "+what, unix.SYS_FSOPEN, "tmpfs", unix.FSOPEN_CLOEXEC).out = uint8(slotFrom)
	for _, kv := range settings {
		p.call(fmt.Sprintf("set %s of the tmpfs for %s", kv[0], what), unix.SYS_FSCONFIG,
			slotFrom, unix.FSCONFIG_SET_STRING, kv[0], kv[1], 0)
	}
}

// proc mounts /proc for the new PID namespace. It also bounds the run's share of the
// user's inotify instances and watches, of which all of the user's programs have one
// total.
func (p *plan) proc() {
	p.call("make /proc", unix.SYS_FSOPEN, "proc", unix.FSOPEN_CLOEXEC).out = uint8(slotFrom)
	p.place("/proc", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
	for _, kv := range [][2]string{
		{"max_inotify_instances", strconv.Itoa(broker.MaxInotifyInstances)}, {"max_inotify_watches", strconv.Itoa(broker.MaxInotifyWatches)},
	} {
		what := "limit " + kv[0]
		first := len(p.steps)
		p.call(what, unix.SYS_OPENAT, slotTree, "sys/user/"+kv[0], unix.O_WRONLY|unix.O_CLOEXEC, 0).out = uint8(slotFrom)
		p.call(what, unix.SYS_WRITE, slotFrom, kv[1], len(kv[1]))
		p.call(what, unix.SYS_CLOSE, slotFrom)
		s := &p.steps[first] // a kernel without inotify has no such limit
		s.ignore[0], s.skip = uintptr(unix.ENOENT), len(p.steps)-first-1
	}
	p.call("make /proc read-only", unix.SYS_MOUNT_SETATTR, slotTree, "", unix.AT_EMPTY_PATH,
		p.attr(unix.MOUNT_ATTR_RDONLY), sizeofMountAttr)
}

// maskProc hides the user's keys, which belong to no namespace. From root's programs,
// it hides the files that only root may read. A device on a nodev mount cannot be
// opened.
func (p *plan) maskProc(made map[string]bool, uid int) {
	names := []string{"keys", "key-users"}
	if uid == 0 {
		names = append(names, "kpageflags", "kpagecount", "kpagecgroup", "slabinfo", "vmallocinfo", "kcore", "kallsyms", "kmsg",
			"timer_list", "sched_debug", "iomem", "ioports", "pagetypeinfo", "allocinfo", "vmcore", "mtrr", "page_owner")
	}
	for _, name := range names {
		if at := "/proc/" + name; exists(at) {
			p.bind(nil, Bind{Path: at, From: "/dev/null", File: true}, made, true)
		}
	}
}

// exists reports whether there is a file of any kind at a path.
func exists(name string) bool { return unix.Access(name, unix.F_OK) == nil }

// terminals mounts an empty set of pseudo terminals, for programs that run others in
// one. None of the user's terminals is among them.
func (p *plan) terminals() {
	p.call("make /dev/pts", unix.SYS_FSOPEN, "devpts", unix.FSOPEN_CLOEXEC).out = uint8(slotFrom)
	for _, kv := range [][2]string{{"ptmxmode", "0666"}, {"mode", "0600"}} {
		p.call("set "+kv[0]+" of /dev/pts", unix.SYS_FSCONFIG, slotFrom, unix.FSCONFIG_SET_STRING, kv[0], kv[1], 0)
	}
	p.place("/dev/pts", unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
}

// place creates and mounts the file system that the previous steps configured.
func (p *plan) place(at string, attrs int) {
	p.call("create the file system for "+at, unix.SYS_FSCONFIG, slotFrom, unix.FSCONFIG_CMD_CREATE, 0, 0, 0)
	if at == "/" {
		p.call("mount the root", unix.SYS_FSMOUNT, slotFrom, unix.FSMOUNT_CLOEXEC, attrs).out = uint8(slotRoot)
		p.call("attach the root", unix.SYS_MOVE_MOUNT, slotRoot, "", fdCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH)
		return
	}
	p.call("mount "+at, unix.SYS_FSMOUNT, slotFrom, unix.FSMOUNT_CLOEXEC, attrs).out = uint8(slotTree)
	p.call("attach "+at, unix.SYS_MOVE_MOUNT, slotTree, "", slotRoot, relative(at), unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// folder makes a folder in the new root, and its parents.
func (p *plan) folder(made map[string]bool, dir string) {
	if made[dir] {
		return
	}
	p.folder(made, path.Dir(dir))
	made[dir] = true
	p.in(path.Dir(dir))
	p.call("make folder "+dir, unix.SYS_MKDIRAT, slotAt, path.Base(dir), 0o755).ignore[0] = uintptr(unix.EEXIST)
}

// in opens a folder of the new root, to make something in it. It follows no symbolic
// link: a link would lead to the host, whose root is still ours.
func (p *plan) in(dir string) {
	p.call("open folder "+dir+" of the new root", unix.SYS_OPENAT2, slotRoot, relative(dir),
		p.how(unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY), unix.SizeofOpenHow).out = uint8(slotAt)
}

// bind mounts a path of the host in the new tree, at the same path unless it is an
// image. It follows no symbolic link on either side: a program may have made the
// files inside a bind.
func (p *plan) bind(j *Job, b Bind, made map[string]bool, covered bool) {
	if !covered {
		// Below a folder that is already bound, the mount point exists.
		if b.File {
			p.folder(made, path.Dir(b.Path))
			p.in(path.Dir(b.Path))
			p.call("make file "+b.Path, unix.SYS_MKNODAT, slotAt, path.Base(b.Path), unix.S_IFREG|0o444, 0).ignore[0] = uintptr(unix.EEXIST)
		} else {
			p.folder(made, b.Path)
		}
	}
	first := len(p.steps)
	p.call("open "+b.Path, unix.SYS_OPENAT2, fdCWD, cmp.Or(b.From, b.Path),
		p.how(unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW), unix.SizeofOpenHow).out = uint8(slotFrom)
	p.expect(fmt.Sprintf("folder %q %s", b.Path, Replaced), slotFrom, b.ID)
	if b.Layered {
		p.layer(j, b)
		p.attach(b.Path)
		return
	}
	flags := unix.AT_EMPTY_PATH | unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC
	if !b.File {
		flags |= unix.AT_RECURSIVE
	}
	p.call("take "+b.Path, unix.SYS_OPEN_TREE, slotFrom, "", flags).out = uint8(slotTree)
	set := uint64(readOnly)
	switch {
	case b.Device:
		set = device
	case b.Writable:
		set = writable
	}
	p.call("restrict "+b.Path, unix.SYS_MOUNT_SETATTR, slotTree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE,
		p.attr(set), sizeofMountAttr)
	p.attach(b.Path)
	if b.Optional {
		s := &p.steps[first]
		s.ignore = [2]uintptr{uintptr(unix.ENOENT), uintptr(unix.EACCES)}
		s.skip = len(p.steps) - first - 1
	}
}

// attach mounts the tree at a path of the new root.
func (p *plan) attach(at string) {
	p.call("find the place of "+at, unix.SYS_OPENAT2, slotRoot, relative(at),
		p.how(unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW), unix.SizeofOpenHow).out = uint8(slotAt)
	p.call("mount "+at, unix.SYS_MOVE_MOUNT, slotTree, "", slotAt, "", emptyPaths)
}

func (p *plan) how(flags uint64) unsafe.Pointer {
	return unsafe.Pointer(&unix.OpenHow{Flags: flags, Resolve: resolve})
}

// loopback brings up the interface lo, the only one of a new network.
func (p *plan) loopback() {
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		panic(err) // the name is short enough
	}
	ifr.SetUint16(unix.IFF_UP)
	p.call("make a socket for loopback", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0).out = uint8(slotFrom)
	p.call("bring up loopback", unix.SYS_IOCTL, slotFrom, unix.SIOCSIFFLAGS, unsafe.Pointer(ifr))
	p.call("close the socket for loopback", unix.SYS_CLOSE, slotFrom)
}

// listen listens on a port of the loopback interface for the server: connections from
// inside reach the server outside.
func (p *plan) listen(port uint64) {
	if port == 0 {
		return
	}
	at := &unix.RawSockaddrInet4{Family: unix.AF_INET, Addr: [4]byte{127, 0, 0, 1}}
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&at.Port))[:], uint16(port))
	const waiting = 128 // connections not yet accepted
	p.call("make the listener", unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0).out = uint8(slotFrom)
	p.call("place the listener", unix.SYS_BIND, slotFrom, unsafe.Pointer(at), unix.SizeofSockaddrInet4)
	p.call("listen", unix.SYS_LISTEN, slotFrom, waiting)
	p.keepAs("keep the listener", slotFrom, fdLayers)
	p.send("hand over the listener", fdLayers)
	p.call("close the listener", unix.SYS_CLOSE, fdLayers)
}

// relative returns an absolute path relative to the root's descriptor.
func relative(p string) string {
	if p == "/" {
		return "."
	}
	return strings.TrimPrefix(p, "/")
}

// covered reports whether p is at or below one of binds.
func covered(binds []Bind, p string) bool {
	for _, b := range binds {
		if !b.File && (b.Path == p || strings.HasPrefix(p, strings.TrimSuffix(b.Path, "/")+"/")) {
			return true
		}
	}
	return false
}
