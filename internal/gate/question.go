package gate

import (
	"cmp"
	"fmt"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
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

// An Answer is what came back for a question. Nothing in it is trusted.
type Answer struct {
	// State is the question's state as the client returned it.
	State string
	// Verdict is what a person decided; nil if nobody did.
	Verdict *queue.Verdict
	// Reason says why there is no verdict, as in "no answer within 45s". It goes
	// into the log and the denial.
	Reason string
	// Channel names how the question was asked, as in "elicitation". It goes into
	// the log.
	Channel string
	// Note says how the answer was given. It goes into the log.
	Note string
	// Declined says that the form was declined or closed without a choice. A person
	// may have done that, or a client that nobody watches.
	Declined bool
	// Failed says that the client could not show the form.
	Failed bool

	// Ended says that nobody answered before this server began to end.
	Ended bool

	by *approvers.Person // who gave it elsewhere; nil: the operator, or the client's own user
}

// ReadForm returns the answer that a client's form holds. action is "accept",
// "decline" or "cancel" as in MCP. content is the filled form; an accept needs its
// field "decision". Anything else is an answer without a verdict, which allows
// nothing.
func ReadForm(state, action string, content any) *Answer {
	a := &Answer{State: state, Channel: queue.ChannelElicitation, Declined: action == "decline" || action == "cancel"}
	a.Verdict, a.Reason = readForm(action, content)
	return a
}

// Over returns the answer as one that came over another channel: the client could
// show the card in place of its own form.
func (a *Answer) Over(channel string) *Answer {
	a.Channel = channel
	if a.Verdict != nil {
		a.Verdict.Channel = channel
	}
	return a
}

// readForm returns the verdict of a form, or the reason why it has none.
func readForm(action string, content any) (v *queue.Verdict, reason string) {
	switch action {
	case "accept":
	case "decline":
		return nil, "the person declined"
	case "cancel":
		return nil, "the question was closed without an answer"
	case "":
		return nil, "there was no answer"
	default:
		return nil, "the answer was malformed"
	}
	form, ok := content.(map[string]any)
	if !ok {
		return nil, "the answer was malformed: no form was filled in"
	}
	word, ok := form["decision"].(string)
	if !ok {
		return nil, `the answer was malformed: no "decision"`
	}
	v = &queue.Verdict{Values: make(map[string]string), Channel: queue.ChannelElicitation}
	if v.Decision, ok = queue.ParseDecision(word); !ok {
		return nil, notOffered
	}
	for name, value := range form {
		if text, ok := value.(string); ok {
			v.Values[name] = text
		}
	}
	return v, ""
}

// The reasons for a denial that a person chose, and for one caused by a wrong answer
// on the card in a chat.
const (
	choseToDeny   = "the person chose to deny"
	nobodyDecided = "an answer came that the card in the chat did not give, so it is denied; no person decided this"
)

// notOffered is the reason for denying an answer whose decision was not offered.
const notOffered = `the answer was malformed: "decision" is none of the choices`

// decided is a verdict that was checked against its question.
type decided struct {
	queue.Decision
	values   map[string]string // of the fields, if the call is allowed
	explicit bool              // a person chose it; a denial may also be the client's own
	reason   string            // for a denial
}

// decision checks the verdict against the choices and fields of its question. A
// decision that was not offered is a denial.
func (a *Answer) decision(offered []queue.Choice, fields []call.Field) decided {
	no := func(reason string) decided { return decided{Decision: queue.Deny, reason: reason} }
	v := a.Verdict
	switch {
	case v == nil:
		return no(cmp.Or(a.Reason, "there was no answer"))
	case !queue.Offers(offered, v.Decision):
		return no(notOffered)
	case v.Decision == queue.Deny && v.Channel == queue.ChannelCommand:
		// No person chose this; the note says why.
		return decided{Decision: queue.Deny, explicit: true, reason: "the command line does not allow it"}
	case v.Decision == queue.Deny && v.Nobody:
		return decided{Decision: queue.Deny, explicit: true, reason: nobodyDecided}
	case v.Decision == queue.Deny:
		return decided{Decision: queue.Deny, explicit: true, reason: choseToDeny}
	}
	values := make(map[string]string) // a form may have more than was asked for
	for _, f := range fields {
		if text, ok := v.Values[f.Name]; ok {
			values[f.Name] = text
		}
	}
	if problem := queue.MissingValue(fields, values); problem != "" {
		return no("the answer was malformed: " + problem)
	}
	return decided{Decision: v.Decision, values: values, explicit: true}
}

// unanswered says why the call waits no longer.
func (q *Question) unanswered() string {
	if q.Cut != "" {
		return q.Cut
	}
	return fmt.Sprintf("nobody answered within %s", q.Wait)
}
