// Package pids bounds how many processes and threads a run has, with Linux control
// groups. Root needs them, because no other limit counts root's processes. Other users
// usually cannot make such groups.
//
// It does not move processes into a group; it says how a process gets in.
package pids
