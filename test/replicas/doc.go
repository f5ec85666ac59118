// Package replicas tests real servers that share a store, under load and while they are
// killed.
package replicas
