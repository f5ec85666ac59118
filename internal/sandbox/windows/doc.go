// Package windows confines runs on Windows, by a job object and a restricted token of
// low integrity. Package winjob has the parts that can be tested on other systems.
//
// It checks no Policy and bounds no output: the runner does.
package windows
