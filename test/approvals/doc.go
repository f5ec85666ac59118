// Package approvals attacks approvals from outside: the real program over
// its standard input and output, its commands in other processes, its files, and
// kill -9. What it looks at is what a client, a person and the audit log see.
//
// What each part does by itself is tested where that part is; pages in a browser
// are tested in test/browser.
package approvals
