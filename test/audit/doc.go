// Package audit holds tests of the audit log with real processes: ten that write
// one log at once, some that are killed at random moments, and a server whose
// disk is full. It has nothing to import.
package audit
