// Package pids bounds how many processes and threads a run has, by control groups
// of Linux. They serve root, whose processes no other limit counts; other users may
// make no such groups, as a rule.
//
// It puts nobody into a group: it says how a process gets in.
package pids
