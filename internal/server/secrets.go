package server

import (
	"slices"

	"github.com/packs-mcp/packs-mcp/internal/redact"
)

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
