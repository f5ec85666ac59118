package gate

import "time"

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
}

// A Question is what a person is asked about one request.
type Question struct {
	// Title says the essential in one line.
	Title string
	// Text is everything the person decides about, complete and escaped; many
	// lines, the first of which is Title.
	Text    string
	Choices []Choice
	// State must come back with the answer, unchanged.
	State   string
	Expires time.Time
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
}

// decision reads the form. Whatever is not one of the choices that were offered
// is a denial, and then reason says why.
func (a *Answer) decision(offered []Choice) (d Decision, reason string) {
	switch a.Action {
	case "accept":
	case "decline":
		return Deny, "the person declined"
	case "cancel":
		return Deny, "the question was closed without an answer"
	case "":
		if a.Reason != "" {
			return Deny, a.Reason
		}
		return Deny, "there was no answer"
	default:
		return Deny, "the answer was malformed"
	}
	form, ok := a.Content.(map[string]any)
	if !ok {
		return Deny, "the answer was malformed: no form was filled in"
	}
	value, ok := form["decision"].(string)
	if !ok {
		return Deny, `the answer was malformed: no "decision"`
	}
	for _, c := range offered {
		if c.Value != value {
			continue
		}
		if value == denyWord {
			return Deny, "the person chose to deny"
		}
		return Decision(value), ""
	}
	return Deny, `the answer was malformed: "decision" is none of the choices`
}
