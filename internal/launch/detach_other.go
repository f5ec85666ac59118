//go:build !unix && !windows

package launch

import "os/exec"

func detach(*exec.Cmd, console) {}
