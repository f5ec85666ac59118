package drill

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// openTerminal makes a terminal that belongs to the user, and returns its name and a
// function that closes it. The name is empty if it cannot.
func openTerminal() (name string, done func()) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", func() {}
	}
	done = func() { _ = unix.Close(fd) }
	if unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0) != nil {
		return "", done
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return "", done
	}
	return "/dev/pts/" + strconv.Itoa(n), done
}
