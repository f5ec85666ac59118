// Package confine is what this program becomes to start one other program under
// confinement, and what the two sides of that say to each other.
//
// A program that imports this package and finds [Arg] as its first argument is
// such a helper: it does its work in this package's init function and exits,
// before any other package with a costly initialisation, and before main. To
// stay that early, it imports the standard library and golang.org/x/sys only, packages
// below it that do the same, and on macOS the package seatbelt, which does so too.
//
// On Linux the helper is given a [Job] over a socket, its descriptor 3, with the
// program's three standard streams. It makes a list of system calls of it (see
// plan), forks, and lets the child do nothing but go through the list. So the
// child has one thread, which cannot be exchanged for another between being
// confined and executing the program; and since the list is plain data, what is
// done can be read, and printed when it fails. The socket is the helper's
// lifeline: when the other end is closed, by an order or because the server was
// killed, everything that the job started is killed.
//
// The filter of system calls asks the helper about some (package broker): those by
// which a run takes memory or kernel objects that no limit of the kernel counts
// for it. The helper answers by numbers alone.
//
// On macOS the helper supervises one program under sandbox-exec (package
// seatbelt); on Windows there is no helper, only the probe's program.
//
// The package does not decide what a program may touch; package sandbox does.
package confine

// Arg is the first argument that makes a helper of this program.
const Arg = "__packs-mcp-confine"

// CheckArg is the first argument that makes this program look around where it
// was started, print what it finds amiss, and exit: a probe's program.
const CheckArg = "__packs-mcp-check"
