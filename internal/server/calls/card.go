package calls

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/card"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
)

const (
	// CardURI is the resource of the card. It is in no list of resources, and it
	// holds nothing about any question.
	CardURI = "ui://packs-mcp/approval"
	// CardKey is where a card finds its question, in _meta, which models do not see.
	CardKey = "packs-mcp/approval"
)

// cardMeta returns the metadata of an elicitation: which card shows it, and the facts
// for the card. It is nil for a client that shows its own form.
func cardMeta(ctx context.Context, q *gate.Question) *mcp.Meta {
	if _, sess, ok := chats.Of(ctx); !ok || !sess.RendersForms() {
		return nil
	}
	return mcp.NewMetaFromMap(map[string]any{
		"ui": map[string]any{"resourceUri": CardURI},
		CardKey: card.Question{
			Kind: q.Kind, Card: q.Card, Choices: card.Choices(q.Choices), Fields: card.Fields(q.Fields), See: q.See, Expires: q.Expires,
		},
	})
}

// formChannel returns how a client shows a question, for the log.
func formChannel(ctx context.Context) string {
	if _, sess, ok := chats.Of(ctx); ok && sess.RendersForms() {
		return queue.ChannelCard
	}
	return queue.ChannelElicitation
}
