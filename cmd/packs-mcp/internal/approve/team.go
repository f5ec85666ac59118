package approve

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

// A team is a team's server over HTTP, as the flags name it.
type team struct {
	url       string // empty: this user's own servers
	tokenFile string
}

// teamFlags adds the flags that name a team's server.
func (a *app) teamFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.team.url, "server", "", "the `URL` of your team's server, in place of the servers of this machine; log in to it with 'packs-mcp login URL'")
	cmd.Flags().StringVar(&a.team.tokenFile, "token-file", "", "a `FILE` of yours alone (mode 0600) with your token for --server, in place of a login")
	_ = cmd.MarkFlagFilename("token-file")
}

// server returns the team's server, with the token in --token-file, of the user's login
// there, or in PACKS_MCP_TOKEN.
func (a *app) teamServer() (*terminal.Server, error) {
	s, err := terminal.Remote(a.team.url, nil)
	if err != nil {
		return nil, &cli.UsageError{Err: err, Hint: "say where the server is, as in --server https://packs.example.com"}
	}
	token, err := a.teamToken(s.Name)
	if err != nil {
		return nil, err
	}
	return terminal.Remote(a.team.url, token)
}

func (a *app) teamToken(server string) (func(context.Context) (string, error), error) {
	if a.team.tokenFile != "" {
		token, err := a.team.token()
		return terminal.Fixed(token), err
	}
	cfg, _, err := a.Load()
	if err != nil {
		return nil, err
	}
	logins := openSessions(cfg)
	if _, ok, err := logins.of(server); ok || err != nil {
		return func(ctx context.Context) (string, error) { return logins.token(ctx, server) }, err
	}
	if token := cli.Getenv(a.Environ, tokenVariable); token != "" {
		return terminal.Fixed(token), nil
	}
	return nil, ended(server, "you are not logged in to it")
}

// maxTokenFile is the largest size of a token file, in bytes.
const maxTokenFile = 64 << 10

// token reads the person's token from the file that they name.
func (t team) token() (string, error) {
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
