package gate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/answers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// A ledger records what people said and what the gate did, next to a gate that many
// use at once. It is written before something is said, so that at any time the gate
// may have allowed no more than is recorded here.
type ledger struct {
	mu       sync.Mutex
	open     []*opened
	allowed  map[string]map[string]bool // :: exact call → codes that somebody allowed
	denied   map[string]bool            // codes that somebody denied, with success
	granted  map[string]bool            // :: what a grant is bound to and where it counts → somebody gave it
	permits  map[string]int             // :: exact call → permits that did not come from a grant
	byCode   map[string]int             // :: code → permits that came from its question
	runs     map[string]bool            // ids of permits
	expected int                        // decisions that the log must have
	pack     int                        // version of the pack
}

// An opened question may be answered by several people at once.
type opened struct {
	q   *Question
	req call.Request
	key string
}

// A player does what clients, models and people do, at random.
type player struct {
	t *testing.T
	b *bench
	l *ledger
	r *rand.Rand
}

// version returns the current version of the pack.
func (l *ledger) version() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pack
}

func (p *player) request() call.Request {
	v := p.l.version()
	return with(toolRun(), func(r *call.Request) {
		r.Caller.Chat = fmt.Sprint("chat-", p.r.IntN(3))
		r.Caller.Carries = p.r.IntN(3) == 0
		r.Run.Command.Args = []string{fmt.Sprint("arg-", p.r.IntN(2))}
		r.Run.Tool = fmt.Sprint("tool-", p.r.IntN(2))
		r.Pack.Digest = fmt.Sprint("sha256:", v)
	})
}

// scopes returns the names under which a grant for req may be recorded.
func scopes(req call.Request) (chat, always string) {
	digest := grantDigest(&req, 0)
	return req.Caller.Chat + " " + digest, digest
}

// say records that somebody is about to answer.
func (p *player) say(o *opened, d queue.Decision) {
	p.l.mu.Lock()
	defer p.l.mu.Unlock()
	if d == queue.Deny {
		return
	}
	if p.l.allowed[o.key] == nil {
		p.l.allowed[o.key] = make(map[string]bool)
	}
	p.l.allowed[o.key][o.q.Code] = true
	chat, always := scopes(o.req)
	switch d {
	case queue.Chat:
		p.l.granted[chat] = true
	case queue.Always:
		p.l.granted[always] = true
	}
}

// came records the result of a call. o is the question it came with, or nil.
func (p *player) came(req call.Request, o *opened, permit *Permit, q *Question, err error) {
	l := p.l
	key := callDigest(&req, 0)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case q != nil:
		if o != nil {
			l.expected++ // the client declined by itself, and the question stays open
		}
		l.open = append(l.open, &opened{q, req, key})
		return
	case err != nil:
		l.expected++
		if !errors.Is(err, ErrDenied) {
			p.t.Errorf("Check() = %v, which is no denial", err)
		}
		return
	}
	l.expected++
	if l.runs[permit.RunID()] {
		p.t.Errorf("two permits have the run %s", permit.RunID())
	}
	l.runs[permit.RunID()] = true
	if !permit.Covers(req) {
		p.t.Error("a permit is for another call than was made")
	}
	if o != nil {
		l.byCode[o.q.Code]++
		l.permits[key]++
		return
	}
	// Either an answer was waiting for it, or a grant covers it: the log says which.
	for _, e := range p.b.log.all() {
		if e.Event != audit.EventDecision || e.Run != permit.RunID() {
			continue
		}
		if e.Channel != queue.ChannelGrant {
			l.permits[key]++
			return
		}
		if chat, always := scopes(req); !l.granted[chat] && !l.granted[always] {
			p.t.Errorf("a grant allows a call, and nobody gave one: %+v", e)
		}
		return
	}
	p.t.Errorf("no line of the log has the run %s", permit.RunID())
}

