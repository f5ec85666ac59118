// Package churn tests the real program while people keep changing packs: several clients use
// it over standard input and output and over HTTP.
//
// The watcher's own tests cover the effect of single edits on a Catalog; this package tests
// everything at once, and what remains afterwards.
package churn
