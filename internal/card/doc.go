// Package card contains the code that draws a question in a browser: a script and a
// stylesheet, shared by the approval page and the card in a client's chat, the document
// of that card, and the data of a question.
//
// It decides nothing and sends nothing. In a chat, chat.js talks to the client. Whatever a
// pack, a client or a model wrote is inserted as text.
package card