func (p *player) step() {
	l := p.l
	l.mu.Lock()
	var o *opened
	if len(l.open) > 0 {
		i := p.r.IntN(len(l.open))
		o = l.open[i]
		if p.r.IntN(3) == 0 { // otherwise others can use it, too
			l.open = append(l.open[:i:i], l.open[i+1:]...)
		}
	}
	l.mu.Unlock()
	what := p.r.IntN(20)
	if o == nil {
		what = 0
	}
	decision := []queue.Decision{queue.Once, queue.Once, queue.Chat, queue.Always, queue.Deny}[p.r.IntN(5)]
	check := func(a *answers.Answer) error {
		permit, q, err := p.b.Check(p.t.Context(), o.req, a)
		p.came(o.req, o, permit, q, err)
		return err
	}
	switch what {
	default: // a call
		req := p.request()
		permit, q, err := p.b.Check(p.t.Context(), req, nil)
		p.came(req, nil, permit, q, err)
	case 8, 9: // the same call again
		permit, q, err := p.b.Check(p.t.Context(), o.req, nil)
		p.came(o.req, nil, permit, q, err)
	case 10, 11: // the client's answer
		p.say(o, decision)
		if err := check(accept(o.q.State, decision.String())); err != nil && strings.Contains(err.Error(), "chose to deny") {
			l.mu.Lock()
			l.denied[o.q.Code] = true
			l.mu.Unlock()
		}
	case 12: // a malformed answer, or one that the client gave by itself
		_ = check([]*answers.Answer{answers.FromForm(o.q.State, "decline", nil), answers.FromForm(o.q.State, "accept", nil), answers.FromForm(o.q.State+"x", "accept", nil)}[p.r.IntN(3)])
	case 13: // an answer to another call
		p.say(o, queue.Deny)
		_, _, err := p.b.Check(p.t.Context(), with(o.req, func(r *call.Request) { r.Run.Command.Args = []string{"evil"} }), accept(o.q.State, "once"))
		p.came(o.req, o, nil, nil, err)
	case 14, 15, 16: // the page
		p.say(o, decision)
		shown, err := p.b.Decide(o.q.Code, says(decision))
		if _, ok := errors.AsType[*queue.CodeError](err); err != nil && !ok {
			p.t.Errorf("Decide() = %v", err)
		}
		if err != nil {
			return
		}
		l.mu.Lock()
		if shown.Waits.IsZero() {
			l.expected++
		}
		if decision == queue.Deny {
			l.denied[o.q.Code] = true
		}
		l.mu.Unlock()
	case 17: // the call gets the page's answer
		if a := p.b.Answered(o.q); a != nil {
			_ = check(a)
		}
	case 18: // the call has waited long enough
		if o.req.Caller.Carries {
			return
		}
		a, err := p.b.Postpone(o.q)
		if err != nil {
			// A question that the same call took over is pending for that call.
			if pending, ok := errors.AsType[*PendingError](err); !ok || !strings.Contains(pending.Hint, "made again") {
				l.mu.Lock()
				l.expected++
				l.mu.Unlock()
			}
			return
		}
		_ = check(a)
	case 19: // rarer things
		switch p.r.IntN(12) {
		case 0:
			p.b.EndChat(o.req.Caller.Chat)
		case 1, 2:
			l.mu.Lock()
			l.pack++
			l.mu.Unlock()
		case 3, 4, 5:
			p.b.pass(time.Duration(p.r.IntN(240)) * time.Second)
		case 6:
			ctx, cancel := cancelled(p.t)
			cancel()
			permit, q, err := p.b.Check(ctx, o.req, accept(o.q.State, "once"))
			p.came(o.req, o, permit, q, err)
		default:
			p.b.Gate.Pending()
			p.b.History()
		}
	}
}

// TestEveryPermitHasItsAnswer: whatever happens in whatever order, there is a permit
// only if somebody allowed exactly that call, or gave a grant that covers it. One
// question leads to at most one permit, and to none if somebody denied it. The log
// has one line for each decision.
func TestEveryPermitHasItsAnswer(t *testing.T) {
	answered, granted := 0, 0
	for _, players := range []int{1, 8} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%d players, seed %d", players, seed), func(t *testing.T) {
				b := newBench(t, everywhere, remembers)
				l := &ledger{
					allowed: make(map[string]map[string]bool), denied: make(map[string]bool), granted: make(map[string]bool),
					permits: make(map[string]int), byCode: make(map[string]int), runs: make(map[string]bool),
				}
				var wg sync.WaitGroup
				for i := range players {
					wg.Go(func() {
						p := &player{t, b, l, rand.New(rand.NewPCG(seed, uint64(i)))}
						for range 240 / players {
							p.step()
						}
					})
				}
				wg.Wait()
				n := l.check(t, b)
				answered += n
				granted += len(l.runs) - n
			})
		}
	}
	if answered < 20 || granted < 20 {
		t.Errorf("%d calls were allowed by answers and %d by grants: the test does not test much", answered, granted)
	}
}

// check compares what the gate allowed with what people said, and returns how many
// permits did not come from a grant.
func (l *ledger) check(t *testing.T, b *bench) (total int) {
	t.Helper()
	for key, n := range l.permits {
		total += n
		codes := 0
		for code := range l.allowed[key] {
			if !l.denied[code] {
				codes++
			}
		}
		if n > codes {
			t.Errorf("%d permits for a call that people allowed %d times", n, codes)
		}
	}
	for code, n := range l.byCode {
		if n > 1 {
			t.Errorf("the question %s came to %d permits", code, n)
		}
		if l.denied[code] {
			t.Errorf("the question %s was denied, and came to a permit", code)
		}
	}
	decisions := 0
	for _, e := range b.log.all() {
		if e.Event == audit.EventDecision {
			decisions++
		}
		if e.Decision == "" || e.Decision == "deny" && e.Reason == "" {
			t.Errorf("line = %+v, want a decision, and a reason to deny", e)
		}
	}
	if decisions != l.expected {
		t.Errorf("%d decisions are in the log, want %d", decisions, l.expected)
	}
	return total
}
