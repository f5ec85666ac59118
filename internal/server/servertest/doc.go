// Package servertest has what the tests of the server and of its transports
// share: HTTP clients, and packs, runners and logs for test servers.
//
// It does not create servers, so that the tests inside package server can use
// it. It is not part of any program.
package servertest
