package gate

import (
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// TestArgumentsAreParsedOnce: nothing on the road of an approved run parses the
// arguments of its call again. They are broken behind everybody's back when they
// have been parsed, which a second look at the bytes would find.
func TestArgumentsAreParsedOnce(t *testing.T) {
	b := newBench(t, everywhere)
	req := toolRun()
	want := req.Arguments.Digest()
	clear(req.Arguments.Raw())
	permit := b.approve(req, queue.Chat)
	if !permit.Covers(req) {
		t.Error("the permit does not cover its own request")
	}
	if _, err := permit.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := b.outcome(req); got != allows {
		t.Errorf("the same call under the answer: %s, want %s", got, allows)
	}
	for _, e := range b.log.all() {
		if e.ArgsDigest != want {
			t.Errorf("the line %s has the digest %q of the arguments, want %q", e.Event, e.ArgsDigest, want)
		}
	}
	open := with(openCall(), func(r *call.Request) {
		r.Arguments = call.ParseArguments([]byte(`{"pack_id":"triage","arguments":"x"}`))
	})
	text := textOf(b.ask(open))
	clear(open.Arguments.Raw())
	b = newBench(t, everywhere)
	if got := textOf(b.ask(open)); got != text {
		t.Errorf("the question reads the bytes of the arguments again:\n%s\nwant\n%s", got, text)
	}
}
