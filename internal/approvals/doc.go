// Package approvals is the desk of a server: it shows a person the calls that wait
// for an answer, on a page in the browser and to "packs-mcp approvals" in any terminal
// of the same user, and carries the answer back. The page also shows what runs changed
// in the user's folders, to apply, discard or undo.
//
// A [Desk] serves both over HTTP on the loopback interface, on a port of its own.
// [Desk.Alert] tells the person that a call waits. The page is reached only through a
// file that only the user can read and that works once. The terminal reads an
// announcement, which is also a file that only the user can read.
//
// Below it, package control has what a desk and a terminal say to each other, package
// terminal finds desks and asks them, and package runfolder keeps the folder that
// leads from one to the other.
//
// The package decides nothing. Package gate defines what a call is, which
// answers are allowed and what an answer does; [Changes] defines what happens to
// changes.
package approvals
