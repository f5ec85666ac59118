// Package approvals shows a person the calls that wait for an answer, and
// carries the answer back: on a page in the browser, and through "packs-mcp
// approvals" in any terminal of the same user. The page also shows what runs
// changed in the user's folders, to apply, discard or undo.
//
// A [Desk] serves both over HTTP on the loopback interface, on a port of its
// own. [Desk.Alert] tells the person that a call waits. The page is reached only through a file that only the user can read and
// that works once. The terminal reads an [Announcement], which is also a file
// that only the user can read. [Find] is the terminal's side.
//
// The package decides nothing. Package gate defines what a call is, which
// answers are allowed and what an answer does; [Changes] defines what happens to
// changes.
package approvals
