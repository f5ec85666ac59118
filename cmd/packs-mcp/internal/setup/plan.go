package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/configedit"
)

// A plan is what setup would do for one client.
type plan struct {
	client clients.Client
	entry  clients.Change
	edits  []edit // written after a yes
	offers []edit // each needs a yes of its own
	skips  string // why nothing else is offered
	paste  string // the entry, if the person has to write it
	why    string // why the command does not write it
	failed bool   // it counts as a failure
	kept   bool   // the entry has arguments of its own, which were kept
	note   string // what to know about these
}

// An edit is new content for one file.
type edit struct {
	*configedit.File
	change clients.Change
	exact  bool // keep nothing of the existing entry
	after  []byte
}

// found reports whether the client is on this machine.
func found(c clients.Client, p *clients.Place) bool {
	if c.Program != "" {
		for _, dir := range filepath.SplitList(cli.Getenv(p.Environ, "PATH")) {
			for _, suffix := range []string{"", ".exe", ".cmd"} {
				if info, err := os.Stat(filepath.Join(dir, c.Program+suffix)); err == nil && !info.IsDir() {
					return true
				}
			}
		}
	}
	for _, file := range c.Files(p, clients.ScopeUser) {
		if _, err := os.Stat(file); err == nil {
			return true
		}
		if dir := filepath.Dir(file); dir != p.Home {
			if _, err := os.Stat(dir); err == nil {
				return true
			}
		}
	}
	return false
}

// plan works out what would change for a client. It writes nothing.
func (a *app) plan(ctx context.Context, c clients.Client, p *clients.Place, server clients.Server, s settings) plan {
	out := plan{client: c}
	scope := clients.Scope(s.scope)
	files := c.Files(p, scope)
	if len(files) == 0 {
		return out.fail("it has no settings of a project")
	}
	file := files[len(files)-1]
	for _, f := range files {
		if _, err := os.Lstat(f); err == nil {
			file = f
			break
		}
	}
	out.entry = c.Entry(file, s.name, server)
	out.paste = out.entry.Format.Write(out.entry.Path, out.entry.Value)
	if c.PasteOnly {
		out.why = "paste this into " + file
		return out
	}
	f, err := configedit.Read(file)
	if err != nil {
		return out.fail(err.Error() + "; it was not changed")
	}
	// Anybody may have written a project's file: keep and start nothing from it, and
	// follow no links out of it. The same holds for a user's link into the project.
	projects := inProject(p, f.Target)
	if scope == clients.ScopeProject && !projects {
		return out.fail(file + " is a link out of the project; it was not changed")
	}
	e := edit{File: f, change: out.entry, exact: projects || s.replace}
	have, there, err := e.change.Format.Get(f.Text, e.change.Path...)
	if err != nil {
		return out.fail(unreadable(file, err))
	}
	var missing []string // folders that the entry names
	if there && !s.replace {
		other := a.otherProgram(ctx, have, !projects)
		if other != "" {
			out.paste = "" // it would replace that entry
			return out.fail(fmt.Sprintf("%s has a server called %q already, %s; it was left. Choose another --name, or overwrite it with --replace", file, s.name, other))
		}
		if !projects {
			own := clients.Started(have)[1:]
			missing = slices.DeleteFunc(clients.MissingFolders(own), func(dir string) bool { return slices.Contains(server.Args, dir) }) // those were already checked
			all := withOwn(own, server.Args)
			out.note = noteOn(own, server.Args, again(c, s))
			out.kept, server.Args = !slices.Equal(all, server.Args), all
			out.entry = c.Entry(file, s.name, server)
			e.change = out.entry
		}
	}
	if e.exact {
		e.after, err = e.change.Format.SetExactly(f.Text, e.change.Path, e.change.Value)
	} else {
		e.after, err = e.change.Format.Set(f.Text, e.change.Path, e.change.Value)
	}
	if err != nil {
		return out.fail(unreadable(file, err))
	}
	out.paste = ""
	out.edits = e.unlessSame(out.edits)
	if len(missing) > 0 && len(out.edits) == 0 {
		return out.fail(fmt.Sprintf("its entry in %s names the folder %q, which does not exist. Make the folder, or write the entry anew: %s --packs DIR", file, missing[0], again(c, s)))
	} else if len(missing) > 0 {
		out.note = fmt.Sprintf("the entry still names the folder %q, which does not exist; to write it anew: %s --packs DIR", missing[0], again(c, s))
	}
	if scope == clients.ScopeUser {
		return out.withOffers(c, p, s)
	}
	return out
}

