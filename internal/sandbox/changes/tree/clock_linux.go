package tree

import (
	"errors"

	"golang.org/x/sys/unix"
)

// A Clock watches whether somebody sets the system's clock. Times of change from
// before and after cannot be compared.
type Clock struct {
	fd  int // of a timer that the kernel cancels when the clock is set; -1: none
	set bool
}

// farAway is when the timer would ring, in seconds: in the year 2242.
const farAway = 1 << 33

// WatchClock begins to watch. If it cannot, the clock counts as set.
func WatchClock() *Clock {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return &Clock{fd: -1, set: true}
	}
	c := &Clock{fd: fd}
	at := unix.ItimerSpec{Value: unix.Timespec{Sec: farAway}}
	c.set = unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &at, nil) != nil
	return c
}

// WasSet reports whether the clock was set since WatchClock. Waking from sleep sets
// it; slewing by a time server does not.
func (c *Clock) WasSet() bool {
	if !c.set {
		// timerfd_create(2): a read fails with ECANCELED when the clock was set, and
		// with EAGAIN when the timer did not ring.
		_, err := unix.Read(c.fd, make([]byte, 8))
		c.set = !errors.Is(err, unix.EAGAIN)
	}
	return c.set
}

// Close ends the watch.
func (c *Clock) Close() error {
	if c.fd < 0 {
		return nil
	}
	fd := c.fd
	c.fd, c.set = -1, true
	return unix.Close(fd)
}
