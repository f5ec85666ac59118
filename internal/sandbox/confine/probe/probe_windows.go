package probe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Main is the probe's program, which gets two folders as arguments. It prints what is
// wrong, and returns the exit status.
func Main(args []string) int {
	if len(args) != 2 {
		fmt.Println("the check needs two folders")
		return 2
	}
	if err := check(args[0], args[1]); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

const (
	lowIntegrity     = 0x1000 // SECURITY_MANDATORY_LOW_RID
	changeNotify     = 23     // SeChangeNotifyPrivilege, which everybody keeps
	breakawayAllowed = windows.JOB_OBJECT_LIMIT_BREAKAWAY_OK | windows.JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK
)

// check checks that this process is confined as intended, by attempting what must
// fail where possible. It must be able to write to the folder inside and not to the
// folder outside.
func check(inside, outside string) error {
	var job windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	// No handle means the job that this process is in.
	if err := windows.QueryInformationJobObject(0, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&job)), uint32(unsafe.Sizeof(job)), nil); err != nil {
		return fmt.Errorf("the process is in no job object: %w", err)
	}
	flags := job.BasicLimitInformation.LimitFlags
	if flags&windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE == 0 || flags&breakawayAllowed != 0 {
		return fmt.Errorf("the process is in another job object, with the limits %#x", flags)
	}

	token := windows.GetCurrentProcessToken()
	low, err := Low(token)
	if err != nil {
		return fmt.Errorf("reading the integrity of the process: %w", err)
	}
	if !low {
		return errors.New("the integrity of the process is not low")
	}
	if err := privileges(token); err != nil {
		return err
	}

	if err := os.WriteFile(filepath.Join(inside, "check"), nil, 0o600); err != nil {
		return fmt.Errorf("the process cannot write to its own folder: %w", err)
	}
	if err := os.WriteFile(filepath.Join(outside, "check"), nil, 0o600); err == nil {
		return errors.New("the process can write outside of its folders")
	}
	const change = windows.PROCESS_VM_WRITE | windows.PROCESS_VM_OPERATION | windows.PROCESS_DUP_HANDLE
	if h, err := windows.OpenProcess(change, false, uint32(os.Getppid())); err == nil {
		_ = windows.CloseHandle(h)
		return errors.New("the process can change the server")
	}
	return nil
}

// Low reports whether the integrity of the token is low or less, by the last part of
// its SID.
func Low(token windows.Token) (bool, error) {
	buf, err := tokenInfo(token, windows.TokenIntegrityLevel)
	if err != nil {
		return false, err
	}
	sid := (*windows.Tokenmandatorylabel)(unsafe.Pointer(&buf[0])).Label.Sid
	return sid.SubAuthority(uint32(sid.SubAuthorityCount())-1) <= lowIntegrity, nil
}

// privileges returns an error that names a privilege which a restricted token lacks
// but this one has.
func privileges(token windows.Token) error {
	buf, err := tokenInfo(token, windows.TokenPrivileges)
	if err != nil {
		return fmt.Errorf("reading the privileges of the process: %w", err)
	}
	for _, p := range (*windows.Tokenprivileges)(unsafe.Pointer(&buf[0])).AllPrivileges() {
		if p.Attributes&windows.SE_PRIVILEGE_ENABLED != 0 && (p.Luid.LowPart != changeNotify || p.Luid.HighPart != 0) {
			return fmt.Errorf("the process has the privilege %d", p.Luid.LowPart)
		}
	}
	return nil
}

// tokenInfo returns the token's information of one class; its pointers point into the
// result.
func tokenInfo(token windows.Token, class uint32) ([]byte, error) {
	size := uint32(256)
	for {
		buf := make([]byte, size)
		err := windows.GetTokenInformation(token, class, &buf[0], size, &size)
		if !errors.Is(err, windows.ERROR_INSUFFICIENT_BUFFER) {
			return buf, err
		}
	}
}
