// Package prompt makes of a call what a person is asked: a [Card] of facts, its title,
// what an answer covers, and what changed since an earlier one. It also lays a card
// out as the message of a client's form and for a terminal.
//
// Everything that a pack, a client or a model chose is escaped or quoted in a card,
// and a card is complete or an error. The package decides nothing, does not know
// answers, and writes no markup; see the page for that.
package prompt
