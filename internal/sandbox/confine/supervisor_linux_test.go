//go:build amd64 || arm64

package confine

import (
	"os/exec"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The supervisor notices that the program could not be started, even if the child
// reports it and ends after the last poll. It must not look like a program that
// exited with 1.
func TestLastWord(t *testing.T) {
	child := exec.Command("/bin/sh", "-c", "exit 1")
	if err := child.Start(); err != nil {
		t.Skip(err)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pipe[0])
	rec := record{kind: saysProgram, errno: int32(unix.ESTALE)}
	_, err := unix.Write(pipe[1], unsafe.Slice((*byte)(unsafe.Pointer(&rec)), recordSize))
	_ = unix.Close(pipe[1])
	if err != nil {
		t.Fatal(err)
	}
	f := &family{}
	f.program.what = []string{StepProgram}
	// The supervisor no longer polls: something ends the run.
	s := &supervisor{family: f, job: &Job{}, pid: child.Process.Pid, reports: pipe[0], killing: true}
	s.watchProgram()
	if !s.reaped || !s.report.Failed || s.report.Step != StepProgram || s.report.Errno != uint64(unix.ESTALE) {
		t.Errorf("reaped %v, report %+v; want the failure of the step %q", s.reaped, s.report, StepProgram)
	}
}
