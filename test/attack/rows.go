package attack

import "github.com/packs-mcp/packs-mcp/internal/sandbox"

func fileRows() []Row {
	return []Row{
		{Case: "FS-01", Does: "read the key through a symbolic link in the workspace", Probe: []string{"read-link", "{secret}", "{ws}/link"}, Want: hidden()},
		{Case: "FS-01", Does: "read a folder outside", Probe: []string{"list", "{outside}"}, Want: hidden()},
		{Case: "FS-01", Does: "open the key for its name only, and again to read it", Probe: []string{"reopen", "{secret}"}, Want: hidden()},
		{Case: "FS-01", Does: "open the key by its number in the file system", Probe: []string{"handle", "{secret}", "{ws}"}, Want: Want{"ENOENT", "EPERM", "ENOENT", "ok"}},
		{Case: "FS-01", Does: "clone the tree of mounts at the key", Probe: []string{"open-tree", "{secret}"}, Want: everywhere("EPERM", "ok")},
		{Case: "FS-01", Does: "look at the key's size and times", Probe: []string{"stat", "{secret}"}, Want: metadata("ENOENT")},
		{Case: "FS-01", Does: "ask whether the key is there", Probe: []string{"access", "{secret}"}, Want: metadata("ENOENT")},
		{Case: "FS-01", Does: "go to the home folder", Probe: []string{"chdir", "{home}"}, Want: metadata("ENOENT")},
		{Case: "FS-01", Does: "watch the key for changes", Probe: []string{"watch", "{secret}"}, Want: metadata("ENOENT"), NoListener: "EMFILE|ENOENT"},
		{Case: "FS-01", Does: "list the key's extended attributes", Probe: []string{"listxattr", "{secret}"}, Want: metadata("ENOENT")},
		{Case: "FS-06", Does: "change the key's mode", Probe: []string{"chmod", "{secret}"}, Want: metadata("ENOENT"), Changes: true},
		{Case: "FS-06", Does: "change the key's owner", Probe: []string{"chown", "{secret}"}, Want: metadata("ENOENT"), Changes: true},
		{Case: "FS-06", Does: "change the key's times", Probe: []string{"utimes", "{secret}"}, Want: metadata("ENOENT"), Changes: true},
		{Case: "FS-06", Does: "change the key's extended attributes", Probe: []string{"setxattr", "{secret}"}, Want: everywhere("ENOTSUP", "ok"), Changes: true},
		{Case: "FS-06", Does: "write to the key", Probe: []string{"write", "{secret}"}, Want: hidden(), Changes: true},
		{Case: "FS-06", Does: "truncate the key", Probe: []string{"truncate", "{secret}"}, Want: hidden(), Changes: true},
		{Case: "FS-06", Does: "remove the key", Probe: []string{"unlink", "{secret}"}, Want: hidden(), Changes: true},
		{Case: "FS-06", Does: "move the key into the workspace", Probe: []string{"rename", "{secret}", "{ws}/key"}, Want: Want{"ENOENT", "EACCES|EXDEV", "ENOENT", "ok"}, Changes: true},
		{Case: "FS-06", Does: "create a folder outside", Probe: []string{"mkdir", "{outside}/new"}, Want: hidden(), Changes: true},
		{Case: "FS-06", Does: "make a symbolic link outside", Probe: []string{"symlink", "/", "{outside}/new"}, Want: hidden(), Changes: true},
		{Case: "FS-06", Does: "make a FIFO outside", Probe: []string{"mkfifo", "{outside}/new"}, Want: hidden(), Changes: true},
		{Case: "FS-04", Does: "make a hard link to the key in the workspace", Probe: []string{"link", "{secret}", "{ws}/key"}, Want: Want{"ENOENT", "EACCES|EXDEV", "ENOENT", "ok"}, Changes: true},
		{Case: "FS-04", Does: "make a hard link to a file of the pack in the workspace", Probe: []string{"link", "{pack}/data.txt", "{ws}/data"}, Want: Want{"EXDEV", "EACCES|EXDEV", "EXDEV", "ok"}, Changes: true},
		{Case: "FS-06", Does: "write to a file of the pack through a symbolic link", Probe: []string{"write", "{pack}/link.txt"}, Want: fixed(), Changes: true},
		{Case: "FS-06", Does: "truncate a file of the pack", Probe: []string{"truncate", "{pack}/data.txt"}, Want: fixed(), Changes: true},
		{Case: "FS-06", Does: "create a file in the pack", Probe: []string{"create", "{pack}/new"}, Want: fixed(), Changes: true},
		{Case: "FS-06", Does: "create a folder in the pack", Probe: []string{"mkdir", "{pack}/new"}, Want: fixed(), Changes: true},
		{Case: "FS-06", Does: "remove a file of the pack", Probe: []string{"unlink", "{pack}/data.txt"}, Want: fixed(), Changes: true},
		{Case: "FS-06", Does: "remove a folder of the pack", Probe: []string{"rmdir", "{pack}/empty"}, Want: fixed(), Changes: true},
		{Case: "FS-06", Does: "rename a file of the pack", Probe: []string{"rename", "{pack}/data.txt", "{pack}/other"}, Want: fixed(), Changes: true},
		{Case: "FS-06", Does: "move a file of the pack into the workspace", Probe: []string{"rename", "{pack}/data.txt", "{ws}/data"}, Want: Want{"EXDEV", "EACCES|EXDEV", "EXDEV", "ok"}, Changes: true},
		{Case: "FS-06", Does: "move the pack away", Probe: []string{"rename", "{pack}", "{pack}2"}, Want: Want{"EBUSY|EROFS", "EACCES", "EBUSY|EROFS", "ok"}, Changes: true},
		{Case: "FS-06", Does: "exchange the pack and the workspace", Probe: []string{"exchange", "{pack}", "{ws}"}, Want: Want{"EBUSY|EROFS|EXDEV", "EACCES", "EBUSY|EROFS|EXDEV", "ok"}, Changes: true},
		{Case: "FS-06", Does: "make a symbolic link in the pack", Probe: []string{"symlink", "/", "{pack}/new"}, Want: fixed(), Changes: true},
		{Case: "FS-06", Does: "make a FIFO in the pack", Probe: []string{"mkfifo", "{pack}/new"}, Want: fixed(), Changes: true},
		{Case: "FS-06", Does: "change the mode of a file of the pack", Probe: []string{"chmod", "{pack}/data.txt"}, Want: metadata("EROFS"), Changes: true},
		{Case: "FS-06", Does: "change its mode through an open file", Probe: []string{"fchmod", "{pack}/data.txt"}, Want: metadata("EROFS"), Changes: true},
		{Case: "FS-06", Does: "change the owner of a file of the pack", Probe: []string{"chown", "{pack}/data.txt"}, Want: metadata("EROFS"), Changes: true},
		{Case: "FS-06", Does: "change the times of a file of the pack", Probe: []string{"utimes", "{pack}/data.txt"}, Want: metadata("EROFS"), Changes: true},
		{Case: "FS-06", Does: "change the extended attributes of a file of the pack", Probe: []string{"setxattr", "{pack}/data.txt"}, Want: everywhere("ENOTSUP", "ok"), Changes: true},
		{Case: "FS-06", Does: "create a file that runs with your rights, no matter who starts it (setuid)", Probe: []string{"create-setuid", "{ws}/new"}, Want: everywhere("EPERM", "ok")},
		{Case: "9.9", Does: "create a folder whose files are a group's (setgid)", Probe: []string{"mkdir-setgid", "{ws}/new"}, Want: everywhere("EPERM", "ok")},
		{Case: "9.9", Does: "make such a file with mknod", Probe: []string{"mknod-setuid", "{ws}/new"}, Want: everywhere("EPERM", "ok")},
		{Case: "9.9", Does: "make such a file without a name, and name it (O_TMPFILE, linkat)", Probe: []string{"tmpfile-setid", "{ws}"}, Want: everywhere("EPERM", "ok")},
		{Case: "9.9", Does: "make such a file with openat2, whose mode no filter sees", Probe: []string{"openat2-setid", "{ws}/new"}, Want: everywhere("ENOSYS", "ok")},
		{Case: "9.9", Does: "give others rights to a file of its own (access control list)", Probe: []string{"set-acl", "{ws}/file"}, Want: everywhere("ENOTSUP", "ok")},
		{Case: "9.9", Does: "the same through an open file", Probe: []string{"fset-acl", "{ws}/file"}, Want: everywhere("ENOTSUP", "ok")},
		{Case: "9.9", Does: "give a file of its own capabilities", Probe: []string{"set-caps", "{ws}/file"}, Want: everywhere("ENOTSUP", "ok")},
		{Case: "9.12", Does: "hold up a writer of a file of the pack (lease)", Probe: []string{"lease", "{pack}/data.txt"}, Want: everywhere("EPERM", "ok")},
		{Case: "9.12", Does: "be told what happens in a folder (F_NOTIFY)", Probe: []string{"dnotify", "{pack}"}, Want: everywhere("EPERM", "ok")},
		{Case: "9.7", Does: "allocate disk space without writing it (fallocate)", Probe: []string{"allocate", "{ws}/file", "0"}, Want: everywhere("ENOTSUP", "ok")},
		{Case: "9.7", Does: "the same beyond the end of a file (FALLOC_FL_KEEP_SIZE)", Probe: []string{"allocate", "{ws}/file", "1"}, Want: everywhere("ENOTSUP", "ok")},
		{Case: "9.7", Does: "the same as zeros (FALLOC_FL_ZERO_RANGE)", Probe: []string{"allocate", "{ws}/file", "16"}, Want: everywhere("ENOTSUP", "ok|ENOTSUP")},
		{Case: "9.7", Does: "the same by ioctl (FS_IOC_RESVSP64)", Probe: []string{"reserve", "{ws}/file", "1076910122"}, Want: everywhere("ENOTSUP", "ok")},
		{Case: "9.7", Does: "the same by its older number (FS_IOC_RESVSP)", Probe: []string{"reserve", "{ws}/file", "1076910120"}, Want: everywhere("ENOTSUP", "ok")},
		{Case: "9.7", Does: "the same as zeros by ioctl (FS_IOC_ZERO_RANGE)", Probe: []string{"reserve", "{ws}/file", "1076910137"}, Want: everywhere("ENOTSUP", "ok|ENOTSUP")},
		{Case: "FS-06", Does: "open a file in /etc to write", Probe: []string{"open-write", "/etc/hostname"}, Want: Want{"EROFS|EACCES", "EACCES", "EROFS|EACCES", "ok"}},
		{Case: "FS-06", Does: "open a program of the system to write", Probe: []string{"open-write", "/usr/bin/env"}, Want: Want{"EROFS|EACCES", "EACCES", "EROFS|EACCES", "ok"}},
		{Case: "FS-06", Does: "open a setting of the kernel to write", Probe: []string{"open-write", "/proc/sys/kernel/core_pattern"}, Want: Want{"EROFS|EACCES", "EACCES", "EROFS|EACCES", "ok"}},
		{Case: "FS-06", Does: "open the keyboard's way into the kernel", Probe: []string{"open-write", "/proc/sysrq-trigger"}, Want: Want{"EROFS|EACCES|ENOENT", "EACCES", "EROFS|EACCES|ENOENT", "ok"}},
		{Case: "FS-01", Does: "list the sockets and states of services (/run)", Probe: []string{"list", "{run}"}, Want: hidden()},
		{Case: "FS-01", Does: "list mail, logs and caches (/var)", Probe: []string{"list", "/var/lib"}, Want: hidden()},
		{Case: "FS-01", Does: "list other people's temporary files (/tmp)", Probe: []string{"list", "/tmp"}, Want: Want{"ok", "EACCES", "ok", "ok"}},
		{Case: "FS-01", Does: "list control groups", Probe: []string{"list", "/sys/fs/cgroup"}, Want: hidden()},
		{Case: "FS-05", Does: "make a device in the workspace", Probe: []string{"mknod-char", "{ws}/null"}, Want: everywhere("EPERM|EACCES", "ok")},
		{Case: "FS-05", Does: "make a disk in the workspace", Probe: []string{"mknod-blk", "{ws}/loop"}, Want: everywhere("EPERM|EACCES", "ok")},
		{Case: "PK-15", Does: "open the controlling terminal", Probe: []string{"tty"}, Want: Want{"ENOENT|ENXIO", "EACCES|ENXIO", "ENOENT|ENXIO", "ENXIO"}},
	}
}

