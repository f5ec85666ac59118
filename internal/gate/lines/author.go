package lines

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
)

const (
	maxChanges = 1000 // changes of each kind that one line names
	maxReach   = 100  // folders of each kind that a line about a run names
	maxReason  = 500  // bytes of a refusal's reason, or of one error that a program wrote
)

// An Author makes the lines about the calls of one server.
type Author struct {
	Server string // names the server's process
	Full   bool   // arguments are written unchanged, with the secret values in them
}

// Decision returns the line about a decision, without the decision.
func (a Author) Decision(c *call.Call) audit.Entry { return a.entry(c, audit.EventDecision) }

// entry returns what every line about a call has in common.
func (a Author) entry(c *call.Call, event audit.Event) audit.Entry {
	e := audit.Entry{
		Event:      event,
		Server:     a.Server,
		Chat:       c.Caller.Chat,
		Caller:     c.Caller.Person,
		Client:     c.Caller.Client,
		Call:       c.Caller.Call,
		Kind:       string(c.Kind),
		Tool:       c.Method,
		Pack:       c.Pack.ID,
		PackDigest: c.Pack.Digest,
		CallDigest: c.Digest(),
		ArgsDigest: c.Arguments.Digest(),
	}
	// Later lines about a run are tied to its start by the run's id and need not
	// repeat these fields.
	if event == audit.EventDecision || event == audit.EventRunStart {
		e.Args = c.Logged
		if a.Full {
			e.Args = c.Arguments.Compact()
		}
	}
	if c.Run != nil {
		e.Sandbox = c.Level().String()
	}
	if c.Run != nil && c.Run.Tool != "" {
		e.Tool = fmt.Sprintf("%s/%s", c.Method, c.Run.Tool)
	}
	return e
}

// run returns what the lines about the start and the end of a run have in common.
func (a Author) run(c *call.Call, id string, event audit.Event) audit.Entry {
	e := a.entry(c, event)
	run := c.Run
	e.Run = id
	e.Program = run.Command.Program.Path
	e.ProgramDigest = run.Command.Program.Digest
	e.Dir = run.Command.Dir
	e.Network = run.Policy.Network.String()
	if !run.Place.Local() {
		e.Runner, e.Image = run.Place.String(), run.Place.Image
	}
	if len(run.Policy.Hosts) > 0 {
		e.Hosts = run.Policy.Reach()[1:]
	}
	return e
}

// RunStart returns the line about a run with this id that is about to start under the
// policy started, which names its cache. together says that all of its processes are
// bounded together.
func (a Author) RunStart(c *call.Call, id string, started *sandbox.Policy, together bool) audit.Entry {
	e := a.run(c, id, audit.EventRunStart)
	e.Argv = c.Run.Logged
	// What the run may touch explains what it was refused.
	policy := c.Run.Policy
	first := func(all []string) []string { return slices.Clone(all[:min(len(all), maxReach)]) }
	reads, writes := slices.Clone(policy.ReadOnly), slices.Clone(policy.Writable)
	var closed []string
	for _, l := range policy.Layers {
		if l.Kind == sandbox.LayerReadOnly {
			reads, closed = append(reads, l.Folder), append(closed, l.Folder)
		} else {
			writes = append(writes, l.Folder)
		}
	}
	if started.Cache != "" {
		e.Cache, writes = c.Run.Cache, append(writes, started.Cache)
	}
	e.Reads, e.Writes, e.Closed = first(reads), first(writes), first(closed)
	if policy.Review {
		e.Review = cmp.Or(c.Run.ReviewRule, "the tool or sandbox.grants")
	}
	l := policy.Limits
	e.Limits = &audit.Limits{
		TimeoutMS: l.Timeout.Milliseconds(), CPUMS: l.CPU.Milliseconds(), Memory: l.Memory, Processes: l.Processes, OpenFiles: l.OpenFiles,
		FileSize: l.FileSize, Workspace: l.Workspace, OutputSize: l.OutputTotal,
	}
	if started.Cache != "" {
		e.Limits.Cache = l.Cache
	}
	if together {
		e.Limits.Together, e.Limits.Processors = policy.Together.Memory, policy.Together.Processors
	}
	return e
}

