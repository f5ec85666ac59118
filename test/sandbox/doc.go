// Package sandbox holds the tests that show that the sandbox is of use: that
// ordinary programs do their work under each level that this machine has, that
// thousands of runs leave nothing behind, and that the recipes of
// docs/how-to/sandbox-recipes.md work.
//
// It is not where refusals are tested: without these tests those would be
// vacuous, since a sandbox in which nothing works refuses everything.
package sandbox
