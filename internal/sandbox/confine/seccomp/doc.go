// Package seccomp writes a run's filter of system calls: which calls it always refuses,
// which the run's network allows, and which are left to the supervisor (see package
// broker).
//
// It does not install the filter; package confine does. It judges only numbers in
// registers: the program can change memory that an argument points to during the call.
package seccomp
