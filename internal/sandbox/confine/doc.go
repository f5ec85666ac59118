// Package confine is the helper that this program becomes in order to start one
// other program under confinement, and the messages between helper and server.
//
// A program that imports this package and finds [Arg] as its first argument is
// such a helper: it does its work in this package's init function and exits before
// main, and before any package with a costly initialisation. To stay that early, this
// package imports only the standard library, golang.org/x/sys, and packages of ours
// that do the same.
//
// On Linux the helper receives a [Job] over a socket, its descriptor 3, with the
// program's three standard streams. It turns the job into a list of system calls (see
// plan) and forks. The child does nothing but run the list. So it has one thread, and
// no other can take its place between being confined and executing the program. The
// list is plain data, so each step can be read, and named when it fails. The socket is
// the helper's lifeline: when the server closes it or is killed, the helper kills
// everything that the job started.
//
// The filter asks the helper about some system calls (see package broker): those that
// take memory or kernel objects which no limit of the kernel counts for the run. The
// helper decides by numbers in registers alone.
//
// On macOS the helper supervises one program under sandbox-exec (package
// seatbelt); on Windows there is no helper, only the probe's program.
//
// The package does not decide what a program may touch; package sandbox does.
package confine

// Arg is the first argument that makes a helper of this program.
const Arg = "__packs-mcp-confine"

// CheckArg is the first argument that makes this program a probe: it checks that it
// is confined, prints what is wrong, and exits.
const CheckArg = "__packs-mcp-check"
