// Package prompt puts the facts of a call into words: the text of its question, its
// title, what an answer covers, and what changed since an earlier one.
//
// Everything that a pack, a client or a model chose is escaped or quoted in these
// texts, and a text is complete or an error. The package decides nothing, and does
// not know answers.
package prompt
