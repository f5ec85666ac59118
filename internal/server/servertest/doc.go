// Package servertest has what the tests of the server and of its transports share:
// clients over HTTP, and packs, runners and logs for a server of a test.
//
// It makes no server, so that the tests inside package server can use it, and it
// is in no program.
package servertest
