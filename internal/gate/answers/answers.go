// Package answers reads what came back for a question, and says what it decides.
//
// It does not know whether the question is open, whose answer it is, or who may answer;
// see package gate, which asks. Doubt is denial: an answer that is malformed, or that
// chooses something that was not offered, is one.
package answers

import (
	"cmp"
	"maps"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

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

	by *approvers.Person // see By
}

// FromForm returns the answer that a client's form holds. action is "accept",
// "decline" or "cancel" as in MCP. content is the filled form; an accept needs its
// field "decision". Anything else is an answer without a verdict, which allows
// nothing.
func FromForm(state, action string, content any) *Answer {
	a := &Answer{State: state, Channel: queue.ChannelElicitation, Declined: action == "decline" || action == "cancel"}
	a.Verdict, a.Reason = readForm(action, content)
	return a
}

// FromRuling returns the answer that was given on the page or in the terminal to the
// question with this state.
func FromRuling(r *queue.Ruling, state string) *Answer {
	v := r.Verdict
	v.Values = maps.Clone(v.Values)
	return &Answer{State: state, Verdict: &v, Channel: v.Channel, Note: v.Note, by: v.By}
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

// By returns the person who gave the answer outside of the client. It is nil if that
// was the operator, or if the client's own user answered.
func (a *Answer) By() *approvers.Person { return a.by }

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
	ChoseToDeny   = "the person chose to deny"
	NobodyDecided = "an answer came that the card in the chat did not give, so it is denied; no person decided this"
)

// notOffered is the reason for denying an answer whose decision was not offered.
const notOffered = `the answer was malformed: "decision" is none of the choices`

// A Decided is what an answer decides about its question.
type Decided struct {
	queue.Decision
	Values   map[string]string // of the fields, if the call is allowed
	Explicit bool              // a person chose it; a denial may also be the client's own
	Reason   string            // for a denial
}

// Decide holds the answer against the choices and fields of its question. A decision
// that was not offered is a denial.
func (a *Answer) Decide(offered []queue.Choice, fields []call.Field) Decided {
	no := func(reason string) Decided { return Decided{Decision: queue.Deny, Reason: reason} }
	v := a.Verdict
	switch {
	case v == nil:
		return no(cmp.Or(a.Reason, "there was no answer"))
	case !queue.Offers(offered, v.Decision):
		return no(notOffered)
	case v.Decision == queue.Deny && v.Channel == queue.ChannelCommand:
		// No person chose this; the note says why.
		return Decided{Decision: queue.Deny, Explicit: true, Reason: "the command line does not allow it"}
	case v.Decision == queue.Deny && v.Nobody:
		return Decided{Decision: queue.Deny, Explicit: true, Reason: NobodyDecided}
	case v.Decision == queue.Deny:
		return Decided{Decision: queue.Deny, Explicit: true, Reason: ChoseToDeny}
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
	return Decided{Decision: v.Decision, Values: values, Explicit: true}
}
