// Package approvals shows the calls that wait for a person to that person, and
// carries the answer back: on a page in the browser, and to "packs-mcp
// approvals" in any terminal of the same user. The page also shows what runs
// changed in the user's folders, to apply, discard or take back.
//
// A [Desk] serves both over HTTP on the loopback interface, on a port of its
// own. The page is reached only through a file that the user alone can read and
// that works once; the terminal reads an [Announcement], which is such a file
// too. [Find] is the terminal's side.
//
// The package decides nothing: what a call is, what may be answered, and what an
// answer does is package gate's; what becomes of changes is up to [Changes].
package approvals
