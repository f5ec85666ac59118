// Package processes finds the descendants of a process in /proc.
//
// Its results may be out of date by the time it returns.
package processes
