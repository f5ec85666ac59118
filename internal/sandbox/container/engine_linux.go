package container

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// trusted returns an error unless root or the user of this process serves the other
// end of a connection: another user could put a socket at the path.
func trusted(conn *net.UnixConn) error {
	cred, err := peer(conn)
	if err != nil {
		return err
	}
	if cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("the socket is served by the user %d, and neither by root nor by you", cred.Uid)
	}
	return nil
}

// peer returns the credentials of the other end of a connection, as this process sees
// them.
func peer(conn *net.UnixConn) (cred *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var got error
	err = raw.Control(func(fd uintptr) { cred, got = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err == nil {
		err = got
	}
	return cred, err
}
