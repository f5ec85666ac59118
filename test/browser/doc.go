// Package browser_test drives the approval page in a real browser: Chromium,
// headless. It is skipped where there is none, by the name "browser", which
// PACKS_MCP_REQUIRE turns into a failure.
//
// It says nothing about what a decision does: that is package gate's. What the
// page's server refuses is tested where it is, byte by byte.
package browser_test
