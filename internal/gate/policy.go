package gate

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/policy"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// Whether the gate believes a client that says that a person chose a prompt.
const (
	// PromptsAuto believes the client that started this program. Over HTTP, anybody
	// with the token could be the client, so it is not believed.
	PromptsAuto = "auto"
	// PromptsAllow believes every client.
	PromptsAllow = "allow"
	// PromptsAsk believes no client: a prompt is decided about as if the model had
	// made the call.
	PromptsAsk = "ask"
)

// takesItsWord reports whether it is enough that the client says that a person
// chose this. It is not enough if the person wants or has to see more than a name:
// if a rule asks, the pack is not trusted, or text has hidden characters.
func (c *check) takesItsWord() bool {
	r := c.Call
	if !r.Caller.Act || !c.selfDecides() || c.Always || r.OnceOnly() || r.Hidden != "" {
		return false
	}
	return c.prompts == PromptsAllow || c.prompts == PromptsAuto && r.Caller.Origin == call.OriginClient
}

// rule returns the verdict of the user's rules on the request.
func (c *check) rule() rules.Verdict {
	if len(c.rules) == 0 {
		return rules.Verdict{}
	}
	return rules.Decide(c.rules, policy.RuleCall(&c.Call.Request))
}

// reviewed returns the request, marked for review if a rule of the user's says so.
// Decide about and compare only requests that reviewed returned.
func (g *Gate) reviewed(req call.Request) call.Request {
	if req.Run == nil || len(g.rules) == 0 {
		return req
	}
	if rule, ok := rules.Review(g.rules, policy.RuleCall(&req)); ok {
		return req.WithReview(cmp.Or(rule.Where, "a rule"))
	}
	return req
}

// falls says which rule would allow the request if the rule named more. It returns
// "" if there is none, or if the rule still could not allow it.
func (c *check) falls(v rules.Verdict) string {
	if v.Short == nil || c.Call.OnceOnly() || !c.Allowable(v.Short.Rule) {
		return ""
	}
	return safetext.Line(fmt.Sprintf("%s allows it only with %s", v.Short.Rule.Where, strings.Join(v.Short.Add, ", ")))
}

// Forbids reports whether a rule of the user's forbids every request of a kind
// about a pack, so that lists need not offer it. An empty kind means all kinds; a
// rule against attaching or opening the pack is not enough for that.
func (g *Gate) Forbids(kind call.Kind, pack string) bool {
	return rules.Forbids(g.rules, string(kind), pack)
}

// allowedByPolicy decides under the policy about a request that no person, grant or rule
// has decided about. reason is empty if a person has to be asked. stored are the
// grants for every chat.
func (c *check) allowedByPolicy(stored []grants.Grant) (reason string) {
	r := c.Call
	if c.Policy == policy.Balanced && c.OnlyReads() {
		if _, grant, ok := c.find(c.UseGrant(), stored); ok {
			c.grant = grant.ID
			return "the policy balanced does not ask about tools that only read, of a pack whose use was allowed on " + day(grant.Since)
		}
	}
	if c.Policy != policy.FirstRun || r.OnceOnly() {
		return ""
	}
	switch {
	case r.Kind == call.KindOpen || r.Kind == call.KindRead || r.Kind == call.KindEnable:
		return "the policy first-run asks about this only for packs that are not trusted"
	case r.Pack.Trust == call.TrustBundled && c.FirstRunOnly() && !policy.ReachesNetwork(r):
		return "the policy first-run does not ask about read-only tools that come with this program"
	}
	return ""
}