// again returns the command that writes an entry again.
func again(c clients.Client, s settings) string {
	words := "packs-mcp setup " + c.ID
	if s.scope == string(clients.ScopeProject) {
		words += " --scope project"
	}
	if s.name != defaultName {
		words += " --name " + s.name
	}
	return words + " --replace"
}

// noteOn returns a note that an entry with these arguments serves the examples, if a
// new entry would not. again is the command that writes it again.
func noteOn(have, add []string, again string) string {
	const bundled = "--bundled"
	if !slices.Contains(have, bundled) || slices.Contains(add, bundled) {
		return ""
	}
	for i := 0; i+1 < len(add); i++ {
		if add[i] == "--packs" {
			again += " --packs " + add[i+1]
		}
	}
	return "the entry also serves the example packs; without them: " + again
}

// withOffers adds further changes that make the client work well.
func (p plan) withOffers(c clients.Client, place *clients.Place, s settings) plan {
	for _, change := range c.More(place, s.name) {
		f, err := configedit.Read(change.File)
		if err != nil {
			p.skips = err.Error() + "; it was not changed"
			continue
		}
		e := edit{File: f, change: change}
		if e.after, err = change.Format.Append(f.Text, change.Path, change.Word); err != nil {
			p.skips = unreadable(change.File, err)
			continue
		}
		if bytes.Equal(e.Text, e.after) {
			continue
		}
		if file := namesake(c, place, s.name); file != "" {
			p.skips = fmt.Sprintf("%q is not offered for %s: %s names another server %q, and it would hold for that one too", change.Word, change.File, file, s.name)
			continue
		}
		if s.allow {
			p.edits = append(p.edits, e)
		} else {
			p.offers = append(p.offers, e)
		}
	}
	return p
}

// namesake returns the project's own file if it names a server of this name.
func namesake(c clients.Client, p *clients.Place, name string) string {
	for _, file := range c.Files(p, clients.ScopeProject) {
		f, err := configedit.Read(file)
		if err != nil {
			continue
		}
		if entries, err := c.Entries(f.Text); err == nil && entries[name] != nil && !isThisProgram(clients.Started(entries[name])) {
			return file
		}
	}
	return ""
}

// fail says why nothing is written. The entry to paste stays.
func (p plan) fail(why string) plan {
	p.why, p.failed, p.edits = why, true, nil
	return p
}

// unlessSame adds e to all, if it changes something.
func (e edit) unlessSame(all []edit) []edit {
	if bytes.Equal(e.Text, e.after) {
		return all
	}
	return append(all, e)
}

// inProject reports whether a file is in the project, after following the links to
// its folder.
func inProject(p *clients.Place, file string) bool {
	if p.Project == "" {
		return false
	}
	project, err := filepath.EvalSymlinks(p.Project)
	if err != nil {
		return false
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(file))
	if err != nil {
		dir = filepath.Dir(file) // it will be created, below what was already resolved
	}
	inside, err := filepath.Rel(project, dir)
	return err == nil && filepath.IsLocal(inside)
}

// withOwn returns the arguments of an existing entry of ours, which a person may have
// added to, with those of this command: it adds this command's folders, and replaces
// the policy. An existing entry does not need the examples.
func withOwn(have, add []string) []string {
	if len(have) == 0 {
		return add
	}
	out := slices.Clone(have)
	for i := 0; i+1 < len(add); i++ {
		flag, value := add[i], add[i+1]
		at := slices.Index(out, flag)
		switch {
		case flag != "--packs" && flag != "--policy":
		case flag == "--policy" && at >= 0 && at+1 < len(out):
			out[at+1] = value
		case !slices.Contains(out, value):
			out = append(out, flag, value)
		}
	}
	return out
}

// unreadable says what is wrong with a file, which is left unchanged.
func unreadable(file string, err error) string {
	if e, ok := errors.AsType[*configedit.SyntaxError](err); ok {
		return fmt.Sprintf("%s:%d:%d: %s; it was not changed", file, e.Line, e.Column, strings.TrimSpace(e.Problem))
	}
	return fmt.Sprintf("%s: %v; it was not changed", file, err)
}
