package queue

import "testing"

// What a person and a model are told follows from the channels that there are.
func TestChannels(t *testing.T) {
	for name, tc := range map[string]struct {
		channels        Channels
		elsewhere       bool
		see, where, say string
	}{
		"the client alone": {Channels{ChannelElicitation}, false, "", "", "waiting for you"},
		"the page": {
			Channels{ChannelElicitation, ChannelPage}, true, "packs-mcp approvals open",
			"on the approval page (packs-mcp approvals open shows it)",
			"waiting for you on the approval page: packs-mcp approvals open (code AB12)",
		},
		"the terminal": {
			Channels{ChannelTerminal}, true, "packs-mcp approvals show AB12",
			"in a terminal with: packs-mcp approvals approve AB12",
			"waiting for you: packs-mcp approvals (code AB12)",
		},
		"both": {
			Channels{ChannelPage, ChannelTerminal}, true, "packs-mcp approvals show AB12",
			"on the approval page (packs-mcp approvals open shows it), or in a terminal with: packs-mcp approvals approve AB12",
			"waiting for you: packs-mcp approvals (code AB12)",
		},
	} {
		c := tc.channels
		if got := c.Elsewhere(); got != tc.elsewhere {
			t.Errorf("%s: Elsewhere() = %v", name, got)
		}
		if got := c.See("AB12"); got != tc.see {
			t.Errorf("%s: See() = %q, want %q", name, got, tc.see)
		}
		if got := c.Waiting("AB12"); got != tc.say {
			t.Errorf("%s: Waiting() = %q, want %q", name, got, tc.say)
		}
		if got := c.Where("AB12"); tc.elsewhere && got != tc.where {
			t.Errorf("%s: Where() = %q, want %q", name, got, tc.where)
		}
	}
}
