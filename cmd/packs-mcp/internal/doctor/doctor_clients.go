package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/configedit"
	"github.com/packs-mcp/packs-mcp/internal/launch"
)

// A foundClient is a file in which a client names its servers.
type foundClient struct {
	Client  string        `json:"client"`
	ID      string        `json:"id"` // as setup knows it
	File    string        `json:"file"`
	Servers []foundServer `json:"servers"`           // those that start a packs-mcp
	Problem string        `json:"problem,omitempty"` // why the file cannot be read
}

// A foundServer is an entry that starts a packs-mcp.
type foundServer struct {
	Name    string `json:"name"`
	Command string `json:"command"`
	Problem string `json:"problem,omitempty"` // why it does not start this program
	Hint    string `json:"hint,omitempty"`
}

// maxClientFile is how much of a file is read: some clients keep their history in it.
const maxClientFile = 64 << 20

// findClients returns the files that are there, with what they say of this program.
func findClients(ctx context.Context, place *clients.Place, version string) []foundClient {
	all := []foundClient{}
	for _, c := range clients.All() {
		for _, file := range slices.Concat(c.Files(place, clients.ScopeUser), c.Files(place, clients.ScopeProject)) {
			// What is not a regular file could keep us waiting.
			info, err := os.Stat(file)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			found := foundClient{Client: c.Name, ID: c.ID, File: file, Servers: []foundServer{}}
			if err := found.read(ctx, c, version); err != nil {
				found.Problem = err.Error()
			}
			all = append(all, found)
		}
	}
	return all
}

func (f *foundClient) read(ctx context.Context, c clients.Client, version string) error {
	file, err := os.Open(f.File)
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxClientFile))
	if err != nil {
		return err
	}
	entries, err := c.Entries(text)
	if e, ok := errors.AsType[*configedit.SyntaxError](err); ok {
		return fmt.Errorf("line %d, column %d: %s", e.Line, e.Column, e.Problem)
	}
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if clients.IsOurs(entries[name]) {
			f.Servers = append(f.Servers, examineServer(ctx, name, clients.Started(entries[name]), version))
		}
	}
	return nil
}

// examineServer says whether an entry starts this program with folders that are there.
func examineServer(ctx context.Context, name string, argv []string, version string) foundServer {
	s := foundServer{Name: name, Command: argv[0], Hint: "packs-mcp setup writes the entry anew"}
	path, err := findCommand(argv[0])
	if err != nil {
		s.Problem = "its command does not exist"
		return s
	}
	if other := versionOf(ctx, path); other != version {
		s.Problem = fmt.Sprintf("its command is version %s, and this is %s", other, version)
		if other == "" {
			s.Problem = "its command does not run"
		}
		return s
	}
	for i, arg := range argv[1:] {
		dir, ok := strings.CutPrefix(arg, "--packs=")
		if arg == "--packs" && i+2 < len(argv) {
			dir, ok = argv[i+2], true
		}
		if info, err := os.Stat(dir); ok && filepath.IsAbs(dir) && (err != nil || !info.IsDir()) {
			s.Problem, s.Hint = fmt.Sprintf("its folder %q does not exist", dir), "make the folder, or remove it from the entry"
			return s
		}
	}
	s.Hint = ""
	return s
}

// findCommand returns where a command is. One without a folder is looked for on PATH.
func findCommand(command string) (string, error) {
	if filepath.IsAbs(command) {
		_, err := os.Stat(command)
		return command, err
	}
	return launch.LookPath(command)
}

// versionOf asks a packs-mcp for its version; empty if it does not say.
func versionOf(ctx context.Context, path string) string {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	p, err := launch.Piped(ctx, os.Environ(), []string{path, "version"})
	if err != nil {
		return ""
	}
	line, _ := bufio.NewReader(p.Out).ReadString('\n')
	_, _ = p.In.Close(), p.Wait()
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "packs-mcp" {
		return ""
	}
	return words[1]
}
