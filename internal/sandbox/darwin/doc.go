// Package darwin confines runs on macOS, by a profile of Seatbelt and a supervisor
// (package seatbelt, which has all of this that can be tested elsewhere).
//
// It checks no Policy and bounds no output: the runner does.
package darwin
