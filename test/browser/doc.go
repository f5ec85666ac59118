// Package browser_test drives the approval page in real headless browsers: Chromium for
// everything, Firefox for a person's usual steps. axe-core checks accessibility. Missing
// programs cause skips with the names "browser", "firefox" and "axe", which PACKS_MCP_REQUIRE
// turns into failures.
//
// It does not test the effect of a decision, which belongs to package gate. Tests of what
// the page's server refuses are beside that server.
package browser_test
