//go:build amd64 || arm64

package confine

import (
	"encoding/binary"
	"fmt"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// trialName is a folder that is made in a layered folder and removed again, to check
// that the overlay is writable: the kernel mounts an overlay read-only, without an
// error, if it cannot use the work folder.
const trialName = ".packs-mcp-layer-trial"

// layers makes the file system that holds the layers of the job, and reports whether
// the job has any. All layers share one, so that its bounds hold for the whole run.
//
// The kernel accepts only folders mounted in the caller's own namespace for an
// overlay. So that file system is attached in the tree that the child is about to
// leave, at a path that exists wherever overlay settings can name descriptors, and
// disappears with that tree: to detach it alone, the kernel would wait for all
// processors.
func (p *plan) layers(j *Job) bool {
	n := 0
	for _, b := range j.Binds {
		if b.Layered {
			n++
		}
	}
	if n == 0 {
		return false
	}
	// Take the descriptor numbers before anything else can.
	for fd := fdLayers; fd < fdUpper+n; fd++ {
		p.call("reserve a descriptor", unix.SYS_DUP3, fdReport, fd, unix.O_CLOEXEC)
	}
	p.uppers = 0
	p.openTmpfs("the layers", [][2]string{
		{"size", fmt.Sprint(j.Layer.Bytes)}, {"nr_inodes", fmt.Sprint(j.Layer.Names)}, {"mode", "0700"},
	})
	p.call("create the file system for the layers", unix.SYS_FSCONFIG, slotFrom, unix.FSCONFIG_CMD_CREATE, 0, 0, 0)
	p.call("mount the layers", unix.SYS_FSMOUNT, slotFrom, unix.FSMOUNT_CLOEXEC, writable).out = uint8(slotTree)
	p.keepAs("keep the layers", slotTree, fdLayers)
	p.call("attach the layers", unix.SYS_MOVE_MOUNT, fdLayers, "", fdCWD, "/proc/self/task", unix.MOVE_MOUNT_F_EMPTY_PATH)
	return true
}

// layer makes an overlay of the folder in slotFrom, in slotTree. Its parts are named
// by descriptors, so that the mount options hold none of the user's paths, and no
// path is looked up twice.
func (p *plan) layer(j *Job, b Bind) {
	name := func(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
	upper, work := fmt.Sprintf("upper%d", p.uppers), fmt.Sprintf("work%d", p.uppers)
	upperFD := fdUpper + p.uppers
	p.uppers++

	p.keepAs("keep "+b.Path, slotFrom, fdLower)
	if j.DirID != (ID{}) && covered([]Bind{b}, j.Dir) {
		rel := relative("/" + strings.TrimPrefix(strings.TrimPrefix(j.Dir, b.Path), "/"))
		p.call(StepFolder, unix.SYS_OPENAT2, fdLower, rel,
			p.how(unix.O_PATH|unix.O_CLOEXEC|unix.O_DIRECTORY), unix.SizeofOpenHow).out = uint8(slotFrom)
		p.expect("the working folder "+Replaced, slotFrom, j.DirID)
	}
	for _, f := range []struct {
		name string
		fd   int
	}{{upper, upperFD}, {work, fdWork}} {
		p.call("make a layer of "+b.Path, unix.SYS_MKDIRAT, fdLayers, f.name, 0o700)
		p.call("open the layer of "+b.Path, unix.SYS_OPENAT, fdLayers, f.name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0).out = uint8(slotFrom)
		p.keepAs("keep the layer of "+b.Path, slotFrom, f.fd)
	}
	// The program sees the upper folder's attributes as the folder's own.
	var times [2]unix.Timespec
	var st unix.Stat_t
	if unix.Stat(b.host(), &st) == nil {
		times = [2]unix.Timespec{st.Atim, st.Mtim}
		if unix.Getuid() == 0 {
			p.call("own the layer of "+b.Path, unix.SYS_FCHOWN, upperFD, int(st.Uid), int(st.Gid))
		}
		p.call("set the mode of the layer of "+b.Path, unix.SYS_FCHMOD, upperFD, int(st.Mode&0o7777))
	}
	p.call("make an overlay of "+b.Path, unix.SYS_FSOPEN, "overlay", unix.FSOPEN_CLOEXEC).out = uint8(slotFrom)
	for _, kv := range [][2]string{
		{"lowerdir", name(fdLower)}, {"upperdir", name(upperFD)}, {"workdir", name(fdWork)},
		{"xino", "off"}, // files keep their inode numbers from the lower folder
	} {
		p.call(fmt.Sprintf("set %s of the overlay of %s", kv[0], b.Path), unix.SYS_FSCONFIG,
			slotFrom, unix.FSCONFIG_SET_STRING, kv[0], kv[1], 0)
	}
	p.call("set userxattr of the overlay of "+b.Path, unix.SYS_FSCONFIG, slotFrom, unix.FSCONFIG_SET_FLAG, "userxattr", 0, 0)
	p.call("create the overlay of "+b.Path, unix.SYS_FSCONFIG, slotFrom, unix.FSCONFIG_CMD_CREATE, 0, 0, 0)
	p.call("mount the overlay of "+b.Path, unix.SYS_FSMOUNT, slotFrom, unix.FSMOUNT_CLOEXEC, writable).out = uint8(slotTree)
	p.call("try to write to the overlay of "+b.Path, unix.SYS_MKDIRAT, slotTree, trialName, 0o700)
	p.call("try to write to the overlay of "+b.Path, unix.SYS_UNLINKAT, slotTree, trialName, unix.AT_REMOVEDIR)
	p.call("set the times of the layer of "+b.Path, unix.SYS_UTIMENSAT, slotTree, ".", unsafe.Pointer(&times), 0)
}

// handOver sends the server the descriptors of the upper folders.
func (p *plan) handOver() {
	fds := make([]int, p.uppers)
	for i := range fds {
		fds[i] = fdUpper + i
	}
	p.send("hand over the layers", fds...)
}

// send sends the server descriptors, with an empty message.
func (p *plan) send(what string, fds ...int) {
	control := unix.UnixRights(fds...)
	head := binary.LittleEndian.AppendUint32(nil, 0)
	iov := &syscall.Iovec{Base: &head[0], Len: HeadSize}
	message := &syscall.Msghdr{Iov: iov, Iovlen: 1, Control: &control[0]}
	message.SetControllen(len(control))
	p.keep = append(p.keep, control, head, iov)
	p.call(what, unix.SYS_SENDMSG, fdServer, unsafe.Pointer(message), unix.MSG_NOSIGNAL)
}

// keepAs moves the descriptor of a slot to a number of its own.
func (p *plan) keepAs(what string, from ref, fd int) {
	p.call(what, unix.SYS_DUP3, from, fd, unix.O_CLOEXEC)
	p.call(what, unix.SYS_CLOSE, from)
}

// host returns the path of the bind's folder on the host.
func (b *Bind) host() string {
	if b.From != "" {
		return b.From
	}
	return b.Path
}

// layered returns the layered folder that path is in, or nil.
func (j *Job) layered(path string) *Bind {
	for i := len(j.Binds) - 1; i >= 0; i-- { // what is below comes later
		if b := &j.Binds[i]; covered(j.Binds[i:i+1], path) {
			if b.Layered {
				return b
			}
			return nil
		}
	}
	return nil
}

// seen returns the state that f has inside: a file seen through an overlay is on the
// overlay's own device.
func (j *Job) seen(f File) State {
	if j.layered(f.Path) != nil {
		f.State.Dev = 0
	}
	return f.State
}
