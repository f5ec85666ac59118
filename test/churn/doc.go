// Package churn holds the test in which people change packs, and go on changing
// them, while the real program serves them to several clients over standard input
// and output and over HTTP.
//
// What a single edit does to a Catalog is tested beside the watcher; this is about
// everything at once, and about what is left afterwards.
package churn
