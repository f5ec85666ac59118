// Package processes reads from /proc which processes are descendants of others.
//
// Its results may be out of date when it returns.
package processes
