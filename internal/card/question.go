package card

import (
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// A Question is the data that the card in a chat draws.
type Question struct {
	Kind    string      `json:"kind"`
	Card    prompt.Card `json:"card"`
	Choices []Choice    `json:"choices"`
	Fields  []Field     `json:"fields,omitempty"`
	// See is the command that shows the question in full elsewhere; empty if there is none.
	See string `json:"see,omitempty"`
	// Limit says why this card cannot allow the call; empty if it can.
	Limit string `json:"limit,omitempty"`
	// Secret must accompany an answer if the card answers with a call.
	Secret string `json:"secret,omitempty"`
	// Expires is when the question expires.
	Expires time.Time `json:"expires"`
}

// A Choice is the JSON form of a [queue.Choice].
type Choice struct {
	Value string `json:"value"`
	Title string `json:"title"`           // at most 40 characters
	Means string `json:"means"`           // a sentence: what it covers, and until when
	Lasts bool   `json:"lasts,omitempty"` // "once" also holds for later calls
}

// A Field is the JSON form of a [call.Field].
type Field struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// Choices returns the JSON form of choices.
func Choices(of []queue.Choice) []Choice {
	var all []Choice
	for _, c := range of {
		all = append(all, Choice(c))
	}
	return all
}

// Fields returns the JSON form of fields.
func Fields(of []call.Field) []Field {
	var all []Field
	for _, f := range of {
		all = append(all, Field(f))
	}
	return all
}
