//go:build !unix && !windows

package browser

import "os/exec"

func detach(*exec.Cmd) {}
