package approve

import (
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
	cmd.Flags().StringVar(&a.team.url, "server", "", "the `URL` of your team's server, in place of the servers of this machine; your token is read from --token-file or PACKS_MCP_TOKEN")
	cmd.Flags().StringVar(&a.team.tokenFile, "token-file", "", "a `FILE` of yours alone (mode 0600) with your token for --server")
	_ = cmd.MarkFlagFilename("token-file")
}

// server returns the team's server.
func (t team) server(environ []string) (*terminal.Server, error) {
	token, err := t.token(environ)
	if err != nil {
		return nil, err
	}
	s, err := terminal.Remote(t.url, token)
	if err != nil {
		return nil, &cli.UsageError{Err: err, Hint: "say where the server is, as in --server https://packs.example.com"}
	}
	return s, nil
}

// maxTokenFile is the largest size of a token file, in bytes.
const maxTokenFile = 64 << 10

// token reads the person's token.
func (t team) token(environ []string) (string, error) {
	if t.tokenFile == "" {
		for _, kv := range environ {
			if value, ok := strings.CutPrefix(kv, tokenVariable+"="); ok && value != "" {
				return value, nil
			}
		}
		return "", &cli.UsageError{Err: errors.New("a team's server needs your token"), Hint: "put it into a file of yours alone and name that with --token-file, or set " + tokenVariable}
	}
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
