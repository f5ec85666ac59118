package gate

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// record writes one decision. Denials, and everything that was asked, are on
// disk when it returns; what a grant or the nature of metadata allows is
// written at once and on disk within a second, except runs.
func (g *Gate) record(req Request, answer *Answer, d Decision, reason string, run ...string) error {
	e := g.entry(req, audit.EventDecision)
	e.Decision, e.Reason = d.String(), reason
	if answer != nil {
		e.Channel = answer.Channel
	}
	if len(run) > 0 {
		e.Run = run[0]
	}
	if d != Deny && answer == nil && req.Kind != KindRun {
		return g.failed(req, g.log.AppendLazy(e))
	}
	return g.failed(req, g.log.Append(e))
}

// append writes an entry that must be on disk before anything goes on.
func (g *Gate) append(e audit.Entry) error {
	return g.failed(Request{}, g.log.Append(e))
}

// failed turns an error of the log into a denial. The cause goes to the
// server's own log only; it may hold paths.
func (g *Gate) failed(req Request, err error) error {
	if err == nil {
		return nil
	}
	g.logger.Error("audit line not written; the call is denied", "pack", req.Pack.ID, "err", err)
	return &DeniedError{
		Reason: "the audit log cannot be written",
		Hint:   "Nothing may happen without a record. Tell the user to look at the server's log; a full disk or a damaged audit file are the usual causes.",
	}
}

// entry is what every line about a request says.
func (g *Gate) entry(req Request, event audit.Event) audit.Entry {
	e := audit.Entry{
		Event:      event,
		Server:     g.server,
		Chat:       req.Caller.Chat,
		Caller:     req.Caller.Person,
		Client:     req.Caller.Client,
		Call:       req.Caller.Call,
		Kind:       string(req.Kind),
		Tool:       req.Method,
		Pack:       req.Pack.ID,
		PackDigest: req.Pack.Digest,
		CallDigest: req.callDigest(g.runner.Level()),
		Args:       req.Logged,
	}
	if g.full {
		e.Args = req.Arguments
	}
	if len(req.Arguments) > 0 {
		e.ArgsDigest = hexSum(canonical(req.Arguments))
	}
	if req.Run != nil && req.Run.Tool != "" {
		e.Tool = fmt.Sprintf("%s/%s", req.Method, req.Run.Tool)
	}
	return e
}
