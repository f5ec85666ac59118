// Package seatbelt confines a program on macOS: it writes the profile that the
// system's sandbox-exec is given, starts a program under it, and watches over
// what the program starts in turn.
//
// A run is a chain of three. The server starts this program again as a
// supervisor, which is not confined, holds the other end of a pipe of the
// server's, and kills the run when that is closed, by an order or because the
// server was killed. The supervisor starts sandbox-exec, which confines itself
// and starts this program a third time: that one sets the limits, says over a
// pipe that it came so far, and becomes the program. So the exit statuses of
// sandbox-exec are never taken for the program's.
//
// The package does not decide what a program may touch; package sandbox does.
// It imports the standard library and golang.org/x/sys only, because a helper
// loads it before everything else.
//
// What depends on macOS itself is in the files for it, which were compiled and
// vetted, and never run, where this was written. The rest runs on any Unix, and
// its tests do.
package seatbelt
