package gate

import (
	"slices"
	"time"
)

// A Decision is a person's answer. The zero Decision is a denial.
type Decision string

const (
	Deny Decision = ""     // this call does not happen
	Once Decision = "once" // this exact call, one time
	Chat Decision = "chat" // and the like of it, until the chat ends
	// Always is the like of it in every chat, until anything about it changes.
	Always Decision = "always"
)

// denyWord is how a denial is spelled on the wire and in the log.
const denyWord = "deny"

func (d Decision) String() string {
	if d == Deny {
		return denyWord
	}
	return string(d)
}

// A Choice is one answer a person may give, in the words shown beside it.
type Choice struct {
	Value string // "once", "chat", "always" or "deny"
	Title string
	// Lasts says that "once" holds for later calls as well, as Title tells.
	Lasts bool
}

// A Question is what a person is asked about one request.
type Question struct {
	// Title says the essential in one line.
	Title string
	// Text is everything the person decides about, complete and escaped; many
	// lines, the first of which is Title.
	Text    string
	Choices []Choice
	Fields  []Field // to be filled in by whoever allows the call
	// Code names the question for a person, on the page and in the terminal.
	Code string
	// Elicit says that the client is to ask. Otherwise the person is asked
	// elsewhere only.
	Elicit bool
	// Decided is closed when a person answered on the page or in the terminal;
	// see [Gate.Answered].
	Decided <-chan struct{}
	// State must come back with the answer, unchanged.
	State   string
	Expires time.Time

	nonce string
}

// An Answer is what came back for a question. Nothing in it is trusted.
type Answer struct {
	// State is the question's state as the client returned it.
	State string
	// Action is "accept", "decline" or "cancel" as in MCP; anything else, the
	// empty string included, is a denial.
	Action string
	// Content is the filled form; an accept needs the field "decision".
	Content any
	// Channel names how the question was asked, for the log: "elicitation".
	Channel string
	// Reason says why there is no answer, when the channel knows: "no answer
	// within 45s". It goes into the log and the denial.
	Reason string
	// Note is how the answer was given, for the log.
	Note string
}

// decisionField is the form's field that every answer needs.
const decisionField = "decision"

// A decided answer is what a form comes to.
type decided struct {
	Decision
	values   map[string]string // of the fields, when the call is allowed
	explicit bool              // a person chose it; a denial may also be the client's own
	reason   string            // of a denial
}

// decision reads the form. Whatever is not one of the choices that were offered
// is a denial.
func (a *Answer) decision(offered []Choice, fields []Field) decided {
	no := func(reason string) decided { return decided{Decision: Deny, reason: reason} }
	switch a.Action {
	case "accept":
	case "decline":
		return no("the person declined")
	case "cancel":
		return no("the question was closed without an answer")
	case "":
		if a.Reason != "" {
			return no(a.Reason)
		}
		return no("there was no answer")
	default:
		return no("the answer was malformed")
	}
	form, ok := a.Content.(map[string]any)
	if !ok {
		return no("the answer was malformed: no form was filled in")
	}
	value, ok := form[decisionField].(string)
	if !ok {
		return no(`the answer was malformed: no "decision"`)
	}
	if !slices.ContainsFunc(offered, func(c Choice) bool { return c.Value == value }) {
		return no(`the answer was malformed: "decision" is none of the choices`)
	}
	if value == denyWord {
		return decided{Decision: Deny, explicit: true, reason: "the person chose to deny"}
	}
	values := make(map[string]string)
	for _, f := range fields {
		if text, ok := form[f.Name].(string); ok {
			values[f.Name] = text
		}
	}
	if problem := missingValue(fields, values); problem != "" {
		return no("the answer was malformed: " + problem)
	}
	return decided{Decision: Decision(value), values: values, explicit: true}
}
