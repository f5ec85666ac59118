// Package darwin confines runs on macOS with a Seatbelt profile and a supervisor.
// Package seatbelt has the parts that can be tested on other systems.
//
// It checks no Policy and bounds no output: the runner does.
package darwin
