package program

import (
	"encoding/json"
	"os"
	"testing"
)

// childVar makes the test binary report how it was started.
const childVar = "PROGRAM_TEST_CHILD"

// started says how a program was started.
type started struct {
	Exe       string
	Argv, Env []string
}

func TestMain(m *testing.M) {
	if os.Getenv(childVar) == "" {
		os.Exit(m.Run())
	}
	exe, _ := os.Executable()
	if err := json.NewEncoder(os.Stdout).Encode(said{Exe: exe, Argv: toBytes(os.Args), Env: toBytes(os.Environ())}); err != nil {
		os.Exit(1)
	}
}

// said is started in JSON, which has no strings that are not UTF-8.
type said struct {
	Exe       string
	Argv, Env [][]byte
}

func (s said) started() started {
	return started{Exe: s.Exe, Argv: toStrings(s.Argv), Env: toStrings(s.Env)}
}

func toBytes(list []string) (out [][]byte) {
	for _, s := range list {
		out = append(out, []byte(s))
	}
	return out
}

func toStrings(list [][]byte) (out []string) {
	for _, b := range list {
		out = append(out, string(b))
	}
	return out
}
