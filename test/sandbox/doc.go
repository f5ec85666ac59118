// Package sandbox tests that the sandbox is usable: that ordinary programs work under
// each level that this machine has, that thousands of runs leave nothing behind, and
// that the recipes in docs/how-to/sandbox-recipes.md work.
//
// It does not test refusals. Without these tests, though, refusals would prove
// nothing, since a sandbox in which nothing works refuses everything.
package sandbox
