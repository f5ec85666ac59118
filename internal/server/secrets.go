package server

import (
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
)

// withoutTokens refuses a call that has a token of this server in its arguments: a
// person would have to be shown all of it, and the log would keep it.
func (s *Server) withoutTokens(c *call) error {
	if len(s.opts.Tokens) == 0 {
		return nil
	}
	var said []any
	if c.args.Tree != nil {
		said = append(said, c.args.Tree.Value())
	}
	if c.meta != nil {
		said = append(said, c.meta.AdditionalFields[contextKey])
	}
	if s.tokens.In(said) {
		return toolerr.New(toolerr.CodeInvalidArguments, "Leave it out, and tell the user where it came from.", "the arguments have a token in them that lets people use this server")
	}
	return nil
}

// secretsOf returns the values that are removed from results and the log: the tokens
// of this server, and the secrets in the environment.
func secretsOf(o *Options) *redact.Secrets {
	all := slices.Clone(o.Tokens)
	for _, s := range redact.Environ(o.Environ) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return redact.New(all...)
}

// clientName returns what a client calls itself, without tokens, since people see it.
func (s *Server) clientName(name, version string) string {
	return s.tokens.Hide(strings.TrimSpace(name + " " + version))
}
