// Package served runs the real program for tests of whole servers: in a home of its
// own, with clients over standard input and output and over HTTP, and with a count of
// each process's resources.
//
// It only checks that servers start, end cleanly and log no errors; the tests check
// the answers.
package served
