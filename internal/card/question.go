package card

import (
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// A Question is what the card in a chat draws.
type Question struct {
	Kind    string      `json:"kind"`
	Card    prompt.Card `json:"card"`
	Choices []Choice    `json:"choices"`
	Fields  []Field     `json:"fields,omitempty"`
	// See is the command that shows all of it elsewhere; empty: there is none.
	See string `json:"see,omitempty"`
	// Limit says why it cannot be allowed on this card; empty: it can.
	Limit string `json:"limit,omitempty"`
	// Secret is what an answer has to bring, where the card answers with a call.
	Secret string `json:"secret,omitempty"`
	// Expires is until when the question can be answered.
	Expires time.Time `json:"expires"`
}

// A Choice is a [queue.Choice] as it is sent.
type Choice struct {
	Value string `json:"value"`
	Title string `json:"title"`           // at most 40 characters
	Means string `json:"means"`           // a sentence: what it covers, and until when
	Lasts bool   `json:"lasts,omitempty"` // "once" holds for later calls as well
}

// A Field is a [call.Field] as it is sent.
type Field struct {
	Name  string `json:"name"`
	Title string `json:"title"`
}

// Choices returns choices as they are sent.
func Choices(of []queue.Choice) []Choice {
	var all []Choice
	for _, c := range of {
		all = append(all, Choice(c))
	}
	return all
}

// Fields returns fields as they are sent.
func Fields(of []call.Field) []Field {
	var all []Field
	for _, f := range of {
		all = append(all, Field(f))
	}
	return all
}
