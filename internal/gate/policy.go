package gate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// The policies: which calls a person is asked about when no grant and no rule
// says more.
const (
	// PolicyEveryCall asks about every call.
	PolicyEveryCall = "every-call"
	// PolicyFirstRun asks about the first run of a tool, and about later runs
	// unless the tool says that it only reads. It asks about documents, files and
	// enabling only for packs that are not trusted.
	PolicyFirstRun = "first-run"
	// PolicyBalanced asks once about a pack in a chat, if the person answers that
	// the pack may be used. It then does not ask about runs of tools that declare
	// that they only read, as far as the sandbox holds them to that; see
	// [check.onlyReads]. It asks about everything else.
	PolicyBalanced = "balanced"
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
	r := c.call
	if !r.Caller.Act || !c.selfDecides() || c.always || r.OnceOnly() || r.Hidden != "" {
		return false
	}
	return c.prompts == PromptsAllow || c.prompts == PromptsAuto && r.Caller.Origin == call.OriginClient
}

// rule returns the verdict of the user's rules on the request.
func (c *check) rule() rules.Verdict {
	if len(c.rules) == 0 {
		return rules.Verdict{}
	}
	return rules.Decide(c.rules, ruleCall(&c.call.Request))
}

// reviewed returns the request, marked for review if a rule of the user's says so.
// Decide about and compare only requests that reviewed returned.
func (g *Gate) reviewed(req call.Request) call.Request {
	if req.Run == nil || len(g.rules) == 0 {
		return req
	}
	if rule, ok := rules.Review(g.rules, ruleCall(&req)); ok {
		return req.WithReview(cmp.Or(rule.Where, "a rule"))
	}
	return req
}

// ruleCall returns the request as the rules see it.
func ruleCall(r *call.Request) rules.Call {
	asked := rules.Call{Pack: r.Pack.ID, Kind: string(r.Kind)}
	if r.Run != nil {
		p := r.Run.Command.Program
		asked.Tool = r.Run.Tool
		asked.Program = []string{p.Name, p.Path, p.Resolved}
		if p.Shim != "" {
			asked.Program = append(asked.Program, p.Shim)
		}
		asked.Bare = isBare(p)
		asked.Args = r.Run.Command.Args
		asked.Env = call.EnvNames(r.Run.Env)
		asked.Dir, asked.Usual = r.Run.Command.Dir, r.Run.UsualDir
		asked.Within = func(folder string) bool { return paths.Within(folder, asked.Dir) }
		asked.Folders = map[string]string{"workspace": r.Workspace, "pack_root": r.Pack.Dir, "project": r.Run.Project}
		asked.Stdin = len(r.Run.Command.Stdin) > 0
	}
	return asked
}

