// Package churn holds the test in which people change packs, and go on changing
// them, while the real program serves them to several clients over standard input
// and output and over HTTP.
//
// The watcher's own tests cover the effect of single edits on a Catalog; this package
// tests everything at once, and what is left afterwards.
package churn
