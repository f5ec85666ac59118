package setup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/configedit"
)

// A plan is what setup would do for one client.
type plan struct {
	client clients.Client
	entry  clients.Change
	files  []edit   // that would change
	paste  string   // the entry, where it is not written
	why    string   // why it is not written
	failed bool     // that is a problem
	notes  []string // what the other changes are good for
}

// An edit is a new content for one file.
type edit struct {
	*configedit.File
	after []byte
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

// plan works out what would change for a client. Nothing is written.
func (a *app) plan(c clients.Client, p *clients.Place, server clients.Server, s settings) plan {
	out := plan{client: c}
	files := c.Files(p, clients.Scope(s.scope))
	if len(files) == 0 {
		out.why, out.failed = "it has no settings of a project", true
		if s.scope == string(clients.ScopeUser) {
			out.why = "its settings cannot be found: the home folder is not known"
		}
		return out
	}
	file := files[len(files)-1]
	for _, f := range files {
		if _, err := os.Lstat(f); err == nil {
			file = f
			break
		}
	}
	out.entry = c.Entry(file, s.name, server)
	// A project's file may be anybody's: none of its arguments is kept, or run, and it
	// leads nowhere else.
	if s.scope == string(clients.ScopeProject) {
		if real, err := filepath.EvalSymlinks(p.Project); err != nil || leadsOut(real, file) {
			out.why, out.failed = file+" is a link out of the project; it was not changed", true
			return out
		}
	} else if f, err := configedit.Read(file); err == nil {
		if entry, ok, err := out.entry.Format.Get(f.Text, out.entry.Path...); err == nil && ok && clients.IsOurs(entry) {
			server.Args = withOwn(clients.Started(entry)[1:], server.Args)
			out.entry = c.Entry(file, s.name, server)
		}
	}
	paste := out.entry.Format.Write(out.entry.Path, out.entry.Value)
	if c.PasteOnly {
		out.paste, out.why = paste, "paste this into "+file
		return out
	}
	changes := []clients.Change{out.entry}
	if more := c.More(p, s.name); !s.minimal && s.scope == string(clients.ScopeUser) {
		changes = append(changes, more...)
	}
	for _, change := range changes {
		e, problem := out.apply(change)
		switch {
		case problem != "":
			out.why, out.failed, out.paste, out.files = problem, true, paste, nil
			return out
		case bytes.Equal(e.Text, e.after):
		default:
			out.files = append(out.files, e)
			if change.Why != "" {
				out.notes = append(out.notes, change.Why)
			}
		}
	}
	return out
}

// leadsOut reports whether a file of a project, or the folder that it would be made in,
// is elsewhere.
func leadsOut(project, file string) bool {
	for at := file; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); err != nil {
			if at == filepath.Dir(at) {
				return true
			}
			continue
		}
		real, err := filepath.EvalSymlinks(at)
		if err != nil {
			return true
		}
		inside, err := filepath.Rel(project, real)
		return err != nil || !filepath.IsLocal(inside)
	}
}

// withOwn is the arguments that an entry of ours has, which a person may have added
// to, with those of this command: its folders besides, and its policy instead. An
// entry that was there needs no examples.
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

// apply makes one change, on what is in the file or was planned for it already.
func (p *plan) apply(c clients.Change) (e edit, problem string) {
	if i := slices.IndexFunc(p.files, func(e edit) bool { return e.Path == c.File }); i >= 0 {
		e = p.files[i]
		p.files = slices.Delete(p.files, i, i+1)
	} else {
		f, err := configedit.Read(c.File)
		if err != nil {
			return edit{}, err.Error() + "; it was not changed"
		}
		e = edit{f, f.Text}
	}
	entry, ok, err := c.Format.Get(e.after, c.Path...)
	if err == nil && c.Value != nil && ok && !clients.IsOurs(entry) {
		return edit{}, fmt.Sprintf("%s has a server called %q already, which is another program's: choose another --name, or remove it", c.File, c.Path[len(c.Path)-1])
	}
	if err == nil && c.Word != "" {
		e.after, err = c.Format.Append(e.after, c.Path, c.Word)
	} else if err == nil {
		e.after, err = c.Format.Set(e.after, c.Path, c.Value)
	}
	if err != nil {
		return edit{}, unreadable(c.File, err)
	}
	return e, ""
}

// unreadable says what is wrong with a file, which was not changed.
func unreadable(file string, err error) string {
	if e, ok := errors.AsType[*configedit.SyntaxError](err); ok {
		return fmt.Sprintf("%s:%d:%d: %s; it was not changed", file, e.Line, e.Column, e.Problem)
	}
	return fmt.Sprintf("%s: %v; it was not changed", file, err)
}
