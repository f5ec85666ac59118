// Package seccomp writes the filter of system calls that a run is under: what is
// refused whatever its policy, what its network allows, and what the supervisor is
// asked about (package confine, which installs the filter and answers).
//
// It installs nothing. Only numbers in registers can be judged: what an argument
// points to, others can change while the call goes on.
package seccomp
