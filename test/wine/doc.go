// Package wine runs the Windows build of the program under Wine as a person would use it:
// from "version" to an edit that a client is notified of.
//
// Wine is not Windows. It has no integrity levels and does not enforce the limits of job
// objects, so the sandbox's own check fails, and runs are unconfined here. Comments mark
// expectations that are due to Wine.
//
// scripts/wine.sh (make wine) prepares everything. Without that, the tests are skipped;
// PACKS_MCP_REQUIRE=wine turns that into a failure.
package wine
