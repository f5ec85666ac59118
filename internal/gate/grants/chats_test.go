package grants

import (
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
)

// A chat takes up the size of its grants, also after one was dropped.
func TestChatsCountTheirRoom(t *testing.T) {
	chats := NewChats(2)
	ada := call.Caller{Person: "ada", Chat: "ada-1"}
	for _, digest := range []string{"a", "b", "c"} {
		chats.Add(&ada, Grant{Person: "ada", Digest: digest, Covers: "reading " + digest})
	}
	chats.Drop("ada-1", func(g Grant) bool { return g.Digest == "b" })
	have := chats.chats["ada-1"]
	if want := have.grants[0].size() + have.grants[1].size(); len(have.grants) != 2 || have.person != "ada" || have.bytes != want || want < 200 {
		t.Errorf("the chat of %q has %d grants of %d bytes, want ada's, 2 of %d", have.person, len(have.grants), have.bytes, want)
	}
	chats.Forget("ada-1")
	if all := chats.All(); len(all) != 0 {
		t.Errorf("after the chat ended, %v is remembered", all)
	}
}
