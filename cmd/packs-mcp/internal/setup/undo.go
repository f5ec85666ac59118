package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/configedit"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// undo restores what was there before setup, the newest change first. In a file that
// somebody changed since, it undoes only what setup changed, and only if that is
// still as setup wrote it.
func (a *app) undo(cfg *config.Config, ids []string) error {
	f := history(cfg)
	return f.Lock(func() error {
		all, err := load(f)
		if err != nil {
			return err
		}
		var keep []record
		var errs []error
		undone := 0
		for _, r := range slices.Backward(all) {
			if len(ids) > 0 && !slices.Contains(ids, r.Client) {
				keep = append(keep, r)
				continue
			}
			said, err := r.undo()
			if err != nil {
				keep = append(keep, r)
				errs = append(errs, fmt.Errorf("%s: %w", r.File, err))
				continue
			}
			undone++
			fmt.Fprintf(a.Stdout, "%s: %s\n", safetext.Line(r.File), safetext.Line(said))
		}
		slices.Reverse(keep)
		if undone == 0 && len(errs) == 0 {
			return cli.WithHint(errors.New("there is nothing to undo"), "setup keeps a record of each file that it changed; there is none for this")
		}
		return errors.Join(append(errs, save(f, keep))...)
	})
}

// undo undoes a change, in the file that was written. If that was the target of a
// link that is now a file, since some clients replace it, it changes that file too.
func (r record) undo() (said string, err error) {
	if r.Target == "" { // written by a build that did not record it
		return r.undoAt(r.File)
	}
	now, err := configedit.Read(r.File)
	if err != nil {
		return "", err
	}
	if now.Target == r.Target || !now.Exists {
		return r.undoAt(r.Target)
	}
	if now.Target != r.Place {
		return "", fmt.Errorf("it leads to %s now, and led to %s when it was written; it was not changed", now.Target, r.Target)
	}
	said, err = r.undoAt(r.Place)
	behind, errBehind := r.undoAt(r.Target)
	return fmt.Sprintf("%s; it was a link to %s: %s", said, r.Target, behind), errors.Join(err, errBehind)
}

// undoAt is undo for the file at path, which is not a link.
func (r record) undoAt(path string) (said string, err error) {
	e, err := configedit.Read(path)
	if err != nil {
		return "", err
	}
	if r.Target != "" && e.Exists && e.Target != path {
		return "", fmt.Errorf("%s leads to %s now; it was not changed", path, e.Target)
	}
	if !e.Exists {
		return "it is gone, so there is nothing to undo", nil
	}
	if digest(e.Text) == r.After {
		if !r.Created {
			return "as it was before", e.Replace(r.Before)
		}
		if err := os.Remove(e.Target); err != nil {
			return "", err
		}
		for _, dir := range slices.Backward(r.Folders) {
			if os.Remove(dir) != nil { // somebody put something into the folder
				break
			}
		}
		return "removed; it was made by setup", nil
	}
	text, said, err := r.takeBack(e.Text)
	if err != nil || bytes.Equal(text, e.Text) {
		return said, err
	}
	return said, e.Replace(text)
}

// takeBack returns text, of a file that somebody changed since, without our change.
// What is no longer as we wrote it is not ours any more.
func (r record) takeBack(text []byte) (out []byte, said string, err error) {
	c, ok := clients.ByID(r.Client)
	if !ok {
		return nil, "", fmt.Errorf("there is no client %q", r.Client)
	}
	format := c.Entry(r.File, "", clients.Server{}).Format
	if r.Word != "" {
		return r.takeWord(format, text)
	}
	value, there, err := format.Get(text, r.Path...)
	if err != nil {
		return nil, "", errors.New(unreadable(r.File, err))
	}
	if !there {
		return text, "the entry is gone already", nil
	}
	if now, err := json.Marshal(value); err != nil || !bytes.Equal(now, r.Value) {
		return nil, "", fmt.Errorf("the entry %q was changed since, so it stays; edit it in an editor", r.Path[len(r.Path)-1])
	}
	if r.Old == nil {
		out, err = format.Remove(text, r.Path)
		said = "it was changed since, so only the entry was removed"
	} else {
		dec := json.NewDecoder(bytes.NewReader(r.Old))
		dec.UseNumber()
		var old any
		if err := dec.Decode(&old); err != nil {
			return nil, "", err
		}
		out, err = format.SetExactly(text, r.Path, old)
		said = "it was changed since, so only the entry is as it was before"
	}
	if err != nil {
		return nil, "", errors.New(unreadable(r.File, err))
	}
	return out, said, nil
}

// takeWord is takeBack for a word in a list.
func (r record) takeWord(format *configedit.Format, text []byte) (out []byte, said string, err error) {
	value, _, err := format.Get(text, r.Path...)
	if err != nil {
		return nil, "", errors.New(unreadable(r.File, err))
	}
	list, _ := value.([]any)
	i := slices.Index(list, any(r.Word))
	if i < 0 {
		return text, fmt.Sprintf("%q is gone already", r.Word), nil
	}
	if out, err = format.Drop(text, r.Path, i); err != nil {
		return nil, "", errors.New(unreadable(r.File, err))
	}
	return out, fmt.Sprintf("it was changed since, so only %q was removed", r.Word), nil
}