// falls says which rule would allow the request if the rule named more. It returns
// "" if there is none, or if the rule still could not allow it.
func (c *check) falls(v rules.Verdict) string {
	if v.Short == nil || c.call.OnceOnly() || !c.allowable(v.Short.Rule) {
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

// allowable reports whether a rule may allow the request. If the run can send data
// anywhere, the rule must name the tool.
func (c *check) allowable(r rules.Rule) bool {
	return !reachesNetwork(c.call) || r.NamesTool()
}

// isBare reports whether a program was asked for by its name alone.
func isBare(p program.Program) bool {
	for _, r := range p.Name {
		if r == '/' || r == '\\' || r == ':' {
			return false
		}
	}
	return p.Name != ""
}

// unasked decides under the policy about a request that no person, grant or rule
// has decided about. reason is empty if a person has to be asked. stored are the
// grants for every chat.
func (c *check) unasked(stored []grants.Grant) (reason string) {
	r := c.call
	if c.policy == PolicyBalanced && c.onlyReads() {
		if _, grant, ok := c.find(c.useGrant(), stored); ok {
			c.grant = grant.ID
			return "the policy balanced does not ask about tools that only read, of a pack whose use was allowed on " + day(grant.Since)
		}
	}
	if c.policy != PolicyFirstRun || r.OnceOnly() {
		return ""
	}
	switch {
	case r.Kind == call.KindOpen || r.Kind == call.KindRead || r.Kind == call.KindEnable:
		return "the policy first-run asks about this only for packs that are not trusted"
	case r.Pack.Trust == call.TrustBundled && c.firstRunOnly() && !reachesNetwork(r):
		return "the policy first-run does not ask about read-only tools that come with this program"
	}
	return ""
}

// firstRunOnly reports whether, under the policy, one answer is enough for all runs
// of the tool until something about it changes. That includes tools that may use
// the whole network (specs/skill-md-tools.md §6.3): the person chose the policy,
// the question names the network, and the answer is bound to it.
func (c *check) firstRunOnly() bool {
	r := c.call
	return c.policy == PolicyFirstRun && !r.OnceOnly() && !c.always && r.Kind == call.KindRun && r.Run.ReadOnly && c.rememberable()
}

// everywhere reports whether the answer "always" may be given. A run that can send
// data to other machines is asked about in each chat.
func (c *check) everywhere() bool { return c.rememberable() && !reachesNetwork(c.call) }

// counts reports whether a stored grant with the request's facts may allow it.
func (c *check) counts(g grants.Grant) bool {
	if g.Policy == PolicyFirstRun {
		return c.firstRunOnly()
	}
	return c.everywhere()
}

// reachesNetwork reports whether the run can send data to other machines. Machines on
// a list of hosts count too: they are not the user's.
func reachesNetwork(r *call.Call) bool {
	return r.Run != nil && (r.Run.Policy.Network == sandbox.NetworkFull || r.Run.Policy.Network == sandbox.NetworkHosts)
}

// rememberable reports whether an answer can be kept: it may hold for more than
// this call, and all of its facts are valid UTF-8, so that they survive being
// stored.
func (c *check) rememberable() bool {
	r := c.call
	if !r.Lasting() {
		return false
	}
	return !slices.ContainsFunc(c.wouldGrant().Facts, func(f call.Fact) bool {
		return slices.ContainsFunc(f.Values, func(v string) bool { return !utf8.ValidString(v) })
	})
}

// choices returns the answers offered, in the order that people know: this once,
// more than once, no. None is preselected.
func (c *check) choices() []queue.Choice {
	r := c.call
	once := plainOnce()
	if c.firstRunOnly() && c.store != nil {
		once.Title, once.Lasts = "From now on: until anything changes", true
		once.Means = fmt.Sprintf("From now on: %s runs unasked while nothing about it changes (it says that it only reads).", prompt.Scope(&r.Request, r.Kind))
	}
	deny := queue.Choice{Value: queue.Deny.String(), Title: "Deny", Means: "Deny: the call does not happen."}
	if !r.Lasting() || c.always || r.Kind == call.KindAttach { // attaching lasts until the pack is detached
		return []queue.Choice{once, deny}
	}
	kind := c.wouldGrant().Kind
	short, scope := prompt.ShortScope(&r.Request, kind), prompt.Scope(&r.Request, kind)
	if kind == call.KindUse && c.policy == PolicyBalanced {
		short = "use it, and run what only reads" // some clients show the label alone
	}
	all := []queue.Choice{once, {
		Value: string(queue.Chat), Title: "Chat: " + short,
		Means: fmt.Sprintf("This chat: %s, %s%s.", scope, prompt.Until(&r.Request), c.spares()),
	}}
	if c.store != nil && c.everywhere() {
		all = append(all, queue.Choice{
			Value: string(queue.Always), Title: "Always: " + short,
			Means: fmt.Sprintf("Always: %s, in every client, until anything about it changes%s.", scope, c.spares()),
		})
	}
	return append(all, deny)
}

// spares returns the end of a sentence: what an answer that the pack may be used
// means for runs. It is empty for other answers.
func (c *check) spares() string {
	switch {
	case c.wouldGrant().Kind != call.KindUse:
		return ""
	case c.policy == PolicyBalanced:
		return "; its tools that only read then run unasked, and other runs ask"
	}
	return "; runs still ask"
}
