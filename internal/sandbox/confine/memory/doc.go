// Package memory bounds the total memory that the processes of a run share without a
// file. The kernel has no limit for it, since it belongs to no single process.
//
// It allows and refuses mappings. It does not make or unmap any.
package memory
