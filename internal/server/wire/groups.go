package wire

import "context"

// groupsKey is the context key of the groups of a message's sender.
type groupsKey struct{}

// WithGroups returns a context for a message whose sender is in these groups, as the
// token says that came with the message. They belong to the message and not to its
// chat: another token of the same person may have others.
func WithGroups(ctx context.Context, groups []string) context.Context {
	return context.WithValue(ctx, groupsKey{}, groups)
}

// Groups returns the groups of the sender of the message that is being answered. There
// are none over a transport that does not say.
func Groups(ctx context.Context) []string {
	groups, _ := ctx.Value(groupsKey{}).([]string)
	return groups
}
