package gate

import (
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

func TestAbandon(t *testing.T) {
	b := newBench(t, everywhere)
	waits, carried := toolRun(), toolRun()
	carried.Caller.Carries = true
	carried.Arguments = call.ParseArguments([]byte(`{"who":"carried"}`))
	other := toolRun()
	other.Caller.Chat = "chat-2"
	q, theirs, held := b.ask(waits), b.ask(other), b.ask(carried)
	b.Abandon(waits.Caller.Chat)
	for _, p := range b.Pending() {
		if gone := p.Code == q.Code; p.Gone != gone || p.Code == held.Code {
			t.Errorf("%+v is open, gone %v", p, p.Gone)
		}
	}
	b.refused(held.Code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage, Gone: true}, queue.CodeWithdrawn, "its client closed")
	for _, d := range []queue.Decision{queue.Once, queue.Chat} {
		b.refused(q.Code, queue.Verdict{Decision: d, Channel: queue.ChannelPage}, queue.CodeGone, "its client is gone")
	}
	if b.Answered(q) != nil {
		t.Error("the question has an answer")
	}
	// Later questions also belong to a client that is gone.
	late := toolRun()
	late.Arguments = call.ParseArguments([]byte(`{"who":"late"}`))
	if p := b.shown(b.ask(late)); !p.Gone || len(b.Pending()) != 3 {
		t.Errorf("a later question is %+v, one of %d; want it gone, one of 3", p, len(b.Pending()))
	}
	if _, err := b.Decide(q.Code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage, Gone: true, Note: "by hand"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Decide(theirs.Code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage}); err != nil {
		t.Errorf("another chat's question: %v", err)
	}
	p, _, err := b.Check(t.Context(), waits, b.Answered(q))
	if err != nil || p == nil {
		t.Fatalf("Check() = %v, %v", p, err)
	}
	if got := b.log.last().Reason; !strings.Contains(got, "the client was gone, and it was chosen to run all the same") || !strings.Contains(got, "by hand") {
		t.Errorf("the log says %q", got)
	}
	b.EndChat(waits.Caller.Chat)
	again := toolRun()
	if b.shown(b.ask(again)).Gone {
		t.Error("a chat that begins anew is of a client that is gone")
	}
}

// shown returns an open question as channels show it.
func (b *bench) shown(q *Question) queue.Pending {
	b.t.Helper()
	all := b.Pending()
	i := slices.IndexFunc(all, func(p queue.Pending) bool { return p.Code == q.Code })
	if i < 0 {
		b.t.Fatalf("%s is not open: %+v", q.Code, all)
	}
	return all[i]
}
