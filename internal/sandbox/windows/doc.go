// Package windows confines runs on Windows, by a job object and a restricted token
// of low integrity. What of this can be tested elsewhere is in package winjob.
//
// It checks no Policy and bounds no output: the runner does.
package windows
