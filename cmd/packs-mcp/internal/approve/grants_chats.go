package approve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// A chatGrant is a grant that holds in one chat of a running server.
type chatGrant struct {
	grants.Grant
	chat   listedChat
	server *terminal.Server
}

// chatGrants returns what holds in the chats of this user's servers, by server. It
// reports servers that do not say on standard error, and counts them as silent:
// grants that hold in every chat are known and can be revoked without them.
func (a *app) chatGrants(ctx context.Context) ([]chatGrant, servers) {
	s, err := a.running(ctx)
	if err != nil {
		fmt.Fprintf(a.Screen(a.Stderr), "packs-mcp: warning: running servers cannot be found: %s\n", safetext.Line(err.Error()))
		s.silent++
	}
	var all []chatGrant
	for _, one := range slices.Concat(s.open, s.pageOnly) {
		grants, err := one.Grants(ctx)
		if err != nil {
			fmt.Fprintf(a.Screen(a.Stderr), "packs-mcp: warning: the server with pid %d does not tell what holds in its chats: %s\n", one.PID, safetext.Line(err.Error()))
			s.silent++
			continue
		}
		for _, g := range grants {
			// Several servers may have a chat in common.
			if !slices.ContainsFunc(all, func(have chatGrant) bool { return have.ID == g.ID && have.chat.ID == g.Chat }) {
				all = append(all, chatGrantOf(g, one))
			}
		}
	}
	return all, s
}

func chatGrantOf(g control.ChatGrant, s *terminal.Server) chatGrant {
	c := chatGrant{
		Grant: grants.Grant{
			ID: g.ID, Digest: g.Digest, Since: g.Since, Kind: call.Kind(g.Kind), Pack: g.Pack, Dir: g.Dir, Tool: g.Tool, Argv: g.Argv,
			Covers: g.Covers, Channel: g.Channel, Policy: g.Policy, Person: g.Person,
		},
		chat:   listedChat{ID: g.Chat, Client: g.Client, Server: s.Name, PID: s.PID, Project: s.Project},
		server: s,
	}
	if g.By != "" {
		c.By = &approvers.Person{Name: g.By}
	}
	if g.Void != nil {
		c.Void = &grants.Void{At: g.Void.At, Changes: g.Void.Changes}
	}
	return c
}

func (c *chatGrant) listed() listedGrant {
	l := listedOfGrant(c.Grant)
	l.Chat = &c.chat
	return l
}

func (c *listedChat) place() string {
	return place(&terminal.Server{PID: c.PID, Project: c.Project})
}

func grantsOf(all []chatGrant) []grants.Grant {
	grants := make([]grants.Grant, len(all))
	for i, c := range all {
		grants[i] = c.Grant
	}
	return grants
}

// mayHold returns the error for servers whose grants are not known.
func (s servers) mayHold() error {
	what := "one server of yours does not answer, so grants of its chats may hold"
	if s.silent > 1 {
		what = fmt.Sprintf("%d servers of yours do not answer, so grants of their chats may hold", s.silent)
	}
	return cli.WithHint(errors.New(what), "the warnings say why; try again, or close the client: what holds in a chat ends with it")
}

// revokeInChats takes back grants of chats, each through its server, which records
// it. It is an error if a server did not take one back, or is silent.
func (r *revocation) revokeInChats(ctx context.Context, gone []chatGrant, s servers) error {
	var errs []error
	for _, g := range gone {
		if err := g.server.Revoke(ctx, g.ID); err != nil {
			errs = append(errs, fmt.Errorf("revoking %s of the server with pid %d: %w", g.ID, g.server.PID, err))
			continue
		}
		r.took(g.Grant, true)
	}
	if s.silent > 0 {
		errs = append(errs, s.mayHold())
	}
	return errors.Join(errs...)
}
