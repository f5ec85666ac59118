// Package seatbelt confines a program on macOS: it writes a profile for the system's
// sandbox-exec, starts the program under it, and supervises the processes that the
// program starts.
//
// A run has three stages. The server starts this program again as a supervisor, which is
// not confined. The supervisor holds one end of a pipe, and kills the run when the
// server closes the other end or is killed. The supervisor starts sandbox-exec, which
// confines itself and starts this program a third time. That process sets the limits,
// reports success over a pipe, and becomes the program. So an exit status of
// sandbox-exec is never mistaken for the program's.
//
// The package does not decide what a program may touch; package sandbox does.
// It imports the standard library and golang.org/x/sys only, because a helper
// loads it before everything else.
//
// The files for macOS were only compiled and vetted by their authors, not run. The rest,
// and its tests, run on any Unix.
package seatbelt
