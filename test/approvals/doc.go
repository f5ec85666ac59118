// Package approvals attacks approvals from outside: the real program over its
// standard input and output, its commands in other processes, its files, and kill -9.
// It looks at what a client, a person and the audit log see.
//
// Each part has tests of its own beside it; pages in a browser are tested in
// test/browser.
package approvals
