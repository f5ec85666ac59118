//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// networkOps talk to something outside: a port of 127.0.0.1, a path, a name.
func networkOps() map[string]op {
	return map[string]op{
		"tcp-connect":   with(func(args []string) error { return connect4(0, number(args, 0)) }),
		"mptcp-connect": with(func(args []string) error { return connect4(unix.IPPROTO_MPTCP, number(args, 0)) }),
		"tcp6-connect":  tcp6Connect,
		"tcp-fastopen":  fastOpen,
		"tcp-bind":      plain(bindTCP),
		"tcp-listen":    plain(listenTCP),
		"tcp-self":      plain(selfTCP),
		"udp-send":      udpSend,
		"udp-bind":      plain(bindUDP),
		"dns":           dns,
		"ping":          plain(func() error { return open(unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP) }),
		"raw-ip":        plain(func() error { return open(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP) }),
		"netlink":       plain(netlinkDump),
		"uevent":        plain(func() error { return open(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT) }),
		"vsock":         plain(func() error { return open(unix.AF_VSOCK, unix.SOCK_STREAM, 0) }),
		"packet":        plain(func() error { return open(unix.AF_PACKET, unix.SOCK_RAW, 0) }),
		"alg":           plain(func() error { return open(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) }),
		"families":      families,
		"unix-connect":  with(func(args []string) error { return connectUnix(unix.SOCK_STREAM, args[0]) }),
		"unix-dgram":    with(func(args []string) error { return dgramUnix(args[0]) }),
		"unix-pair":     plain(func() error { return pair(unix.SOCK_STREAM) }),
		"dgram-pair":    with(func(args []string) error { return dgramPair(args[0]) }),
		"pair-connect":  pairConnect,
		"unix-listen":   with(func(args []string) error { return listenUnix(args[0]) }),
		"io-uring":      plain(ioURing),
		"lo-up":         plain(linkUp),
	}
}

func open(family, kind, proto int) error {
	fd, err := unix.Socket(family, kind, proto)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

func local4(port int) *unix.SockaddrInet4 {
	return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
}

func connect4(proto, port int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, proto)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, local4(port))
}

func tcp6Connect(args []string) (string, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	mapped := &unix.SockaddrInet6{Port: number(args, 0)} // ::ffff:127.0.0.1
	copy(mapped.Addr[10:], []byte{0xff, 0xff, 127, 0, 0, 1})
	return "", unix.Connect(fd, mapped)
}

// fastOpen sends data with the SYN, without connect(2).
func fastOpen(args []string) (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return "", unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, local4(number(args, 0)))
}

func udpSend(args []string) (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	return "", unix.Sendto(fd, []byte("x"), 0, local4(number(args, 0)))
}

func bindTCP() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, local4(0))
}

func bindUDP() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, local4(0))
}

// listenTCP listens without bind(2), on a port chosen by the kernel.
func listenTCP() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Listen(fd, 1)
}

// selfTCP is both a server and its client.
func selfTCP() error {
	server, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(server)
	if err := errors.Join(unix.Bind(server, local4(0)), unix.Listen(server, 1)); err != nil {
		return err
	}
	at, err := unix.Getsockname(server)
	if err != nil {
		return err
	}
	return connect4(0, at.(*unix.SockaddrInet4).Port)
}

// dns queries a name server on the port, as getaddrinfo(3) would. A missing answer is not a
// failure.
func dns(args []string) (string, error) {
	r := net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", fmt.Sprintf("127.0.0.1:%d", number(args, 0)))
	}}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	_, err := r.LookupHost(ctx, "host.example.")
	// The resolver keeps only the text of an error.
	for _, e := range []unix.Errno{unix.EPERM, unix.EACCES, unix.ECONNREFUSED, unix.ENETUNREACH, unix.EAFNOSUPPORT} {
		if err != nil && strings.Contains(err.Error(), e.Error()) {
			return err.Error(), e
		}
	}
	return "", nil
}

// netlinkDump asks the kernel for its network interfaces.
func netlinkDump() error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
}

// families tries every address family with every type of socket. The detail lists those that
// succeeded.
func families([]string) (string, error) {
	var made []string
	last := error(unix.EPERM)
	for family := range 64 {
		for kind := 1; kind <= 6; kind++ {
			switch err := open(family, kind, 0); {
			case err == nil:
				made = append(made, fmt.Sprintf("%d/%d", family, kind))
			case !errors.Is(err, unix.EPERM):
				last = err
			}
		}
	}
	if len(made) > 0 {
		return strings.Join(made, " "), nil
	}
	return "", last
}

// unixAddr returns the address for a path, or for an abstract name if it begins with @.
func unixAddr(name string) unix.Sockaddr { return &unix.SockaddrUnix{Name: name} }

func connectUnix(kind int, name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, kind, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, unixAddr(name))
}

func dgramUnix(name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Sendto(fd, []byte("x"), 0, unixAddr(name))
}

func listenUnix(path string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return errors.Join(unix.Bind(fd, unixAddr(path)), unix.Listen(fd, 1))
}

// pair sends a byte from one end of a socketpair to the other.
func pair(kind int) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
	if err != nil {
		return err
	}
	if _, err := unix.Write(fds[0], []byte("x")); err != nil {
		return err
	}
	_, err = unix.Read(fds[1], make([]byte, 1))
	return err
}

// dgramPair creates a socket without socket(2), and sends to an address other than its
// peer's.
func dgramPair(name string) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	return unix.Sendto(fds[0], []byte("x"), 0, unixAddr(name))
}

// pairConnect connects one end of a socketpair of each type elsewhere.
func pairConnect(args []string) (string, error) {
	last := error(unix.EPERM)
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET, unix.SOCK_RAW} {
		fds, err := unix.Socketpair(unix.AF_UNIX, kind, 0)
		if err != nil {
			continue
		}
		switch err := unix.Connect(fds[0], unixAddr(args[0])); {
		case err == nil:
			return fmt.Sprintf("type %d", kind), nil
		case !errors.Is(err, unix.EISCONN):
			last = err
		}
		_ = unix.Close(fds[0])
		_ = unix.Close(fds[1])
	}
	return "", last
}

func ioURing() error {
	var params [120]byte
	fd, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&params)), 0)
	if e == 0 {
		_ = unix.Close(int(fd))
	}
	return errno(e)
}

// linkUp changes the network itself, which only its owner may do.
func linkUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr); err != nil {
		return err
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}
