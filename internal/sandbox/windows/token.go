//go:build windows

package windows

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/probe"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/winjob"
)

// Flags of CreateRestrictedToken. SANDBOX_INERT (2), which would switch
// AppLocker off, is not among them.
const (
	disableMaxPrivilege = 0x1 // keep only the privilege to pass through folders
	luaToken            = 0x4 // no use of the administrators' group
)

const tokenIsAppContainer = 29 // TOKEN_INFORMATION_CLASS.TokenIsAppContainer

// lowToken returns a copy of this process's token without privileges, without an
// administrator's rights, and with low integrity: with it, a program cannot write to
// anything that is not labelled low. The caller closes it.
func lowToken() (low windows.Token, err error) {
	var own windows.Token
	// Any user may start a program with a restricted copy of their own token.
	const access = windows.TOKEN_DUPLICATE | windows.TOKEN_ASSIGN_PRIMARY | windows.TOKEN_QUERY | windows.TOKEN_ADJUST_DEFAULT
	if err := windows.OpenProcessToken(windows.CurrentProcess(), access, &own); err != nil {
		return 0, fmt.Errorf("OpenProcessToken: %w", err)
	}
	defer own.Close()

	createRestrictedToken := windows.NewLazySystemDLL("advapi32.dll").NewProc("CreateRestrictedToken")
	if err := createRestrictedToken.Find(); err != nil {
		return 0, err
	}
	if ok, _, err := createRestrictedToken.Call(uintptr(own), disableMaxPrivilege|luaToken,
		0, 0, // groups that only deny
		0, 0, // privileges to take away
		0, 0, // groups that must be allowed as well
		uintptr(unsafe.Pointer(&low))); ok == 0 {
		return 0, fmt.Errorf("CreateRestrictedToken: %w", err)
	}
	sid, err := windows.CreateWellKnownSid(windows.WinLowLabelSid)
	if err == nil {
		label := windows.Tokenmandatorylabel{Label: windows.SIDAndAttributes{Sid: sid, Attributes: windows.SE_GROUP_INTEGRITY}}
		err = windows.SetTokenInformation(low, windows.TokenIntegrityLevel, (*byte)(unsafe.Pointer(&label)), label.Size())
	}
	if err != nil {
		_ = low.Close()
		return 0, fmt.Errorf("lowering the integrity of the token: %w", err)
	}
	return low, nil
}

// shieldServer keeps programs of lower integrity from ending this process. Windows
// counts that as executing and does not refuse it by itself; reading and changing the
// process are refused already.
func shieldServer() error {
	self := windows.CurrentProcess()
	sd, err := windows.GetSecurityInfo(self, windows.SE_KERNEL_OBJECT, windows.LABEL_SECURITY_INFORMATION)
	if err != nil {
		return err
	}
	sd, err = windows.SecurityDescriptorFromString(winjob.Shield(sd.String()))
	if err != nil {
		return err
	}
	return windows.SetKernelObjectSecurity(self, windows.LABEL_SECURITY_INFORMATION, sd)
}

// server returns what Windows reports about this process, for a hint.
func server() winjob.Server {
	var s winjob.Server
	token := windows.GetCurrentProcessToken()
	var container, size uint32
	if err := windows.GetTokenInformation(token, tokenIsAppContainer,
		(*byte)(unsafe.Pointer(&container)), uint32(unsafe.Sizeof(container)), &size); err == nil {
		s.AppContainer = container != 0
	}
	s.Low, _ = probe.Low(token) // the hint works without it
	return s
}