func networkRows() []Row {
	return []Row{
		{Case: "NW-01", Does: "connect to a TCP port of this machine over IPv6", Probe: []string{"tcp6-connect", "{tcp}"}, Want: everywhere("EPERM", "ok"), Changes: true},
		{Case: "NW-02", Does: "send with TCP fast open", Probe: []string{"tcp-fastopen", "{tcp}"}, Want: everywhere("EPERM", "ok"), Changes: true},
		{Case: "NW-03", Does: "connect with multipath TCP", Probe: []string{"mptcp-connect", "{tcp}"}, Want: everywhere("EPERM", "ok"), Changes: true},
		{Case: "NW-04", Does: "send a UDP datagram", Probe: []string{"udp-send", "{udp}"}, Want: everywhere("EPERM", "ok"), Changes: true},
		{Case: "NW-05", Does: "bind a TCP port", Probe: []string{"tcp-bind"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-05", Does: "bind a UDP port", Probe: []string{"udp-bind"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-06", Does: "listen on TCP without binding", Probe: []string{"tcp-listen"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-07", Does: "send to a unix datagram socket", Probe: []string{"unix-dgram", "{dgram}"}, Want: everywhere("EPERM", "ok"), Changes: true},
		{Case: "NW-07", Does: "send to it from a pair of datagram sockets", Probe: []string{"dgram-pair", "{dgram}"}, Want: everywhere("EPERM", "ok"), Changes: true},
		{Case: "NW-07", Does: "connect one of a pair of sockets elsewhere", Probe: []string{"pair-connect", "{dgram}"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-07", Does: "listen on a unix socket in the workspace", Probe: []string{"unix-listen", "{ws}/s"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-09", Does: "ask for the network's interfaces (netlink)", Probe: []string{"netlink"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-09", Does: "hear of devices as they come (netlink)", Probe: []string{"uevent"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-10", Does: "talk to the host of a virtual machine (vsock)", Probe: []string{"vsock"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-11", Does: "read the network's packets", Probe: []string{"packet"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-11", Does: "make raw IP packets", Probe: []string{"raw-ip"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-11", Does: "ping", Probe: []string{"ping"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-12", Does: "use the kernel's own cryptography (AF_ALG)", Probe: []string{"alg"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-13", Does: "set up io_uring, which no filter sees", Probe: []string{"io-uring"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-14", Does: "make a socket of any of 64 families and 6 types", Probe: []string{"families"}, Want: everywhere("EPERM", "ok")},
	}
}

func loopbackRows() []Row {
	own := func(outcome string) Want { return Want{outcome, notStarted, outcome, "ok"} }
	const network = sandbox.NetworkLoopback
	return []Row{
		{Case: "NW-15", Does: "connect to a server of its own", Network: network, Probe: []string{"tcp-self"}, Want: own("ok")},
		{Case: "NW-15", Does: "connect to a TCP port of this machine", Network: network, Probe: []string{"tcp-connect", "{tcp}"}, Want: own("ECONNREFUSED"), Changes: true},
		{Case: "NW-15", Does: "send a UDP datagram that reaches nobody on this machine", Network: network, Probe: []string{"udp-send", "{udp}"}, Want: own("ok"), Changes: true},
		{Case: "NW-15", Does: "connect to a unix socket outside", Network: network, Probe: []string{"unix-connect", "{unix}"}, Want: own("ENOENT|EPERM"), Changes: true},
		{Case: "9.10", Does: "connect to a unix socket of another program's in the workspace", Network: network, Probe: []string{"unix-connect", "{unix-ws}"}, Want: own("EPERM|EACCES"), Changes: true},
		{Case: "9.10", Does: "connect to one in the pack", Network: network, Probe: []string{"unix-connect", "{unix-pack}"}, Want: own("EPERM|EACCES"), Changes: true},
		{Case: "NW-15", Does: "connect to an abstract unix socket", Network: network, Probe: []string{"unix-connect", "{abstract}"}, Want: own("ECONNREFUSED|EPERM"), Changes: true},
		{Case: "NW-15", Does: "send to a unix datagram socket from a pair", Network: network, Probe: []string{"dgram-pair", "{dgram}"}, Want: own("EPERM|ENOENT"), Changes: true},
		{Case: "NW-15", Does: "change a network interface", Network: network, Probe: []string{"lo-up"}, Want: own("EPERM")},
		{Case: "NW-15", Does: "talk to the host of a virtual machine (vsock)", Network: network, Probe: []string{"vsock"}, Want: own("EPERM")},
		{Case: "NW-15", Does: "read the network's packets", Network: network, Probe: []string{"packet"}, Want: own("EPERM")},
	}
}

// hostsRows returns the rows for a run that names hosts but does not use the proxy.
func hostsRows() []Row {
	own := func(outcome string) Want { return Want{outcome, notStarted, outcome, notStarted} }
	const network = sandbox.NetworkHosts
	return []Row{
		{Case: "NW-16", Does: "connect to a server of its own", Network: network, Probe: []string{"tcp-self"}, Want: own("ok")},
		{Case: "NW-16", Does: "connect to a TCP port of this machine", Network: network, Probe: []string{"tcp-connect", "{tcp}"}, Want: own("ECONNREFUSED")},
		{Case: "NW-16", Does: "connect to it over IPv6", Network: network, Probe: []string{"tcp6-connect", "{tcp}"}, Want: own("ECONNREFUSED|EADDRNOTAVAIL|ENETUNREACH")},
		{Case: "NW-16", Does: "send with TCP fast open", Network: network, Probe: []string{"tcp-fastopen", "{tcp}"}, Want: own("ECONNREFUSED|EINPROGRESS|EPERM")},
		{Case: "NW-16", Does: "connect with multipath TCP", Network: network, Probe: []string{"mptcp-connect", "{tcp}"}, Want: own("ECONNREFUSED|EPERM|EPROTONOSUPPORT")},
		{Case: "NW-16", Does: "look up a name by itself", Network: network, Probe: []string{"dns", "{udp}"}, Want: own("ECONNREFUSED|EAGAIN|timeout")},
		{Case: "NW-16", Does: "connect to a unix socket outside", Network: network, Probe: []string{"unix-connect", "{unix}"}, Want: own("ENOENT|EPERM")},
		{Case: "NW-16", Does: "connect to an abstract unix socket", Network: network, Probe: []string{"unix-connect", "{abstract}"}, Want: own("ECONNREFUSED|EPERM")},
		{Case: "NW-16", Does: "send to a unix datagram socket from a pair", Network: network, Probe: []string{"dgram-pair", "{dgram}"}, Want: own("EPERM|ENOENT")},
		{Case: "NW-16", Does: "change a network interface", Network: network, Probe: []string{"lo-up"}, Want: own("EPERM")},
		{Case: "NW-16", Does: "talk to the host of a virtual machine (vsock)", Network: network, Probe: []string{"vsock"}, Want: own("EPERM")},
		{Case: "NW-16", Does: "read the network's packets", Network: network, Probe: []string{"packet"}, Want: own("EPERM")},
		{Case: "NW-16", Does: "make raw IP packets", Network: network, Probe: []string{"raw-ip"}, Want: own("EPERM")},
	}
}

func openRows() []Row {
	const network = sandbox.NetworkFull
	return []Row{
		{Case: "NW-01", Does: "connect to a TCP port of this machine", Network: network, Probe: []string{"tcp-connect", "{tcp}"}, Want: allowed(), Changes: true},
		{Case: "NW-04", Does: "send a UDP datagram", Network: network, Probe: []string{"udp-send", "{udp}"}, Want: allowed(), Changes: true},
		{Case: "NW-06", Does: "listen on TCP", Network: network, Probe: []string{"tcp-listen"}, Want: allowed()},
		{Case: "NW-14", Does: "look up a name", Network: network, Probe: []string{"dns", "{udp}"}, Want: allowed(), Changes: true},
		{Case: "NW-09", Does: "ask for the network's interfaces (netlink)", Network: network, Probe: []string{"netlink"}, Want: allowed()},
		{Case: "NW-07", Does: "connect to a unix socket, as of Docker or an SSH agent", Network: network, Probe: []string{"unix-connect", "{unix}"}, Want: Want{"ENOENT|EPERM", "EPERM", "ENOENT|EPERM", "ok"}, Changes: true},
		{Case: "NW-07", Does: "send to a unix datagram socket", Network: network, Probe: []string{"unix-dgram", "{dgram}"}, Want: Want{"ENOENT|EPERM", "EPERM", "ENOENT|EPERM", "ok"}, Changes: true},
		{Case: "NW-07", Does: "send to it from a pair of datagram sockets", Network: network, Probe: []string{"dgram-pair", "{dgram}"}, Want: everywhere("EPERM", "ok"), Changes: true},
		{Case: "NW-08", Does: "connect to an abstract unix socket, as of a desktop", Network: network, Probe: []string{"unix-connect", "{abstract}"}, Want: everywhere("EPERM", "ok"), Changes: true},
		{Case: "NW-09", Does: "hear of devices as they come (netlink)", Network: network, Probe: []string{"uevent"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-09", Does: "change a network interface", Network: network, Probe: []string{"lo-up"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-10", Does: "talk to the host of a virtual machine (vsock)", Network: network, Probe: []string{"vsock"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-11", Does: "read the network's packets", Network: network, Probe: []string{"packet"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-11", Does: "make raw IP packets", Network: network, Probe: []string{"raw-ip"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-12", Does: "use the kernel's own cryptography (AF_ALG)", Network: network, Probe: []string{"alg"}, Want: everywhere("EPERM", "ok")},
		{Case: "NW-13", Does: "set up io_uring, which no filter sees", Network: network, Probe: []string{"io-uring"}, Want: everywhere("EPERM", "ok")},
	}
}

func processRows() []Row {
	// In its own process namespace, other processes have no number; elsewhere, the signal is
	// refused.
	unnamed := func(refused string) Want { return Want{"ESRCH|" + refused, refused, "ESRCH|" + refused, "ok"} }
	return []Row{
		{Case: "PK-09", Does: "kill another process of the user's, as the server", Probe: []string{"kill", "{victim}"}, Want: unnamed("EPERM"), Changes: true},
		{Case: "PK-09", Does: "kill one of its threads", Probe: []string{"kill-thread", "{victim}"}, Want: unnamed("EPERM"), Changes: true},
		{Case: "PK-09", Does: "kill it with a queued signal", Probe: []string{"kill-queue", "{victim}"}, Want: unnamed("EPERM"), Changes: true},
		{Case: "PK-09", Does: "kill it by a descriptor", Probe: []string{"kill-pidfd", "{victim}"}, Want: unnamed("EPERM"), Changes: true},
		{Case: "PK-09", Does: "have the kernel kill it (SIGIO)", Probe: []string{"kill-sigio", "{victim}"}, Want: unnamed("EPERM"), Changes: true},
		{Case: "PK-09", Does: "kill its process group", Probe: []string{"kill-group", "{victim}"}, Want: unnamed("EPERM"), Changes: true},
		{Case: "PK-09", Does: "kill everybody", Probe: []string{"kill-all", "{victim}"}, Want: everywhere("ESRCH|EPERM|only its own", ""), Changes: true, Unsafe: true},
		{Case: "PK-09", Does: "take open files from it", Probe: []string{"prlimit", "{victim}"}, Want: everywhere("EPERM|ESRCH", "ok"), Changes: true},
		{Case: "PK-09", Does: "slow it down (priority)", Probe: []string{"priority", "{victim}"}, Want: unnamed("EPERM"), Changes: true},
		{Case: "PK-09", Does: "slow it down (scheduler)", Probe: []string{"scheduler", "{victim}"}, Want: unnamed("EPERM"), Changes: true},
		{Case: "PK-09", Does: "slow it down (input and output)", Probe: []string{"ioprio", "{victim}"}, Want: unnamed("EPERM"), Changes: true},
		{Case: "PK-09", Does: "bind it to one processor", Probe: []string{"affinity", "{victim}"}, Want: unnamed("EPERM"), Changes: true},
		{Case: "PK-17", Does: "read its memory", Probe: []string{"vm-read", "{victim}"}, Want: everywhere("EPERM", "ok")},
		{Case: "PK-17", Does: "take a descriptor from it", Probe: []string{"pidfd-steal", "{victim}"}, Want: unnamed("EPERM")},
		{Case: "PK-17", Does: "compare itself with it", Probe: []string{"kcmp", "{victim}"}, Want: everywhere("EPERM", "ok")},
		{Case: "EN-03", Does: "open its memory", Probe: []string{"open-write", "/proc/{victim}/mem"}, Want: hidden()},
		{Case: "EN-03", Does: "read its command line", Probe: []string{"read", "/proc/{victim}/cmdline"}, Want: metadata("ENOENT")},
		{Case: "EN-03", Does: "read a key through its root folder", Probe: []string{"read", "/proc/{victim}/root{secret}"}, Want: hidden()},
		{Case: "EN-03", Does: "count its descriptors", Probe: []string{"list", "/proc/{victim}/fd"}, Want: metadata("ENOENT")},
		{Case: "EN-03", Does: "read its standard input", Probe: []string{"read", "/proc/{victim}/fd/0"}, Want: hidden()},
		{Case: "EN-03", Does: "read the environment of process 1", Probe: []string{"read", "/proc/1/environ"}, Want: everywhere("EACCES", "ok")},
		{Case: "EN-03", Does: "open the memory of process 1", Probe: []string{"open-write", "/proc/1/mem"}, Want: Want{"EROFS|EACCES", "EACCES", "EROFS|EACCES", "ok"}},
		{Case: "EN-03", Does: "read a key through the root folder of process 1", Probe: []string{"read", "/proc/1/root{secret}"}, Want: Want{"EACCES|ENOENT", "EACCES", "EACCES|ENOENT", "ok"}},
		{Case: "PK-17", Does: "attach memory that somebody shared (System V)", Probe: []string{"shm-attach", "{shm}"}, Want: Want{"EINVAL|EIDRM|EPERM", "EPERM", "EINVAL|EIDRM|EPERM", "ok"}},
		{Case: "PK-17", Does: "read memory that somebody shared (/dev/shm)", Probe: []string{"read", "{devshm}"}, Want: metadata("ENOENT")},
		{Case: "PK-17", Does: "open a message queue that somebody made", Probe: []string{"mq-open", "{mq}"}, Want: Want{"ENOENT|EPERM", "EPERM|EACCES", "ENOENT|EPERM", "ok"}},
		{Case: "PK-17", Does: "read the user's keyring", Probe: []string{"keyring"}, Want: everywhere("EPERM", "ok|ENOKEY")},
	}
}

func kernelRows() []Row {
	row := func(does, none string, probe ...string) Row {
		return Row{Case: "PK-17", Does: does, Probe: probe, Want: everywhere("EPERM", none)}
	}
	clone3 := row("make a user namespace (clone3)", "ok", "clone3-user")
	clone3.Want = everywhere("ENOSYS", "ok")
	x32 := row("make an x32 system call", "ok", "x32")
	x32.Case, x32.Want = "PK-18", everywhere("ENOSYS", "ok")
	i386 := row("make an i386 system call", "ok", "i386")
	i386.Case, i386.Want = "PK-18", everywhere("SIGSYS", "ok")
	uid := row("run a program as another user (setuid)", "ok", "setuid", "{setuid}")
	uid.Want = everywhere("no rights gained", "ok")
	sti := row("type into a terminal (TIOCSTI)", "ENOTTY|EIO", "tiocsti")
	sti.Case = "PK-15"
	linux := row("type into a console (TIOCLINUX)", "ENOTTY|EIO", "tioclinux")
	linux.Case = "PK-15"
	return []Row{
		row("make a user namespace (unshare)", "ok", "unshare-user"),
		row("make a mount namespace (unshare)", "ok", "unshare-mount"),
		row("make a user namespace (clone)", "ok", "clone-user"),
		clone3,
		row("enter a namespace", "EBADF", "setns"),
		row("unmount", "EINVAL", "umount", "{ws}"),
		row("change the root of the file tree (pivot_root)", "EINVAL|EBUSY", "pivot-root", "{ws}"),
		row("change the root folder (chroot)", "ok", "chroot"),
		row("open a file system", "ok", "fsopen"),
		row("move a mount", "EBADF|EINVAL", "move-mount"),
		row("change a mount", "EBADF|EINVAL", "mount-setattr"),
		row("let itself be traced", "ok", "ptrace-me"),
		row("load a program into the kernel (bpf)", "EINVAL|EFAULT", "bpf"),
		row("count the processor's events (perf)", "EFAULT", "perf"),
		row("handle page faults (userfaultfd)", "ok", "userfaultfd"),
		row("add a key", "ok", "add-key"),
		row("request a key", "ENOKEY", "request-key"),
		row("start another kernel (kexec)", "EINVAL|EBUSY|EADDRNOTAVAIL", "kexec"),
		row("restart the machine", "EINVAL", "reboot"),
		row("load a module", "EFAULT|EINVAL|ENOEXEC", "init-module"),
		row("load a module from a file", "EBADF", "finit-module"),
		row("unload a module", "EFAULT", "delete-module"),
		row("swap on a file", "EFAULT", "swapon"),
		row("stop swapping", "EFAULT", "swapoff"),
		row("write accounts of processes", "ENOENT", "acct"),
		row("set the clock", "EINVAL", "clock-set"),
		row("name the machine", "EINVAL", "set-hostname"),
		row("change quotas", "EINVAL|ENOSYS|ENODEV|EFAULT", "quotactl"),
		row("read the kernel's log", "EINVAL", "syslog"),
		row("watch a whole file system (fanotify)", "ok", "fanotify"),
		row("open a file by its number", "EFAULT|EBADF", "open-by-handle"),
		row("take a descriptor", "EBADF", "pidfd-getfd"),
		row("become another user", "ok", "become"),
		{Case: "FS-06", Does: "run a program that is only in memory", Probe: []string{"exec-mem", ""}, Want: everywhere("ENOSYS", "ok")},
		row("write what is kept for security modules (lsm_set_self_attr)", "EFAULT|EINVAL|EOPNOTSUPP|ENOSYS", "lsm-set"),
		{Case: "PK-17", Does: "list mounts by their numbers (listmount)", Probe: []string{"listmount"}, Want: everywhere("ENOSYS", "EFAULT|ENOSYS")},
		{Case: "PK-17", Does: "look at one (statmount)", Probe: []string{"statmount"}, Want: everywhere("ENOSYS", "EFAULT|ENOSYS")},
		uid, sti, linux, x32, i386,
	}
}

func limitRows() []Row {
	const more = "4096" // MiB, twice the limit on memory
	row := func(does string, want Want, probe ...string) Row {
		return Row{Case: "9.8", Does: does, Probe: probe, Want: want}
	}
	noMemory, gone := everywhere("ENOMEM", "ok"), everywhere("ENOSYS", "ok")
	ipc := Want{"ENOSPC", "EPERM", "ENOSPC", "ok"}
	secret := Want{"EACCES|ENOENT", "EACCES|ENOENT", "EACCES|ENOENT", "ok"}
	proc := func(does, name string) Row {
		return Row{Case: "9.12", Does: does, Probe: []string{"read", "/proc/" + name}, Want: secret, Root: "ok"}
	}
	keys := proc("list the user's keys (/proc/keys)", "keys")
	keys.Want = metadata("EACCES")
	zero := row("have it from /dev/zero", noMemory, "share-zero", more)
	zero.NoListener = "EACCES|ENOENT"
	small := row("have it in pieces of 4 MiB", noMemory, "share-small", more)
	small.NoListener = "ok"
	return []Row{
		row("have more memory than the limit by sharing it", noMemory, "share-anon", more),
		small,
		row("have it in pieces of which it gives back all but a page", noMemory, "share-part", more),
		row("have a piece in each of many processes", noMemory, "share-each", more),
		zero,
		row("have it as a file without a name (memfd)", gone, "memfd"),
		row("have it as a secret one (memfd_secret)", everywhere("ENOSYS", "ok|ENOSYS"), "memfd-secret"),
		row("have it as a stack (MAP_GROWSDOWN)", noMemory, "grows-down"),
		row("have it as a stack of return addresses", everywhere("ENOSYS", "ok|EOPNOTSUPP"), "shadow-stack"),
		row("have it in huge pages", noMemory, "huge-pages"),
		row("raise the limit on its stack", everywhere("EPERM", "ok"), "stack"),
		row("have it as shared memory (System V)", ipc, "shm-new", more),
		row("have it in message queues (System V)", ipc, "queues", "1100"),
		row("use up the user's quota for pipes", everywhere("EPERM", "ok"), "pipe-size"),
		{Case: "9.12", Does: "use up the user's inotify instances", Probe: []string{"inotify-many", "20"}, Want: everywhere("EMFILE", "ok")},
		{Case: "9.12", Does: "use up the machine's asynchronous requests", Probe: []string{"io-setup"}, Want: gone},
		{Case: "9.12", Does: "have its memory given to what collects core files", Probe: []string{"core-limit"}, Want: everywhere("stays off", "ok")},
		proc("learn how the machine's memory is used (/proc/kpageflags)", "kpageflags"),
		proc("count who uses it (/proc/kpagecount)", "kpagecount"),
		proc("read how the kernel uses its own (/proc/slabinfo)", "slabinfo"),
		proc("read where it is (/proc/vmallocinfo)", "vmallocinfo"),
		keys,
	}
}

func allowedRows() []Row {
	return []Row{
		{Case: "HM-03", Does: "make a hard link in the workspace", Probe: []string{"link", "{ws}/file", "{ws}/file2"}, Want: allowed()},
		{Case: "HM-03", Does: "rename between folders of the workspace", Probe: []string{"rename", "{ws}/file", "{ws}/folder/file"}, Want: allowed()},
		{Case: "HM-03", Does: "make a FIFO in the workspace", Probe: []string{"mkfifo", "{ws}/fifo"}, Want: allowed()},
		{Case: "HM-03", Does: "change modes in the workspace", Probe: []string{"chmod", "{ws}/file"}, Want: allowed()},
		{Case: "HM-03", Does: "give the space of a part of a file back (fallocate, FALLOC_FL_PUNCH_HOLE)", Probe: []string{"allocate", "{ws}/file", "3"}, Want: allowed()},
		{Case: "HM-03", Does: "lock a file", Probe: []string{"lock", "{ws}/file"}, Want: allowed()},
		{Case: "HM-03", Does: "talk to its own processes over a pair of sockets", Probe: []string{"unix-pair"}, Want: allowed()},
		{Case: "HM-03", Does: "list the system's programs", Probe: []string{"list", "/usr/bin"}, Want: allowed()},
		{Case: "HM-03", Does: "read settings in /etc", Probe: []string{"read", "/etc/passwd"}, Want: allowed()},
		{Case: "HM-03", Does: "share a file with its own processes", Probe: []string{"shared-a-file", "{pack}/data.txt"}, Want: allowed()},
		{Case: "HM-03", Does: "share memory with them again and again, less than the limit at a time", Probe: []string{"share-again", "8192"}, Want: allowed(), NoListener: "ENOMEM"},
		{Case: "HM-03", Does: "read zeros from /dev/zero", Probe: []string{"read-zero"}, Want: allowed()},
		{Case: "FS-06", Does: "run a program that it wrote itself", Probe: []string{"exec", "{ws}/program"}, Want: allowed()},
	}
}
