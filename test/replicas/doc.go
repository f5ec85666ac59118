// Package replicas holds the tests of servers that share a store, as programs: under load,
// and while they are killed.
package replicas
