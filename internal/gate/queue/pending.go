package queue

import (
	"fmt"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
)

// A Pending is a call that waits for a person, as every channel shows it. All
// its texts are safe to show.
type Pending struct {
	// Code identifies the call for a person: "K7QM-2F9X". It works once.
	Code    string
	Chat    string // opaque id
	Client  string // name and version that the client gave; may be empty
	Person  string // the name of the credential, if it has one
	Kind    call.Kind
	Pack    string      // pack id
	Title   string      // the essential, one line
	Card    prompt.Card // everything the person decides about; Title is its title
	Choices []Choice
	Fields  []call.Field // what the person has to fill in to allow the call

	Asked time.Time
	// Waits is the time until which the call waits for the answer. It is zero if the
	// call has returned without one: then the answer holds for the same call, made
	// again.
	Waits time.Time
	// Expires is the time until which the question can be answered.
	Expires time.Time
	// Note is one more sentence to show: that the client declined, or that the call
	// was already allowed and has not been made again yet.
	Note string
	// Gone says that the client's connection has ended while the call waits, so that
	// perhaps nobody will receive the result. Allowing it needs [Verdict].Gone.
	Gone bool
	// Carried says that the client shows the question, and continues only when its
	// user also answers there.
	Carried bool
	// Limit says why a card in the chat can only deny the call; empty: it can allow it.
	Limit string
	// Answered is the decision that holds for the call when it is made again; [Deny],
	// the zero value, if there is none.
	Answered Decision
}

// A Past is a decision that was made, for the history of a chat. All its texts
// are safe to show.
type Past struct {
	Time     time.Time
	Chat     string
	Call     string // the same on all lines about one call
	Kind     call.Kind
	Pack     string
	Title    string // the essential, one line
	Decision string // once, chat, always, deny or pending
	Channel  string // may be empty
	Reason   string // may be empty
	Run      string // the run's id; empty if no program was started
	Outcome  string // of the run, in words: "exit code 0"; empty while it runs
}

// A CodeError says why a code cannot be used for a decision.
type CodeError struct {
	Code string
	// Problem is one of the Code constants.
	Problem CodeProblem
	Detail  string // how and when it ended, in words; may be empty
}

// A CodeProblem is why a code cannot be used for a decision.
type CodeProblem string

// The problems of a code.
const (
	CodeUnknown   CodeProblem = "unknown"     // no call of this server has this code
	CodeAnswered  CodeProblem = "answered"    // the call was already decided
	CodeExpired   CodeProblem = "expired"     // nobody answered in time
	CodeWithdrawn CodeProblem = "withdrawn"   // the call was cancelled, or its chat ended
	CodeGone      CodeProblem = "client_gone" // the client is gone, and the decision does not say that it counts anyway
	CodeForbidden CodeProblem = "not_yours"   // this person may not decide about the call
	CodeInvalid   CodeProblem = "invalid"     // the decision was not offered, or a field is missing
)

func (e *CodeError) Error() string {
	switch {
	case e.Problem == CodeUnknown:
		return fmt.Sprintf("no call waits under the code %s", e.Code)
	case e.Detail == "":
		return fmt.Sprintf("the call %s can no longer be decided about: %s", e.Code, e.Problem)
	default:
		return fmt.Sprintf("the call %s: %s", e.Code, e.Detail)
	}
}
