package queue_test

import (
	"fmt"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// A call leaves its question behind, a person answers it later, and the call gets the
// answer when it is made again.
func Example() {
	q, err := queue.New(queue.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	c := call.Freeze(call.Request{
		Caller: call.Caller{Chat: "stdio-1"}, Kind: call.KindOpen, Pack: call.Pack{ID: "triage"},
	}, 0)
	expires := time.Now().Add(time.Minute)
	ticket, err := q.Add(&queue.Entry{Call: c}, queue.Pending{
		Title: "Open the documents of pack triage?", Choices: []queue.Choice{{Value: "once"}, {Value: "deny"}}, Expires: expires,
	}, queue.HeldByCall)
	if err != nil {
		fmt.Println(err)
		return
	}
	q.Leave(ticket.Nonce, "The call has returned.")

	for _, p := range q.Pending() {
		fmt.Println(p.Title, p.Note)
		ruling, err := q.Rule(p.Code, queue.Verdict{Decision: queue.Once, Channel: queue.ChannelPage}, time.Minute)
		if err != nil {
			fmt.Println(err)
			return
		}
		ruling.Settle("", nil) // no call waits, so it was recorded here
	}

	_, answer, _ := q.Again(c, queue.HeldByCall, time.Time{}, nil)
	fmt.Println(answer.Decision, answer.Channel)
	_, answer, _ = q.Again(c, queue.HeldByCall, time.Time{}, nil)
	fmt.Println(answer)

	// Output:
	// Open the documents of pack triage? The call has returned.
	// once page
	// <nil>
}
