// Package linux confines runs on Linux, for amd64 and arm64: it works out what a run
// may touch, sends that as a job to a helper (package confine), and supervises the
// helper. It confines by namespaces, by Landlock, or by both, and always by seccomp.
//
// It checks no Policy and bounds no output: the runner does.
package linux
