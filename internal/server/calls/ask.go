package calls

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// inputID names our one question among the input requests of a call.
const inputID = "approval"

// form makes the elicitation that carries a question. The decision is an enum with a
// title for each value, spelled so that clients of every version can read it. What
// the person has to fill in are text fields beside it. They are not required, because
// nobody fills in anything to deny. A client that can show our card in place of its
// form is told so. The message has all the facts in any case.
func form(ctx context.Context, q *gate.Question) mcp.ElicitationParams {
	values := make([]string, len(q.Choices))
	titles := make([]string, len(q.Choices))
	for i, c := range q.Choices {
		values[i], titles[i] = c.Value, c.Title
	}
	properties := map[string]any{
		"decision": map[string]any{
			"type":        "string",
			"title":       "Your decision",
			"description": "Nothing happens unless you allow it.",
			"enum":        values,
			"enumNames":   titles,
		},
	}
	for _, f := range q.Fields {
		properties[f.Name] = map[string]any{
			"type": "string", "title": f.Title, "description": "Needed to allow the call.",
		}
	}
	return mcp.ElicitationParams{
		Meta:            cardMeta(ctx, q),
		Message:         q.Form,
		RequestedSchema: map[string]any{"type": "object", "properties": properties, "required": []string{"decision"}},
	}
}

// InputRequired asks a client of 2026-07-28 or later to call again with the answer
// and our state.
func InputRequired(ctx context.Context, q *gate.Question) *mcpserver.InputRequestBuilder {
	return mcpserver.NewInputRequestBuilder(q.State).Elicit(inputID, form(ctx, q))
}

// ask waits until a person has answered, in the client's form or elsewhere, or the
// call has waited long enough. The first answer counts. If it came from elsewhere,
// the form is withdrawn. An error ends the call.
func (r *Road) ask(ctx context.Context, c *Call, q *gate.Question) (answer *answers.Answer, err error) {
	waiting, cancel := context.WithTimeoutCause(ctx, q.Wait, errNoAnswer)
	defer cancel()
	var form chan *answers.Answer // nil if the client does not ask
	if q.Elicit {
		form = make(chan *answers.Answer, 1)
		go func() { form <- r.elicit(waiting, q) }()
	}
	wire.Aside(ctx, func() {
		beat := time.NewTicker(r.opts.Progress)
		defer beat.Stop()
		for {
			select {
			case answer = <-form:
				form = nil
				if waiting.Err() == nil {
					return // a person answered, or a client that could not ask
				}
			case <-q.Decided:
				answer = r.opts.Gate.Answered(q)
			case <-q.Taken:
			case <-waiting.Done():
			case <-r.opts.Draining:
				q.Cut = "the server is ending"
			case <-beat.C:
				r.tell(ctx, c, q.Waiting)
				continue
			}
			if answer == nil {
				answer, err = r.gaveUp(ctx, q)
			}
			return
		}
	})
	cancel()
	if form != nil {
		<-form // it was withdrawn
	}
	return answer, err
}

// gaveUp ends the wait of a call that nobody answered in time, that its client
// cancelled, or that was made again.
func (r *Road) gaveUp(ctx context.Context, q *gate.Question) (*answers.Answer, error) {
	if ctx.Err() != nil {
		return &answers.Answer{
			State: q.State, Reason: "the call was cancelled while the question was open",
			Ended: errors.Is(context.Cause(ctx), wire.ErrEnded),
		}, nil
	}
	return r.opts.Gate.Postpone(q)
}

// tell sends progress to a client that asked for it.
func (r *Road) tell(ctx context.Context, c *Call, message string) {
	_, sess, ok := chats.Of(ctx)
	if !ok || c.Meta == nil || c.Meta.ProgressToken == nil {
		return
	}
	c.telling.Lock() // until it is sent, so that they go out in order
	defer c.telling.Unlock()
	c.told++ // "The progress value MUST increase with each notification"
	sess.Notify("notifications/progress", map[string]any{
		"progressToken": c.Meta.ProgressToken, "progress": c.told, "message": message,
	})
}

// A Teller tells a call's client now and then what the call waits for. A nil Teller
// does nothing.
type Teller struct {
	tell       func(message string)
	quit, done chan struct{}

	mu    sync.Mutex
	what  string    // guarded by mu
	since time.Time // guarded by mu
}

// Telling starts a Teller, or returns nil if the client does not want progress. The
// Caller stops it.
func (r *Road) Telling(ctx context.Context, c *Call, what string) *Teller {
	if c.Meta == nil || c.Meta.ProgressToken == nil {
		return nil
	}
	t := &Teller{tell: func(message string) { r.tell(ctx, c, message) }, quit: make(chan struct{}), done: make(chan struct{})}
	t.Turn(what)
	go func() {
		defer close(t.done)
		beat := time.NewTicker(r.opts.Progress)
		defer beat.Stop()
		for {
			select {
			case <-beat.C:
				t.tell(t.message())
			case <-t.quit:
				return
			}
		}
	}()
	return t
}

// Turn changes what the teller tells from now on.
func (t *Teller) Turn(what string) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.what, t.since = what, time.Now()
}

// TurnNow is Turn, and tells the client at once.
func (t *Teller) TurnNow(what string) {
	if t != nil {
		t.Turn(what)
		t.tell(what)
	}
}

func (t *Teller) message() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%s for %s", t.what, time.Since(t.since).Round(time.Second))
}

// Stop stops the teller. Nothing is told after Stop returns.
func (t *Teller) Stop() {
	if t != nil {
		close(t.quit)
		<-t.done
	}
}

// elicit asks the user of an older client and waits for the answer. It returns nil if
// ctx is done first. If anything else goes wrong, it returns an answer that allows
// nothing.
func (r *Road) elicit(ctx context.Context, q *gate.Question) *answers.Answer {
	result, err := r.opts.Elicit(ctx, mcp.ElicitationRequest{
		Request: mcp.Request{Method: string(mcp.MethodElicitationCreate)},
		Params:  form(ctx, q),
	})
	switch {
	case err == nil && result != nil:
		return readForm(ctx, q.State, result)
	case ctx.Err() != nil:
		return nil
	default:
		r.opts.Logger.Warn("the client could not ask", "err", err)
		return &answers.Answer{
			State: q.State, Channel: formChannel(ctx), Reason: "the client could not show the question",
			Failed: !errors.Is(err, wire.ErrClosed), // if the client is gone, nobody else needs to be asked
		}
	}
}

var errNoAnswer = errors.New("no answer in time")
