package served

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
)

// A Usage describes a process's resources.
type Usage struct {
	Threads, Descriptors, Watches int
	Resident                      int64 // bytes
}

// Usage measures the server's process.
func (s *Server) Usage() (Usage, error) {
	proc := s.proc()
	status, err := os.ReadFile(proc + "status")
	if err != nil {
		return Usage{}, err
	}
	var u Usage
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		n, _ := strconv.ParseInt(strings.Fields(value + " x")[0], 10, 64) // of those two it is a number
		switch name {
		case "Threads":
			u.Threads = int(n)
		case "VmRSS":
			u.Resident = n << 10
		}
	}
	open, err := os.ReadDir(proc + "fdinfo")
	if err != nil {
		return Usage{}, err
	}
	for _, fd := range open {
		info, err := os.ReadFile(proc + "fdinfo/" + fd.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // closed since
		}
		if err != nil {
			return Usage{}, err
		}
		u.Descriptors++
		u.Watches += bytes.Count(info, []byte("inotify wd:"))
	}
	return u, nil
}

func (s *Server) proc() string { return fmt.Sprintf("/proc/%d/", s.PID()) }
