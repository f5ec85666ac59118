// Package broker answers the questions of the system call filter: may a run have this
// much more shared memory, or these kernel objects?
//
// It decides by numbers in registers alone, and reads none of the run's memory. It
// does not install the filter; package seccomp writes it and package confine installs
// it.
package broker
