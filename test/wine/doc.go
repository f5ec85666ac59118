// Package wine runs the Windows build of the program under Wine, the way a person
// would use it: from version to an edit that a client hears of.
//
// Wine is not Windows. It has no integrity levels and enforces no limits of job
// objects, so that the sandbox's own trial refuses it, and runs are unconfined
// here. What a test expects that is Wine's own fault says so.
//
// scripts/wine.sh (make wine) prepares it all. Without that, the tests are skipped;
// PACKS_MCP_REQUIRE=wine turns that into a failure.
package wine
