package service

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/changescmd"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/approvals"
	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/launch"
	"github.com/packs-mcp/packs-mcp/internal/server"
)

// A lazyDesk is where a person can answer calls without the client: the approval
// page and the terminal. It opens the desk on first use, so that a client's
// first answer is not delayed.
type lazyDesk struct {
	open   func() (*approvals.Desk, error) // nil: the configuration has neither page nor terminal
	logger *slog.Logger

	mu     sync.Mutex
	desk   *approvals.Desk
	tried  bool
	closed bool
}

// ready opens the desk, once. If that fails, calls that only the desk could show can
// get no answer, and their clients are told so.
func (c *lazyDesk) ready() *approvals.Desk {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.desk != nil || c.open == nil || c.closed {
		return c.desk
	}
	desk, err := c.open()
	if err != nil {
		if !c.tried {
			c.logger.Error("calls can be answered neither on a page nor in a terminal", "err", err)
		}
		c.tried = true
		return nil
	}
	c.desk = desk
	return desk
}

// OpenDesk opens the desk, if it is not open yet.
func (s *Service) OpenDesk() { s.desk.ready() }

// asking is called before a question is shown. It opens the desk, since the client's
// form names commands that look for the question there. If the client does not show
// the question, asking notifies the person.
func (c *lazyDesk) asking(shown bool) {
	if desk := c.ready(); desk != nil && !shown {
		desk.Alert()
	}
}

func (c *lazyDesk) close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	if c.desk == nil {
		return nil
	}
	return c.desk.Close()
}

// newDesk returns the service's desk, for the configured channels.
func newDesk(a *cli.Env, s *Service, cfg *config.Config, logger *slog.Logger) *lazyDesk {
	c := &lazyDesk{logger: logger}
	page := slices.Contains(cfg.Approval.Channels, config.ChannelPage)
	terminal := slices.Contains(cfg.Approval.Channels, config.ChannelTerminal)
	if !page && !terminal {
		return c
	}
	var notify func(title, text string) error
	if cfg.Approval.Notify {
		notify = func(title, text string) error { return launch.Notify(a.Environ, title, text) }
	}
	c.open = func() (*approvals.Desk, error) {
		var sets approvals.Changes // nil if there is no store of changes
		if s.changes != nil {
			sets = changescmd.NewPageSets(s.changes, s.log)
		}
		return approvals.Open(approvals.Options{
			Calls: s.Gate, Grants: chatGrants{s.Gate}, Chats: &chatSource{server: s.Server, gate: s.Gate, log: s.log, own: cfg.HTTP.Addr == ""}, Changes: sets,
			RunDir: cfg.Paths.Run, Server: s.name,
			Project: cli.Project(cfg), Version: a.Version, Page: page, Terminal: terminal, Logger: logger,
			OpenBrowser: func(file string) error { return launch.Browser(a.Environ, file) },
			Notify:      notify,
		})
	}
	return c
}

// chatGrants gives access to what was allowed in the chats of a gate.
type chatGrants struct{ *gate.Gate }

func (g chatGrants) ChatGrants() []control.ChatGrant {
	var all []control.ChatGrant
	for _, c := range g.Gate.ChatGrants() {
		one := control.ChatGrant{
			ID: c.ID, Digest: c.Digest, Since: c.Since, Kind: string(c.Kind), Pack: c.Pack, Dir: c.Dir, Tool: c.Tool, Argv: c.Argv,
			Covers: c.Covers, Channel: c.Grant.Channel, Policy: c.Policy, Person: c.Person, By: c.Giver(), Chat: c.Chat, Client: c.Client,
		}
		if c.Void != nil {
			one.Void = &control.Voided{At: c.Void.At, Changes: c.Void.Changes}
		}
		all = append(all, one)
	}
	return all
}

// chatSource supplies what the page shows of the server besides its calls. If a
// person attaches a pack there, the log records it before it takes effect.
type chatSource struct {
	server *server.Server
	gate   *gate.Gate
	log    audit.Writer
	own    bool // the chats are those of the operator's own client
}

func (r *chatSource) Changes() <-chan struct{} { return r.server.Changes() }

func (r *chatSource) Chats() []approvals.Chat {
	var all []approvals.Chat
	for _, room := range r.server.ChatViews(context.Background()) {
		c := approvals.Chat{ID: room.Chat, Client: room.Client, Person: room.Person, Ends: room.Ends}
		for _, p := range room.Packs {
			c.Packs = append(c.Packs, approvals.Pack{
				ID: p.ID, Name: p.Name, Description: p.Description, Trust: p.Trust, Attached: p.Attached, Problems: p.Problems,
			})
		}
		for _, f := range room.Artifacts {
			c.Artifacts = append(c.Artifacts, approvals.Artifact(f))
		}
		all = append(all, c)
	}
	return all
}

func (r *chatSource) SetAttached(chat, pack string, on bool) error {
	if err := r.server.CanAttach(context.Background(), chat, pack, on); err != nil {
		return err
	}
	event := audit.EventDetach
	if on {
		if err := r.gate.OperatorMay(gate.KindAttach, pack, r.asker(chat)); err != nil {
			return err
		}
		event = audit.EventAttach
	}
	err := r.log.Append(audit.Entry{Event: event, Chat: chat, Pack: pack, Channel: queue.ChannelPage, Reason: "for this chat"})
	if err != nil {
		return fmt.Errorf("nothing was changed: %w", err)
	}
	return r.server.SetAttached(context.Background(), chat, pack, on)
}

// asker returns the person whose chat it is. A chat that has ended is nobody's.
func (r *chatSource) asker(chat string) approvers.Person {
	for _, c := range r.server.ChatViews(context.Background()) {
		if c.Chat == chat {
			return approvers.Person{Name: c.Person, Operator: r.own}
		}
	}
	return approvers.Person{}
}

func (r *chatSource) OpenArtifact(chat, path string) (io.ReadSeekCloser, approvals.Artifact, error) {
	f, about, err := r.server.OpenArtifact(chat, path)
	return f, approvals.Artifact(about), err
}
