//go:build unix

package gate

import (
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

// A person who has another name at the identity provider by now, and so at the replica that
// has not seen them before, cannot allow their own call there.
func TestRenamedAtAnotherReplica(t *testing.T) {
	const digits = " 3f9a1c2d5b60e4a781c0ffd2"
	e := storetest.NATS(t)
	a, b := replicaAt(t, e.URL(), sharedKey, bySRE), replicaAt(t, e.URL(), sharedKey, bySRE)
	req := personRun("mallory@example.com"+digits, "sre")
	req.Caller.Shared, req.Caller.CanAsk = true, false
	code := a.left(req)
	b.shows(code)
	view := b.View(approvers.Person{Name: "molly@example.com" + digits, Groups: []string{"sre"}})
	if _, err := view.Decide(code, says(queue.Once)); err == nil || !strings.Contains(err.Error(), "not the person who asks") {
		t.Errorf("Decide = %v", err)
	}
}
