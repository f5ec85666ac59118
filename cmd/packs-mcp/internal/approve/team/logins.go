package team

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/oidc/login"
	"github.com/packs-mcp/packs-mcp/internal/private"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// A session is a login of this user's to a team's server, as it is kept.
type session struct {
	Server   string    `json:"server"` // its URL
	Resource string    `json:"resource"`
	Issuer   string    `json:"issuer"`
	Client   string    `json:"client"`
	Scopes   []string  `json:"scopes,omitempty"`
	Access   string    `json:"access"`
	Refresh  string    `json:"refresh,omitempty"`
	Until    time.Time `json:"until"` // when Access ends
}

func (s *session) options() login.Options {
	return login.Options{Issuer: s.Issuer, Client: s.Client, Scopes: s.Scopes, Resource: s.Resource}
}

func (s *session) tokens() login.Tokens {
	return login.Tokens{Access: s.Access, Refresh: s.Refresh, Until: s.Until}
}

const (
	// maxSessions bounds the file, in bytes. A token has a few thousand.
	maxSessions = 1 << 20
	// early is how long before its end a token is renewed: it has to be good when it
	// arrives.
	early = 30 * time.Second
	// unsaid is how long a token is used if the provider does not say how long it is good.
	unsaid = 5 * time.Minute
)

// take has the session hold other tokens.
func (s *session) take(t login.Tokens) {
	s.Access, s.Refresh, s.Until = t.Access, t.Refresh, t.Until
	if s.Until.IsZero() {
		s.Until = time.Now().Add(unsaid)
	}
}

// Sessions are kept in a file that only its user may read. What is sent to a server is
// what was issued for it.
type sessions struct{ file *private.File }

func openSessions(cfg *config.Config) sessions {
	return sessions{&private.File{Path: filepath.Join(cfg.Paths.State, "logins.json"), What: "your logins", Max: maxSessions, Secret: true, Guarded: true}}
}

type keptSessions struct {
	Version int       `json:"version"`
	Logins  []session `json:"logins"`
}

const sessionsVersion = 1

func (s sessions) load() ([]session, error) {
	data, _, err := s.file.Read()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if err := s.file.CheckVersion(data, sessionsVersion); err != nil {
		return nil, err
	}
	var kept keptSessions
	if err := s.file.Decode(data, &kept); err != nil {
		return nil, err
	}
	return kept.Logins, nil
}

// update replaces the sessions with what change returns.
func (s sessions) update(change func([]session) ([]session, error)) error {
	return s.file.Lock(func() error {
		all, err := s.load()
		if err != nil {
			return err
		}
		if all, err = change(all); err != nil {
			return err
		}
		data, err := json.Marshal(keptSessions{sessionsVersion, all})
		if err != nil {
			return fmt.Errorf("keeping your login: %w", err)
		}
		return s.file.Write(data)
	})
}

// keep keeps a session in the place of an earlier one of the same server.
func (s sessions) keep(one session) error {
	return s.update(func(all []session) ([]session, error) {
		return append(without(all, one.Server), one), nil
	})
}

func without(all []session, server string) []session {
	return slices.DeleteFunc(slices.Clone(all), func(s session) bool { return s.Server == server })
}

// of returns the session of a server, and reports whether there is one.
func (s sessions) of(server string) (session, bool, error) {
	all, err := s.load()
	i := slices.IndexFunc(all, func(s session) bool { return s.Server == server })
	if err != nil || i < 0 {
		return session{}, false, err
	}
	return all[i], true, nil
}

// token returns a token for a server that is good for a while, and renews it if it has
// to. Only one process renews at a time: many providers take a renewal twice for a theft.
func (s sessions) token(ctx context.Context, server string) (string, error) {
	one, ok, err := s.of(server)
	switch {
	case err != nil:
		return "", err
	case !ok:
		return "", ended(server, "you are not logged in to it")
	case time.Now().Add(early).Before(one.Until):
		return one.Access, nil
	}
	var token string
	var over error
	err = s.update(func(all []session) ([]session, error) {
		i := slices.IndexFunc(all, func(s session) bool { return s.Server == server })
		if i < 0 {
			return nil, ended(server, "you are not logged in to it")
		}
		now := &all[i]
		if time.Now().Add(early).Before(now.Until) { // another process renewed it
			token = now.Access
			return all, nil
		}
		if now.Refresh == "" {
			over = ended(server, "your login ended, and the identity provider lets nobody renew it")
			return without(all, server), nil
		}
		p, err := login.Open(ctx, now.options())
		if err != nil {
			return nil, err
		}
		renewed, err := p.Renew(ctx, now.tokens())
		if refused, ok := errors.AsType[*login.RefusedError](err); ok {
			over = ended(server, "your login ended: "+refused.Error())
			return without(all, server), nil
		}
		if err != nil {
			return nil, err
		}
		now.take(renewed)
		token = now.Access
		return all, nil
	})
	if err == nil {
		err = over
	}
	return token, err
}

// ended returns the error for a server that the user has to log in to.
func ended(server, why string) error {
	return cli.WithHint(fmt.Errorf("%s: %s", safetext.Line(server), why), "log in: packs-mcp login %s", safetext.Line(server))
}
