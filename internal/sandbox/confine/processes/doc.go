// Package processes finds out from /proc which processes are below others.
//
// What it returns may have changed by then.
package processes
