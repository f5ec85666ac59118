package gate

import (
	"fmt"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// A Question is what a person is asked about one request.
type Question struct {
	// Kind is the call's.
	Kind string
	// Title says the essential in one line.
	Title string
	// Card is everything that the person decides about, complete and escaped.
	Card prompt.Card
	// Form is the card as text for a client's own form.
	Form    string
	Choices []queue.Choice
	Fields  []call.Field // to be filled in by the person who allows the call
	// Code names the question for a person, on the page and in the terminal.
	Code string
	// Elicit says that the client is to ask. Otherwise the person is asked only
	// elsewhere.
	Elicit bool
	// InChat says that the person is asked on a card in the chat, which the client
	// shows when the model asks for it; see [Gate.InChat].
	InChat bool
	// See says how the person can see all of it outside the client; empty: they
	// cannot.
	See string
	// Decided is closed when a person has answered on the page or in the terminal;
	// see [Gate.Answered].
	Decided <-chan struct{}
	// Taken is closed when the same call has been made again and waits in place of
	// this one; see [Gate.Postpone].
	Taken <-chan struct{}
	// Wait is how long the call waits for an answer. It does not apply if the
	// client carries the question.
	Wait time.Duration
	// Cut says why the call stops waiting sooner. Set it before [Gate.Postpone].
	Cut string
	// Waiting is a text for the client to show while it waits. It says where to
	// answer.
	Waiting string
	// State must come back with the answer, unchanged.
	State   string
	Expires time.Time

	nonce string
}

// whyNoAnswer says why the call waits no longer.
func (q *Question) whyNoAnswer() string {
	if q.Cut != "" {
		return q.Cut
	}
	return fmt.Sprintf("nobody answered within %s", q.Wait)
}
