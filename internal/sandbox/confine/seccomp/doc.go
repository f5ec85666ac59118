// Package seccomp writes a run's filter of system calls: the calls that it always
// refuses, those that the run's network allows, and those about which the supervisor is
// asked (see package broker).
//
// It does not install the filter; package confine does. It judges only numbers in
// registers: the program can change memory that an argument points to during the call.
package seccomp
