package gate

import (
	"slices"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/gate/policy"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// What was allowed in a chat is listed with the chat and its client, under its own
// id, and can be taken back in that chat only.
func TestChatGrants(t *testing.T) {
	b := newBench(t, remembers)
	second := func(r call.Request) call.Request {
		return with(r, func(r *call.Request) { r.Caller.Chat, r.Caller.Client = "stdio-2", "other 2.0" })
	}
	b.approve(openCall(), queue.Chat)
	b.pass(1)
	b.approve(toolRun(), queue.Chat)
	b.pass(1)
	b.approve(second(toolRun()), queue.Chat)
	b.approve(execRun(), queue.Always) // does not belong to a chat
	all := b.ChatGrants()
	var got []string
	for _, c := range all {
		got = append(got, c.Chat+" "+c.Client+" "+string(c.Kind))
	}
	if want := []string{"stdio-1 test 1.0 use", "stdio-1 test 1.0 run", "stdio-2 other 2.0 run"}; !slices.Equal(got, want) {
		t.Fatalf("ChatGrants() = %q, want %q", got, want)
	}
	if all[1].Digest != all[2].Digest || all[1].ID == all[2].ID {
		t.Errorf("two chats' grants have the digests %s and %s and the ids %s and %s, want one digest and two ids", all[1].Digest, all[2].Digest, all[1].ID, all[2].ID)
	}
	b.outcome(toolRun())
	if e := b.log.last(); e.Grant != all[1].ID {
		t.Errorf("the log says that the grant %q allowed the run, want %q", e.Grant, all[1].ID)
	}
	all[0].Facts[0].Values[0] = "changed" // the result is the caller's own copy

	if found, err := b.RevokeChatGrant(all[1].ID); !found || err != nil {
		t.Fatalf("RevokeChatGrant() = %v, %v", found, err)
	}
	if e := b.log.last(); e.Event != audit.EventRevoke || e.Grant != all[1].ID || e.Chat != "stdio-1" || e.Client != "test 1.0" || e.Kind != "run" || e.Pack != "triage" || e.Tool != "greet" {
		t.Errorf("the line = %+v", e)
	}
	if got := []string{b.outcome(toolRun()), b.outcome(second(toolRun())), b.outcome(openCall()), b.outcome(execRun())}; !slices.Equal(got, []string{asks, allows, allows, allows}) {
		t.Errorf("the run, the run in the other chat, opening, a command: %q", got)
	}
	lines := len(b.log.all())
	for _, id := range []string{"", "x", all[1].ID, all[2].ID + "x", all[2].Digest} {
		if found, err := b.RevokeChatGrant(id); found || err != nil || len(b.log.all()) != lines {
			t.Errorf("RevokeChatGrant(%q) = %v, %v, want nothing", id, found, err)
		}
	}

	// Nothing is taken back without a line in the log.
	b.log.fail = func(audit.Entry) error { return errDisk }
	if found, err := b.RevokeChatGrant(all[2].ID); !found || err == nil || len(b.ChatGrants()) != 2 {
		t.Errorf("RevokeChatGrant() with a full disk = %v, %v, and %d are left", found, err, len(b.ChatGrants()))
	}
	b.log.fail = nil
	b.EndChat("stdio-2")
	if left := b.ChatGrants(); len(left) != 1 || left[0].Kind != call.KindUse {
		t.Errorf("after the chat ended %+v are left", left)
	}
}

// A late answer that was taken back does not count when the call is made again.
func TestRevokedBeforeItCameAgain(t *testing.T) {
	b := newBench(t, everywhere)
	b.page(b.left(toolRun()), queue.Chat)
	if _, err := b.RevokeChatGrant(b.ChatGrants()[0].ID); err != nil {
		t.Fatal(err)
	}
	if got := b.outcome(toolRun()); got != asks {
		t.Errorf("the call, made again: %s, want %s", got, asks)
	}
}

// Answers from earlier versions hold for what they said: opening only.
func TestOldAnswersHold(t *testing.T) {
	old := grants.New(call.Freeze(openCall(), 0))
	for policy, want := range map[string][]string{
		policy.EveryCall: {allows, asks, asks, asks},
		policy.Balanced:  {allows, asks, asks, asks},
		policy.FirstRun:  {allows, allows, allows, asks},
	} {
		b := newBalanced(t, storedIn(&memory{grants: []grants.Grant{old}}), func(o *Options) { o.Policy = policy })
		if got := []string{b.outcome(openCall()), b.outcome(readCall()), b.outcome(enableCall()), b.outcome(readingRun())}; !slices.Equal(got, want) {
			t.Errorf("%s: opening, reading, enabling and a run: %q, want %q", policy, got, want)
		}
	}
	// An answer about a pack that changed is replaced by the answer that includes it.
	void := old
	void.Void, void.Digest = &grants.Void{}, "x"
	theirs := grants.New(call.Freeze(with(openCall(), func(r *call.Request) { r.Caller.Person = "grace" }), 0))
	theirs.Void = &grants.Void{}
	store := &memory{grants: []grants.Grant{void, theirs}}
	newBench(t, storedIn(store)).approve(openCall(), queue.Always)
	if len(store.grants) != 2 || store.grants[0].Person != "grace" || store.grants[1].Kind != call.KindUse {
		t.Errorf("grants = %+v, want another person's and the new one", store.grants)
	}
}
