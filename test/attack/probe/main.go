//go:build linux

// Command probe is a hostile program: it tries one operation that a confined
// program should not be able to do, and says what the system answered. The
// tests of package attack build it and run it under each level.
//
// It makes system calls itself where a library would hide the answer. It is not
// a tool for people, and does no lasting harm when nothing stops it, but for
// the operations that the tests never start unconfined.
//
//	probe OP ARGS...
//
// Most operations print one line of JSON: the operation, its outcome ("ok", the
// name of an errno, or what the operation documents), and perhaps a detail.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/drill"
)

// A report is what an operation prints.
type report struct {
	Op      string `json:"op"`
	Outcome string `json:"outcome"`
	Detail  string `json:"detail,omitempty"`
}

// An op tries something. Its outcome is err when detail says nothing else.
type op func(args []string) (detail string, err error)

// An answer is an outcome that is not an errno.
type answer string

func (a answer) Error() string { return string(a) }

func main() {
	if len(os.Args) < 2 {
		fail("usage: probe OP ARGS...")
	}
	name, args := os.Args[1], os.Args[2:]
	if name == drill.Arg { // an operation of the program itself
		os.Exit(drill.Main(os.Stdin, os.Stdout, args))
	}
	if do, ok := behaviours()[name]; ok {
		os.Exit(do(args))
	}
	all := map[string]op{}
	for _, part := range []map[string]op{networkOps(), fileOps(), processOps(), kernelOps(), memoryOps(), selfOps()} {
		maps.Copy(all, part)
	}
	do, ok := all[name]
	if !ok {
		fail(fmt.Sprintf("no operation %q of %q", name, slices.Sorted(maps.Keys(all))))
	}
	detail, err := do(args)
	line, merr := json.Marshal(report{name, outcome(err), detail})
	if merr != nil {
		fail(merr.Error())
	}
	say(string(line) + "\n")
}

// plain and with are operations without a detail.
func plain(do func() error) op {
	return func([]string) (string, error) { return "", do() }
}

func with(do func(args []string) error) op {
	return func(args []string) (string, error) { return "", do(args) }
}

func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	if a, ok := errors.AsType[answer](err); ok {
		return string(a)
	}
	if errno, ok := errors.AsType[unix.Errno](err); ok {
		if name := unix.ErrnoName(errno); name != "" {
			return name
		}
	}
	return "error: " + err.Error()
}

// say writes to standard output without anything of Go's in between.
func say(s string) { _, _ = unix.Write(1, []byte(s)) }

func fail(why string) {
	_, _ = unix.Write(2, []byte("probe: "+why+"\n"))
	os.Exit(99)
}

// number is argument i, which the tests always give.
func number(args []string, i int) int {
	n, err := strconv.Atoi(args[i])
	if err != nil {
		fail(err.Error())
	}
	return n
}

// errno is nil for 0.
func errno(e unix.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}
