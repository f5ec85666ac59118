package gate

import (
	"crypto/rand"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
)

// A ChatGrant is a grant that holds in one chat.
type ChatGrant struct {
	Grant
	Chat   string // opaque id
	Client string // name and version that the client gave; not safe to show
}

// newChatGrantID returns an id for a grant of one chat. It is random: unlike a
// grant for every chat, it cannot be named by its facts, which several chats may
// share.
func newChatGrantID() string { return strings.ToLower(rand.Text()[:8]) }

// ChatGrants returns what was allowed in the chats that have not ended, oldest
// first. It includes grants that are void.
func (g *Gate) ChatGrants() []ChatGrant {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []ChatGrant
	for chat, r := range g.chats {
		for _, grant := range r.grants {
			all = append(all, ChatGrant{grant.clone(), chat, r.client})
		}
	}
	slices.SortFunc(all, func(a, b ChatGrant) int { return a.Since.Compare(b.Since) })
	return all
}

// RevokeChatGrant takes back the chat grant with this id, and reports whether there
// is one. The log has it before the grant ends; if there is an error, the grant
// still holds.
func (g *Gate) RevokeChatGrant(id string) (found bool, err error) {
	all := g.ChatGrants()
	i := slices.IndexFunc(all, func(c ChatGrant) bool { return c.ID == id })
	if i < 0 {
		return false, nil
	}
	gone := all[i]
	e := audit.Entry{
		Event: audit.EventRevoke, Server: g.server, Chat: gone.Chat, Caller: gone.Person, Client: gone.Client, Kind: string(gone.Kind),
		Pack: gone.Pack, Tool: gone.Tool, Dir: gone.Dir, Channel: queue.ChannelTerminal, Grant: gone.ID,
		Reason: fmt.Sprintf("the grant %s of %s, for a chat", gone.ID, gone.Since.UTC().Format(time.RFC3339)),
	}
	if err := g.failed(e, g.log.Append(e)); err != nil {
		return true, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.chats[gone.Chat]; r != nil {
		r.drop(func(have Grant) bool { return have.ID == id })
	}
	return true, nil
}

// drop forgets grants. The caller holds mu.
func (r *remembered) drop(is func(Grant) bool) {
	r.grants = slices.DeleteFunc(r.grants, is)
	r.bytes = 0
	for _, left := range r.grants {
		r.bytes += left.size()
	}
}
