//go:build windows

package windows

import (
	"fmt"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/winjob"
)

// These lines compile only if the numbers of package winjob, which is tested without
// Windows, equal the system's.
var (
	_ = [1]struct{}{}[winjob.LimitJobTime-windows.JOB_OBJECT_LIMIT_JOB_TIME]
	_ = [1]struct{}{}[winjob.LimitActiveProcess-windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS]
	_ = [1]struct{}{}[winjob.LimitProcessMemory-windows.JOB_OBJECT_LIMIT_PROCESS_MEMORY]
	_ = [1]struct{}{}[winjob.LimitJobMemory-windows.JOB_OBJECT_LIMIT_JOB_MEMORY]
	_ = [1]struct{}{}[winjob.LimitDieOnException-windows.JOB_OBJECT_LIMIT_DIE_ON_UNHANDLED_EXCEPTION]
	_ = [1]struct{}{}[winjob.LimitKillOnClose-windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE]
)

// A job is a job object of which only this process has a handle. When the handle is
// closed, by us or because this process ends, everything in the job is killed.
type job struct {
	handle windows.Handle
	limits winjob.Job
}

// newJob makes a job object under limits. ui adds all restrictions of the user
// interface, which Windows refuses inside another job.
func newJob(limits winjob.Job, ui bool) (_ *job, err error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("CreateJobObject: %w", err)
	}
	j := &job{handle, limits}
	defer func() {
		if err != nil {
			j.close()
		}
	}()
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{
		BasicLimitInformation: windows.JOBOBJECT_BASIC_LIMIT_INFORMATION{
			PerJobUserTimeLimit: limits.UserTime,
			LimitFlags:          limits.Flags,
			ActiveProcessLimit:  limits.ActiveProcesses,
		},
		ProcessMemoryLimit: uintptr(limits.Memory),
		JobMemoryLimit:     uintptr(limits.Memory),
	}
	if _, err := windows.SetInformationJobObject(handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		return nil, fmt.Errorf("setting the limits of the job: %w", err)
	}
	if ui {
		restrictions := windows.JOBOBJECT_BASIC_UI_RESTRICTIONS{UIRestrictionsClass: winjob.UILimits}
		if _, err := windows.SetInformationJobObject(handle, windows.JobObjectBasicUIRestrictions,
			uintptr(unsafe.Pointer(&restrictions)), uint32(unsafe.Sizeof(restrictions))); err != nil {
			return nil, fmt.Errorf("setting the job's restrictions of the user interface: %w", err)
		}
	}
	return j, nil
}

// kill ends everything in the job.
func (j *job) kill() { _ = windows.TerminateJobObject(j.handle, winjob.KillCode) }

func (j *job) close() { _ = windows.CloseHandle(j.handle) }

// accounting is JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
type accounting struct {
	TotalUserTime, TotalKernelTime                     int64 // in units of 100 ns
	ThisPeriodTotalUserTime, ThisPeriodTotalKernelTime int64
	TotalPageFaultCount, TotalProcesses                uint32
	ActiveProcesses, TotalTerminatedProcesses          uint32
}

func (j *job) accounting() (a accounting, err error) {
	err = windows.QueryInformationJobObject(j.handle, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&a)), uint32(unsafe.Sizeof(a)), nil)
	return a, err
}

// peakMemory returns how much the largest process of the job had committed, in
// bytes.
func (j *job) peakMemory() int64 {
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	if err := windows.QueryInformationJobObject(j.handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil); err != nil {
		return 0
	}
	return int64(info.PeakProcessMemoryUsed)
}

// emptyWait is how long a killed job may take to be empty. A process waits
// there for a driver that answers late, such as that of a network drive.
const emptyWait = 10 * time.Second

// awaitEmpty waits until no process of the job is left, and returns what the job
// used.
func (j *job) awaitEmpty() (accounting, error) {
	deadline := time.Now().Add(emptyWait)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		a, err := j.accounting()
		if err != nil || a.ActiveProcesses == 0 {
			return a, err
		}
		if time.Now().After(deadline) {
			return a, fmt.Errorf("%d processes: %w", a.ActiveProcesses, os.ErrDeadlineExceeded)
		}
		// Windows announces the end of the last process only through a completion port, and
		// not reliably.
		time.Sleep(pause)
	}
}
