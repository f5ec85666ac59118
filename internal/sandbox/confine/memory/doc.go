// Package memory bounds what the processes of a run share without a file, all of it
// together: the kernel has no limit for that, since it is of no one process.
//
// It allows and refuses. It neither makes nor unmaps anything.
package memory
