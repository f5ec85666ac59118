package service

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/oidc"
)

// maxSeen is how many people's tokens are remembered. Beyond that they are forgotten, and
// looked at once more.
const maxSeen = 10_000

// leavers notice by their tokens that people of an identity provider have left groups, and
// take these groups from the "always" answers that the people gave before.
type leavers struct {
	grants grants.Store // nil: no answers are kept
	logger *slog.Logger

	mu   sync.Mutex
	seen map[string]oidc.Identity // :: key of a person → the token that was looked at last
}

// look looks at a token before it is used. If the answers cannot be read or changed, the
// next request with a token of the person tries again; meanwhile no kept answer can be read
// for a call either, or it holds as before.
func (l *leavers) look(_ context.Context, id *oidc.Identity) {
	if l.grants == nil || l.known(id) {
		return
	}
	person := approvers.Person{Name: id.Person, Groups: id.Groups}
	leave := func(all []grants.Grant) (left []grants.Grant, changed int) {
		return grants.Leave(all, person, id.Issued)
	}
	all, err := l.grants.Load()
	_, changed := leave(all)
	if err == nil && changed > 0 {
		err = l.grants.Update(func(all []grants.Grant) (left []grants.Grant, _ error) {
			left, changed = leave(all)
			return left, nil
		})
	}
	if err != nil {
		l.logger.Warn("kept answers could not be compared with the groups of the person who gave them", "person", id.Person, "err", err)
		return
	}
	if changed > 0 {
		l.logger.Info("a person left groups that their kept answers had; calls that need these ask again", "person", id.Person, "answers", changed)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil || len(l.seen) >= maxSeen {
		l.seen = make(map[string]oidc.Identity)
	}
	l.seen[id.Key] = *id
}

// known reports whether the token is the one that was looked at last, or as good.
func (l *leavers) known(id *oidc.Identity) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	last, ok := l.seen[id.Key]
	return ok && last.Issued.Equal(id.Issued) && slices.Equal(last.Groups, id.Groups)
}
