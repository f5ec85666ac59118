// Package probe is what a confined process looks for to find out whether it is
// confined: it does what must fail, and must not be possible to do. The server
// runs it at each level before it trusts that level.
//
// It confines nothing. On macOS, package seatbelt does the same for itself. Like
// package confine, which starts it before main, it imports little.
package probe
