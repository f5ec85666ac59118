// Package card has what draws a question in a browser: one script and one stylesheet,
// which the approval page and the card in a client's chat share, the document of that
// card, and a question as both get it.
//
// It decides nothing and sends nothing. What speaks with the client around the card
// is chat.js; everything that a pack, a client or a model wrote is set as text.
package card
