//go:build windows

package windows

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
)

// procThreadAttributeJobList is PROC_THREAD_ATTRIBUTE_JOB_LIST, of Windows 10:
// the process is in these jobs before its first thread runs.
const procThreadAttributeJobList = 0x0002000d

// create starts the program of l with token, as a member of the job from its
// first instruction on, with no handles but its three standard ones. The caller
// closes the process's handle. The error is one that runner.Runner.Run documents.
func (j *job) create(l *level.Launch, token windows.Token) (windows.Handle, error) {
	fail := func(err error) (windows.Handle, error) {
		return 0, &sandbox.ConfineError{Level: sandbox.LevelPartial, Step: "preparing the start", Err: err}
	}
	path, err := windows.UTF16PtrFromString(l.Argv[0])
	if err != nil {
		return fail(err)
	}
	line, err := windows.UTF16PtrFromString(commandLine(l.Argv))
	if err != nil {
		return fail(err)
	}
	dir, err := windows.UTF16PtrFromString(l.Command.Dir)
	if err != nil {
		return fail(err)
	}
	env, err := envBlock(l.Env)
	if err != nil {
		return fail(err)
	}
	handles, err := inheritable(l)
	defer func() {
		for _, h := range handles {
			_ = windows.CloseHandle(h)
		}
	}()
	if err != nil {
		return fail(err)
	}
	attributes, err := windows.NewProcThreadAttributeList(2)
	if err != nil {
		return fail(err)
	}
	defer attributes.Delete()
	if err := attributes.Update(windows.PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
		unsafe.Pointer(&handles[0]), uintptr(len(handles))*unsafe.Sizeof(handles[0])); err != nil {
		return fail(err)
	}
	if err := attributes.Update(procThreadAttributeJobList, unsafe.Pointer(&j.handle), unsafe.Sizeof(j.handle)); err != nil {
		return fail(err)
	}
	startup := windows.StartupInfoEx{
		StartupInfo: windows.StartupInfo{
			Flags:      windows.STARTF_USESTDHANDLES | windows.STARTF_USESHOWWINDOW,
			ShowWindow: windows.SW_HIDE,
			StdInput:   handles[0], StdOutput: handles[1], StdErr: handles[2],
		},
		ProcThreadAttributeList: attributes.List(),
	}
	startup.Cb = uint32(unsafe.Sizeof(startup))
	const flags = windows.CREATE_UNICODE_ENVIRONMENT | windows.EXTENDED_STARTUPINFO_PRESENT |
		windows.CREATE_NO_WINDOW | windows.CREATE_NEW_PROCESS_GROUP
	var info windows.ProcessInformation
	if err := windows.CreateProcessAsUser(token, path, line, nil, nil, true, flags, &env[0], dir, &startup.StartupInfo, &info); err != nil {
		return 0, createError(l.Command, err)
	}
	_ = windows.CloseHandle(info.Thread)
	return info.Process, nil
}

// inheritable returns new handles of the program's standard streams that a child can
// inherit. With an error, it returns those made so far.
func inheritable(l *level.Launch) ([]windows.Handle, error) {
	stdin := l.Stdin
	if stdin == nil {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return nil, err
		}
		defer null.Close()
		stdin = null
	}
	var handles []windows.Handle
	self := windows.CurrentProcess()
	for _, f := range []*os.File{stdin, l.Stdout, l.Stderr} {
		var h windows.Handle
		if err := windows.DuplicateHandle(self, windows.Handle(f.Fd()), self, &h, 0, true, windows.DUPLICATE_SAME_ACCESS); err != nil {
			return handles, fmt.Errorf("DuplicateHandle: %w", err)
		}
		handles = append(handles, h)
	}
	return handles, nil
}

// commandLine joins argv in the way that programs split it again.
func commandLine(argv []string) string {
	escaped := make([]string, len(argv))
	for i, arg := range argv {
		escaped[i] = syscall.EscapeArg(arg)
	}
	return strings.Join(escaped, " ")
}

// envBlock returns env, which is sorted, in the form that Windows takes: each entry
// ends with a 0, and one more 0 follows.
func envBlock(env []string) ([]uint16, error) {
	var block []uint16
	for _, kv := range env {
		wide, err := windows.UTF16FromString(kv)
		if err != nil {
			return nil, err
		}
		block = append(block, wide...)
	}
	if len(block) == 0 {
		block = append(block, 0)
	}
	return append(block, 0), nil
}

// checkText returns an error for strings that are not valid UTF-8. Windows would not
// pass on exactly what was approved.
func checkText(l *level.Launch) error {
	for i, arg := range l.Argv {
		if !utf8.ValidString(arg) {
			return &sandbox.CommandError{Problem: fmt.Sprintf("argument %d is not valid UTF-8, which Windows cannot pass on", i)}
		}
	}
	for _, kv := range l.Env {
		if !utf8.ValidString(kv) {
			name, _, _ := strings.Cut(kv, "=")
			return &sandbox.CommandError{Problem: fmt.Sprintf("environment variable %q is not valid UTF-8, which Windows cannot pass on", name)}
		}
	}
	return nil
}

// createError returns why CreateProcessAsUser refused.
func createError(c *sandbox.Command, err error) error {
	errno, _ := errors.AsType[syscall.Errno](err)
	switch errno {
	case windows.ERROR_DIRECTORY:
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("working folder %q", c.Dir), Err: err}
	case windows.ERROR_PRIVILEGE_NOT_HELD, windows.ERROR_INVALID_PARAMETER, windows.ERROR_NOT_SUPPORTED:
		// The cause is not the program.
		return &sandbox.ConfineError{Level: sandbox.LevelPartial, Step: "CreateProcessAsUser", Err: err}
	case windows.ERROR_BAD_EXE_FORMAT, windows.ERROR_EXE_MACHINE_TYPE_MISMATCH:
		err = syscall.ENOEXEC
	case windows.ERROR_ELEVATION_REQUIRED:
		err = fmt.Errorf("it asks for the rights of an administrator, which no run has: %w", err)
	}
	return &sandbox.StartError{Program: c.Program, Err: err}
}
