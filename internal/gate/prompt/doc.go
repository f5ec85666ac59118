// Package prompt turns a call into what a person is asked: a [Card] of facts, its
// title, what an answer covers, and what changed since an earlier answer. It also
// formats a card as the message of a client's form and for a terminal.
//
// Everything in a card that a pack, a client or a model chose is escaped or quoted. A
// card is complete, or making it is an error. The package decides nothing, does not
// know answers, and writes no markup; the page does.
package prompt
