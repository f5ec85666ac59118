package queue

import (
	"fmt"
	"slices"
)

// The channels over which decisions are made, as the audit log names them.
const (
	ChannelElicitation = "elicitation" // the client's own form
	// ChannelCard is elicitation by a client that said that it can show our card in
	// place of its form. Only the client knows which of them the person saw.
	ChannelCard = "elicitation+app"
	// ChannelApp is a card beside the result of a tool, in a client that cannot ask.
	ChannelApp      = "app"
	ChannelPage     = "page"     // the approval page
	ChannelTerminal = "terminal" // packs-mcp approvals, call and test
	ChannelCommand  = "command"  // the command line itself, such as packs-mcp call --yes
	ChannelGrant    = "grant"    // a person's earlier answer
	ChannelRule     = "rule"     // a rule of the user's
	ChannelPolicy   = "policy"   // the policy the user chose
	ChannelPrompt   = "prompt"   // a prompt that a person chose in the client, as the client says
)

// Channels are the channels that a server has for asking a person.
type Channels []string

// Has reports whether a person can be asked over one of these channels.
func (c Channels) Has(channels ...string) bool {
	return slices.ContainsFunc(channels, func(one string) bool { return slices.Contains(c, one) })
}

// Elsewhere reports whether a person can be asked without the client.
func (c Channels) Elsewhere() bool { return c.Has(ChannelPage, ChannelTerminal) }

// Where tells a model what its user can do elsewhere about the call with this code.
func (c Channels) Where(code string) string {
	const page, terminal = "on the approval page (packs-mcp approvals open shows it)", "in a terminal with: packs-mcp approvals approve "
	switch {
	case !c.Has(ChannelTerminal):
		return page
	case !c.Has(ChannelPage):
		return terminal + code
	default:
		return page + ", or " + terminal + code
	}
}

// See returns the command that shows the whole question with this code. It returns ""
// if only the client shows it.
func (c Channels) See(code string) string {
	switch {
	case c.Has(ChannelTerminal):
		return "packs-mcp approvals show " + code
	case c.Has(ChannelPage):
		return "packs-mcp approvals open"
	default:
		return ""
	}
}

// Waiting returns the words that tell the client's user, while the call waits, where to
// answer.
func (c Channels) Waiting(code string) string {
	switch {
	case c.Has(ChannelTerminal):
		return fmt.Sprintf("waiting for you: packs-mcp approvals (code %s)", code)
	case c.Has(ChannelPage):
		return fmt.Sprintf("waiting for you on the approval page: packs-mcp approvals open (code %s)", code)
	default:
		return "waiting for you"
	}
}

// spokenChannel says over which channel a person answered.
func spokenChannel(channel string) string {
	switch channel {
	case ChannelPage:
		return "on the page"
	case ChannelTerminal:
		return "in a terminal"
	case ChannelCommand:
		return "on the command line"
	case ChannelElicitation, ChannelCard, ChannelApp, ChannelPrompt:
		return "in the client"
	default:
		return "by " + channel
	}
}
