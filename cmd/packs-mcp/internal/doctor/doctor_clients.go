package doctor

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/configedit"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
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

// findClients returns the files that exist, with what they say about this program.
func findClients(place *clients.Place) []foundClient {
	all := []foundClient{}
	for _, c := range clients.All() {
		own := c.Files(place, clients.ScopeUser)
		for i, file := range slices.Concat(own, c.Files(place, clients.ScopeProject)) {
			// Opening anything but a regular file could block.
			info, err := os.Stat(file)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			found := foundClient{Client: c.Name, ID: c.ID, File: file, Servers: []foundServer{}}
			again := "packs-mcp setup " + c.ID
			if i >= len(own) {
				again += " --scope project"
			}
			if err := found.read(c, again); err != nil {
				found.Problem = err.Error()
			}
			all = append(all, found)
		}
	}
	return all
}

// read reads the file. again is the command that writes the entry again, without its
// name.
func (f *foundClient) read(c clients.Client, again string) error {
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
			f.Servers = append(f.Servers, examineServer(name, clients.Started(entries[name]), again))
		}
	}
	return nil
}

// examineServer checks whether an entry starts this program, and whether the folders
// that it names exist.
func examineServer(name string, argv []string, again string) foundServer {
	s := foundServer{Name: name, Command: argv[0], Hint: again + " --replace writes the entry anew"}
	if name != "packs" { // the name that setup uses
		s.Hint = again + " --name " + safetext.Line(name) + " --replace writes the entry anew"
	}
	switch same, err := clients.IsThisProgram(argv[0]); {
	case err != nil:
		s.Problem = "its command does not exist"
		return s
	case !same:
		s.Problem = "its command is another program than this packs-mcp"
		return s
	}
	if missing := clients.MissingFolders(argv[1:]); len(missing) > 0 {
		s.Problem = fmt.Sprintf("its folder %q does not exist", missing[0])
		s.Hint = "make the folder, or name another: " + strings.Replace(s.Hint, " --replace", " --replace --packs DIR", 1)
		return s
	}
	s.Hint = ""
	return s
}
