// Package browser_test drives the approval page in real browsers without a window:
// Chromium for everything, Firefox for a person's way through it. axe-core judges it
// for accessibility. What is missing is skipped, by the names "browser", "firefox" and
// "axe", which PACKS_MCP_REQUIRE turns into a failure.
//
// It says nothing about what a decision does: that is package gate's. What the
// page's server refuses is tested where it is, byte by byte.
package browser_test
