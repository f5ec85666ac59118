package drill

import (
	"errors"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

// errorName returns the text of an error of Windows, which has numbers and no names.
func errorName(err error) string {
	if errno, is := errors.AsType[syscall.Errno](err); is {
		return errno.Error()
	}
	return "error"
}

// trySystem asks for rights to another process, and uses none.
func trySystem(op []string) error {
	rights, is := map[string]uint32{
		"see-process":      windows.PROCESS_QUERY_LIMITED_INFORMATION,
		"signal":           windows.PROCESS_TERMINATE,
		"read-environment": windows.PROCESS_QUERY_INFORMATION | windows.PROCESS_VM_READ,
		"trace":            windows.PROCESS_VM_READ | windows.PROCESS_VM_WRITE | windows.PROCESS_VM_OPERATION,
	}[op[0]]
	if !is || len(op) != 2 {
		return errUnknown
	}
	pid, err := strconv.ParseUint(op[1], 10, 32)
	if err != nil {
		return err
	}
	h, err := windows.OpenProcess(rights, false, uint32(pid))
	if err != nil {
		return err
	}
	return windows.CloseHandle(h)
}

// memory asks for so many MiB, and does not touch them.
func memory(mib int) error {
	const piece = 16
	for n := 0; n < mib; n += piece {
		if _, err := windows.VirtualAlloc(0, piece<<20, windows.MEM_COMMIT|windows.MEM_RESERVE, windows.PAGE_READWRITE); err != nil {
			return err
		}
	}
	return nil
}

func ignoreFileSize() {}

// apart takes a process out of the console and the group of this one.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}
