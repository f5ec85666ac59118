// Package conns has what a server over HTTP needs of connections and net/http does
// not offer: bounds that nobody without a token can use up for others, and the news
// that a client has left during its request.
//
// It does not know what a token is, and reads no request.
package conns
