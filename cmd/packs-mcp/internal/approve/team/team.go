package team

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
)

// tokenVariable holds a person's token for a team's server.
const tokenVariable = "PACKS_MCP_TOKEN"

// A Server is a team's server over HTTP, as the flags name it.
type Server struct {
	env       *cli.Env
	url       string // empty: this user's own servers
	tokenFile string
}

// New returns a server that no flag names yet.
func New(e *cli.Env) Server { return Server{env: e} }

// IsNamed reports whether the flags name a team's server. Otherwise the commands are about
// this user's own servers.
func (t *Server) IsNamed() bool { return t.url != "" }

// Flags adds the flags that name a team's server.
func (t *Server) Flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&t.url, "server", "", "the `URL` of your team's server, in place of the servers of this machine; log in to it with 'packs-mcp login URL'")
	cmd.Flags().StringVar(&t.tokenFile, "token-file", "", "a `FILE` of yours alone (mode 0600) with your token for --server, in place of a login")
	_ = cmd.MarkFlagFilename("token-file")
}

// Open returns the team's server, with the token in --token-file, of the user's login
// there, or in PACKS_MCP_TOKEN.
func (t *Server) Open() (*terminal.Server, error) {
	s, err := terminal.Remote(t.url, nil)
	if err != nil {
		return nil, &cli.UsageError{Err: err, Hint: "say where the server is, as in --server https://packs.example.com"}
	}
	token, err := t.tokenFor(s.Name)
	if err != nil {
		return nil, err
	}
	return terminal.Remote(t.url, token)
}

// tokenFor returns what gets the token for a server.
func (t *Server) tokenFor(server string) (func(context.Context) (string, error), error) {
	if t.tokenFile != "" {
		token, err := t.token()
		return terminal.Fixed(token), err
	}
	cfg, _, err := t.env.Load()
	if err != nil {
		return nil, err
	}
	logins := openSessions(cfg)
	if _, ok, err := logins.of(server); ok || err != nil {
		return func(ctx context.Context) (string, error) { return logins.token(ctx, server) }, err
	}
	if token := cli.Getenv(t.env.Environ, tokenVariable); token != "" {
		return terminal.Fixed(token), nil
	}
	return nil, ended(server, "you are not logged in to it")
}

// maxTokenFile is the largest size of a token file, in bytes.
const maxTokenFile = 64 << 10

// token reads the person's token from the file that they name.
func (t *Server) token() (string, error) {
	f, err := os.Open(t.tokenFile)
	if err != nil {
		return "", fmt.Errorf("reading your token: %w", err)
	}
	defer f.Close()
	fi, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("reading your token: %w", err)
	case !fi.Mode().IsRegular():
		return "", fmt.Errorf("reading your token: %q is not a regular file", t.tokenFile)
	case runtime.GOOS != "windows" && fi.Mode().Perm()&0o077 != 0:
		return "", cli.WithHint(fmt.Errorf("others can read your token in %q (mode %04o)", t.tokenFile, fi.Mode().Perm()), "make it yours alone: chmod 600")
	}
	b, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err != nil || len(b) > maxTokenFile {
		return "", errors.Join(fmt.Errorf("reading your token: %q is not a file with a token", t.tokenFile), err)
	}
	return strings.TrimSpace(string(b)), nil
}
