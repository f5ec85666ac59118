// Package broker answers what the filter of system calls asks its supervisor: may a
// run have this much more memory that it shares, or these kernel objects?
//
// It decides by numbers in registers alone, and looks at no memory of the run's. It
// does not install the filter; package seccomp writes it and package confine
// installs it.
package broker
