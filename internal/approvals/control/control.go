// Package control has what a desk and a terminal of the same user say to each
// other: the announcement that leads to a desk, the paths of its requests, and the
// JSON of both sides.
package control

import (
	"time"

	"github.com/packs-mcp/packs-mcp/internal/card"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

const (
	// Version is that of announcements. Since 2, a call is a card.
	Version = 2
	// Suffix ends the names of announcements.
	Suffix = ".json"
)

// An Announcement tells other programs of the same user how to reach a running
// server: one file in the run folder, mode 0600, named PID-RANDOM.json.
type Announcement struct {
	Version int       `json:"version"` // 2
	PID     int       `json:"pid"`
	Server  string    `json:"server"`  // names the process, as in the audit log
	Address string    `json:"address"` // host:port on the loopback interface
	Key     string    `json:"key"`     // 256 random bits; anyone who has it may decide
	Started time.Time `json:"started"`
	Project string    `json:"project,omitempty"` // the project's folder, to tell servers apart
}

// The paths under /control are for other programs of the same user: each
// request carries "Authorization: Bearer KEY", and none may come from a browser.
const (
	PathPending = "/control/pending" // GET → Queue
	PathEvents  = "/control/events"  // GET → server-sent events, each "event: pending" with a Queue
	PathDecide  = "/control/decide"  // POST Decision → Decided
	PathOpen    = "/control/open"    // POST {} → Opened
	PathGrants  = "/control/grants"  // GET → GrantList
	PathRevoke  = "/control/revoke"  // POST Revocation → {}
)

// TeamPrefix is where a team's server has PathPending, PathEvents and PathDecide, for
// persons with a token of theirs in place of the announcement's key.
const TeamPrefix = "/approvals"

// A Queue holds the waiting calls of one server, oldest first.
type Queue struct {
	Pending []Call `json:"pending"`
}

// A Call is a [queue.Pending] as it is sent.
type Call struct {
	Code     string      `json:"code"`
	Chat     string      `json:"chat"`
	Client   string      `json:"client,omitempty"`
	Person   string      `json:"person,omitempty"`
	Kind     string      `json:"kind"`
	Pack     string      `json:"pack"`
	Title    string      `json:"title"`
	Card     prompt.Card `json:"card"`
	Choices  []Choice    `json:"choices"`
	Fields   []Field     `json:"fields,omitempty"`
	Asked    time.Time   `json:"asked"`
	Waits    time.Time   `json:"waits,omitzero"` // until when the call itself waits; absent if it has returned
	Expires  time.Time   `json:"expires"`
	Note     string      `json:"note,omitempty"`
	Gone     bool        `json:"client_gone,omitempty"` // allowing it needs Decision.Gone
	Carried  bool        `json:"carried,omitempty"`     // the client shows it, too, and goes on only when its user answers there
	Answered string      `json:"answered,omitempty"`    // once, chat or always: allowed, but not yet made again
}

// What a call has in common with the card of it in a chat.
type (
	Choice = card.Choice
	Field  = card.Field
)

// A Decision is what a person decided about a call.
type Decision struct {
	Code     string            `json:"code"`
	Decision string            `json:"decision"` // the value of a choice
	Values   map[string]string `json:"values,omitempty"`
	Note     string            `json:"note,omitempty"`
	Gone     bool              `json:"client_gone,omitempty"` // run it although its client is gone
}

// Decided is the answer to a [Decision] that counted.
type Decided struct {
	Title string `json:"title"` // of the call
	// Held means that the call has returned. The decision applies to the same
	// call, made again, until Expires.
	Held    bool      `json:"held"`
	Expires time.Time `json:"expires"`
	// Carried means that the client still shows the question, and goes on only
	// when its user answers there, too.
	Carried bool `json:"carried,omitempty"`
}

// Opened names the one-time file that leads a browser to the page.
type Opened struct {
	File string `json:"file"`
}

// A Failure is the body of every response whose status is not 200.
type Failure struct {
	Error struct {
		Problem string `json:"problem"` // a queue.CodeProblem, or "forbidden", "invalid", "internal", "page_only"
		Message string `json:"message"`
	} `json:"error"`
}

// CallOf returns a call in the form that is sent.
func CallOf(p queue.Pending) Call {
	c := Call{
		Code: p.Code, Chat: p.Chat, Client: p.Client, Person: p.Person, Kind: string(p.Kind), Pack: p.Pack,
		Title: p.Title, Card: p.Card, Asked: p.Asked, Waits: p.Waits, Expires: p.Expires, Note: p.Note, Gone: p.Gone, Carried: p.Carried, Answered: string(p.Answered),
	}
	c.Choices, c.Fields = card.Choices(p.Choices), card.Fields(p.Fields)
	return c
}

// The problems of a [Failure] that are not problems of a code.
const (
	ProblemForbidden = "forbidden"
	ProblemInvalid   = "invalid"
	ProblemInternal  = "internal"
	ProblemPageOnly  = "page_only"
)
