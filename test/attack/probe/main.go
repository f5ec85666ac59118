//go:build linux

// Command probe is a hostile program: it tries one operation that a confined program should
// not be able to do, and reports the system's answer. The tests of package attack build it
// and run it at each level.
//
// It makes system calls itself if a library would hide the answer. It is not a tool for
// people. Unconfined, it does no lasting harm, except for the operations that the tests
// never run unconfined.
//
//	probe OP ARGS...
//
// Most operations print one line of JSON: the operation, its outcome ("ok", the name of an
// errno, or what the operation documents), and optionally a detail.
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

// An op tries something. Its outcome is err, unless detail says more.
type op func(args []string) (detail string, err error)

// An answer is an outcome that is not an errno.
type answer string

func (a answer) Error() string { return string(a) }

func main() {
	if len(os.Args) < 2 {
		fail("usage: probe OP ARGS...")
	}
	name, args := os.Args[1], os.Args[2:]
	if name == drill.Arg { // an operation that is part of packs-mcp
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

// plain and with adapt operations without a detail.
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

// say writes to standard output directly, bypassing Go's runtime.
func say(s string) { _, _ = unix.Write(1, []byte(s)) }

func fail(why string) {
	_, _ = unix.Write(2, []byte("probe: "+why+"\n"))
	os.Exit(99)
}

// number returns argument i, which the tests always give.
func number(args []string, i int) int {
	n, err := strconv.Atoi(args[i])
	if err != nil {
		fail(err.Error())
	}
	return n
}

// errno converts e to an error; nil for 0.
func errno(e unix.Errno) error {
	if e == 0 {
		return nil
	}
	return e
}
