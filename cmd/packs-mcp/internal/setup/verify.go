package setup

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/launch"
)

// verifyTime is how long a server has to answer, even on a busy machine.
const verifyTime = 30 * time.Second

// verify starts the server as the entry does, and returns how many tools it offers.
// It starts this program with the arguments of this command, and uses nothing that it
// read from a file.
func (a *app) verify(ctx context.Context, c clients.Client, server clients.Server) (tools int, err error) {
	environ := a.Environ
	if c.Environ != nil {
		environ = slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
			name, _, _ := strings.Cut(kv, "=")
			return !slices.Contains(c.Environ, name)
		})
	}
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	p, err := launch.Piped(ctx, environ, append([]string{server.Command}, server.Args...))
	if err != nil {
		return 0, err
	}
	tools, err = handshake(p.In, p.Out)
	if ended := errors.Join(p.In.Close(), p.Wait()); err != nil {
		return 0, errors.Join(err, ended, said(p.Err()))
	}
	return tools, nil
}

// said returns an error with what a failed server wrote to standard error.
func said(text string) error {
	if text = strings.TrimSpace(text); text == "" {
		return nil
	}
	return errors.New(text)
}

// handshake talks to a server as a client does at its start.
func handshake(in io.Writer, out io.Reader) (tools int, err error) {
	messages := bufio.NewScanner(out)
	const longest = 16 << 20
	messages.Buffer(nil, longest)
	answer := func(id int, into any) error {
		for messages.Scan() {
			var m struct {
				ID     *int            `json:"id"`
				Result json.RawMessage `json:"result"`
				Error  *struct {
					Message string `json:"message"`
				} `json:"error"`
			}
			if json.Unmarshal(messages.Bytes(), &m) != nil || m.ID == nil || *m.ID != id {
				continue
			}
			if m.Error != nil {
				return errors.New(m.Error.Message)
			}
			return json.Unmarshal(m.Result, into)
		}
		return errors.Join(errors.New("it ended before it answered"), messages.Err())
	}
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"packs-mcp setup","version":"1"}}}`
	if _, err := fmt.Fprintln(in, hello); err != nil {
		return 0, err
	}
	var info struct {
		ServerInfo struct {
			Name string `json:"name"`
		} `json:"serverInfo"`
	}
	if err := answer(1, &info); err != nil {
		return 0, err
	}
	if info.ServerInfo.Name != "packs-mcp" {
		return 0, fmt.Errorf("the server calls itself %q", info.ServerInfo.Name)
	}
	if _, err := fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n"+`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`); err != nil {
		return 0, err
	}
	var list struct {
		Tools []struct{} `json:"tools"`
	}
	if err := answer(2, &list); err != nil {
		return 0, err
	}
	return len(list.Tools), nil
}
