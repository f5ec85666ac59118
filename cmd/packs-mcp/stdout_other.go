//go:build !unix

package main

import (
	"io"
	"os"
)

// claimStdout keeps standard output for the protocol: what Go code writes to
// os.Stdout goes to standard error instead. Handles are not inherited by
// children here.
func claimStdout(stdout io.Writer) (io.Writer, error) {
	if f, ok := stdout.(*os.File); ok && f == os.Stdout {
		os.Stdout = os.Stderr
	}
	return stdout, nil
}
