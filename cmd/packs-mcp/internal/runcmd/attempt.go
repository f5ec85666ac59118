package runcmd

import (
	"context"
	"errors"
	"fmt"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/service"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/rules"
	"github.com/packs-mcp/packs-mcp/internal/server/direct"
)

// An attempt is one call of a pack's tool by the person who started this program. It
// has a chat, and so a workspace, of its own.
type attempt struct {
	gate  *gate.Gate
	why   string          // why the tool may be enabled; for the log
	known map[string]bool // codes of questions that were already seen
	ended chan struct{}   // closed when the call has ended
	// The result of the call. Read it after ended is closed.
	result *direct.Result
	err    error
}

// attempt starts a call. The caller must wait for next before it starts another call,
// because next takes every new question for its own. All calls share known. why says, for
// the log, which act of the person allows the tool to be enabled.
func (a *app) attempt(ctx context.Context, s *service.Service, c direct.Call, why string, known map[string]bool) *attempt {
	t := &attempt{gate: s.Gate, why: why, known: known, ended: make(chan struct{})}
	go func() {
		defer close(t.ended)
		t.result, t.err = a.callOnce(ctx, s, c)
	}()
	return t
}

// callOnce connects a client to the server, and makes one call.
func (a *app) callOnce(ctx context.Context, s *service.Service, c direct.Call) (r *direct.Result, err error) {
	in, out, ended := s.Connect(ctx)
	defer func() { err = errors.Join(err, ended()) }()
	client, err := direct.Connect(ctx, in, out, a.Version)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if r, err = client.Enable(ctx, c.Pack, c.Tool); err != nil || r.Failed {
		return r, err
	}
	return client.Call(ctx, c)
}

// next waits for the question whether the program may run, and returns it, or nil if
// the call has ended. The question whether the tool may be enabled comes first; the
// person's command has already answered it.
func (t *attempt) next(ctx context.Context) (*queue.Pending, error) {
	for {
		changed := t.gate.Changes()
		for _, p := range t.gate.Pending() {
			if t.known[p.Code] {
				continue
			}
			t.known[p.Code] = true
			if p.Kind != call.KindEnable {
				return &p, nil
			}
			v := queue.Verdict{Decision: queue.Once, Channel: queue.ChannelCommand, Note: t.why}
			if err := t.decide(p.Code, v); err != nil {
				return nil, err
			}
		}
		select {
		case <-t.ended:
			return nil, nil
		case <-changed:
		case <-ctx.Done():
			<-t.ended // the server ends with ctx, and then the call does too
			return nil, ctx.Err()
		}
	}
}

// finish answers the question about the run, and waits until the call has ended.
func (t *attempt) finish(ctx context.Context, code string, v queue.Verdict) (*direct.Result, error) {
	if err := t.decide(code, v); err != nil {
		return nil, err
	}
	for {
		p, err := t.next(ctx)
		switch {
		case err != nil:
			return nil, err
		case p == nil:
			return t.result, t.err
		}
		// The call changed after the answer, and nobody saw the new question.
		no := queue.Verdict{Channel: queue.ChannelCommand, Note: "another question came after the answer"}
		if err := t.decide(p.Code, no); err != nil {
			return nil, err
		}
	}
}

// decide answers a question. It is not an error if the question has already ended:
// the call says why.
func (t *attempt) decide(code string, v queue.Verdict) error {
	_, err := t.gate.Decide(code, v)
	if problem, ok := errors.AsType[*queue.CodeError](err); ok && problem.Problem != queue.CodeInvalid {
		return nil
	}
	return err
}

// alwaysAsk returns a rule that makes every run ask, whatever the user's rules,
// policy and earlier answers allow.
func alwaysAsk(command string) rules.Rule {
	return rules.Rule{Effect: rules.Ask, Kinds: []string{string(call.KindRun)}, Where: "packs-mcp " + command}
}

// byYes returns the answer of a person who said --yes. It is a denial if the question
// has fields to fill in, because --yes gives no values.
func (a *app) byYes(p *queue.Pending) queue.Verdict {
	v := queue.Verdict{Channel: queue.ChannelCommand}
	if len(p.Fields) > 0 {
		v.Note = fmt.Sprintf("it needs a value for %q, and --yes gives none", p.Fields[0].Name)
		return v
	}
	v.Decision, v.Note = queue.Once, "--yes"
	if !cli.IsTerminal(a.Stdin) {
		v.Note = "--yes, without a terminal"
	}
	return v
}

// withoutTerminal returns the denial that is given if there is nobody to ask.
func withoutTerminal() queue.Verdict {
	return queue.Verdict{Channel: queue.ChannelCommand, Note: "there is no terminal to ask on, and no --yes"}
}

// toolNames returns the names of the tools of a set.
func toolNames(set *tools.Set) []string {
	if set == nil {
		return nil
	}
	var names []string
	for _, t := range set.Tools {
		names = append(names, t.Name)
	}
	return names
}
