// Package probe lets a confined process find out whether it is confined, by
// attempting what must fail. The server runs it at each level before trusting that
// level.
//
// It confines nothing. On macOS, package seatbelt does the same for itself. Like
// package confine, which starts it before main, it imports little.
package probe
