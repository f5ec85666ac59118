package drill

import (
	"slices"

	"golang.org/x/sys/unix"
)

// tryOwn does the operations that only macOS has.
func tryOwn(op []string, pid int) error {
	switch op[0] {
	case "see-process":
		all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(p unix.KinfoProc) bool { return int(p.Proc.P_pid) == pid }) {
			return unix.ESRCH
		}
		return nil
	case "read-environment":
		_, err := unix.SysctlRaw("kern.procargs2", pid)
		return err
	case "trace":
		if err := unix.PtraceAttach(pid); err != nil {
			return err
		}
		return unix.PtraceDetach(pid)
	}
	return errUnknown
}