// RunEnd returns the line about the end of a run: its result, if it started, and what
// went wrong. hide removes secret values from what the program wrote; it may be nil.
func (a Author) RunEnd(c *call.Call, id string, result *sandbox.Result, failed error, hide func(string) string) audit.Entry {
	e := a.run(c, id, audit.EventRunEnd)
	if failed != nil {
		e.Error = failed.Error()
	}
	if result == nil {
		return e
	}
	code := result.ExitCode
	e.ExitCode = &code
	e.Signal, e.Cause = result.Signal, string(result.Cause)
	e.Sandbox = result.Level.String()
	e.StdoutBytes, e.StderrBytes = result.Stdout.Total, result.Stderr.Total
	e.DurationMS = result.Duration.Milliseconds()
	e.CacheFull = result.Cache.Full
	e.CPUMS, e.MaxRSS = result.Usage.CPU.Milliseconds(), result.Usage.MaxRSS
	for _, c := range result.Contacts {
		c.Host = safetext.Line(c.Host)
		e.Contacts = append(e.Contacts, audit.Contact(c))
	}
	for _, f := range result.Artifacts {
		e.Artifacts = append(e.Artifacts, f.Path)
	}
	for _, said := range result.Complaints() {
		if hide != nil {
			said = hide(said)
		}
		e.Refused = append(e.Refused, call.Cut(said, maxReason)) // hide first: a cut secret might not be recognized
	}
	return e
}

// RunCut returns the line about a run whose server ends before the run does. Another
// server writes it, and adds its own name.
func (a Author) RunCut(c *call.Call, id string) audit.Entry {
	e := a.run(c, id, audit.EventRunEnd)
	e.Cause = "cut"
	e.Error = "the server " + a.Server + " ended, or was cut off, before the run did; it was not started again"
	e.Server = ""
	return e
}

// Changes returns the lines about a run's changes, one for each folder. result may be nil.
func (a Author) Changes(c *call.Call, id string, result *sandbox.Result) (all []audit.Entry) {
	if result == nil {
		return nil
	}
	for _, set := range result.Changes {
		e := a.entry(c, audit.EventChanges)
		e.Run, e.Dir, e.Set = id, set.Folder, set.ID
		for _, c := range set.Changes {
			switch c.State {
			case changes.Applied:
				e.Applied = name(e.Applied, c.Path)
			case changes.Held:
				e.Held = name(e.Held, c.Path+": "+c.Reason)
			case changes.Refused:
				e.Refused = name(e.Refused, c.Path+": "+c.Reason)
			}
		}
		all = append(all, e)
	}
	if result.ChangesProblem != "" {
		e := a.entry(c, audit.EventChanges)
		e.Run, e.Error = id, result.ChangesProblem
		all = append(all, e)
	}
	return all
}

// name appends a change to a list. When the list is full, its last entry says that
// there are more.
func name(list []string, change string) []string {
	switch {
	case len(list) < maxChanges:
		return append(list, change)
	case len(list) == maxChanges:
		return append(list, "and more")
	}
	return list
}

// A Refusal is a call that was refused before anybody was asked, for example
// because it names something that does not exist.
type Refusal struct {
	Caller    call.Caller
	Method    string          // the base tool that was called, or the method
	Pack      string          // as the caller named it; may be empty
	Arguments *call.Arguments // only their digest is recorded
	Code      string          // the code of the error that the caller got
	Reason    string          // in words
}

// Refused returns the line about a refusal.
func (a Author) Refused(r Refusal) audit.Entry {
	return audit.Entry{
		Event: audit.EventRefusal, Server: a.Server, Chat: r.Caller.Chat, Caller: r.Caller.Person, Client: r.Caller.Client, Call: r.Caller.Call,
		Tool: r.Method, Pack: call.Beginning(r.Pack), Code: r.Code, ArgsDigest: r.Arguments.Digest(), Reason: call.Cut(safetext.Line(r.Reason), maxReason),
	}
}

// Counted returns the line that counts a person's refused calls without a line of their
// own, which [Refusals.Take] returned.
func (a Author) Counted(person string, more map[string]int) audit.Entry {
	e := audit.Entry{Event: audit.EventRefusal, Server: a.Server, Caller: person}
	codes := slices.SortedFunc(maps.Keys(more), func(a, b string) int { return cmp.Or(more[b]-more[a], strings.Compare(a, b)) })
	var each []string
	for _, code := range codes {
		e.Count += more[code]
		each = append(each, fmt.Sprintf("%s %d", code, more[code]))
	}
	e.Reason = "more calls were refused: " + strings.Join(each, ", ")
	return e
}

// Revoked returns the line about an answer for a chat that is taken back in a terminal.
func (a Author) Revoked(g grants.InChat) audit.Entry {
	return audit.Entry{
		Event: audit.EventRevoke, Server: a.Server, Chat: g.Chat, Caller: g.Person, Client: g.Client, Kind: string(g.Kind),
		Pack: g.Pack, Tool: g.Tool, Dir: g.Dir, Channel: queue.ChannelTerminal, Grant: g.ID,
		Reason: fmt.Sprintf("the grant %s of %s, for a chat", g.ID, g.Since.UTC().Format(time.RFC3339)),
	}
}
