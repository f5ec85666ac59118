package program

import (
	"encoding/json"
	"os"
	"testing"
)

// childVar makes the test binary say how it was started.
const childVar = "PROGRAM_TEST_CHILD"

// started is how a program was started.
type started struct {
	Exe       string
	Argv, Env []string
}

func TestMain(m *testing.M) {
	if os.Getenv(childVar) == "" {
		os.Exit(m.Run())
	}
	exe, _ := os.Executable()
	if err := json.NewEncoder(os.Stdout).Encode(started{Exe: exe, Argv: os.Args, Env: os.Environ()}); err != nil {
		os.Exit(1)
	}
}
