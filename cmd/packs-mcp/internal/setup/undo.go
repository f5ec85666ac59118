package setup

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/clients"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/configedit"
)

// undo brings back what was there before setup, the newest change first. A file that
// somebody changed since loses only our entry.
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
			said, err := a.undoOne(r)
			if err != nil {
				keep = append(keep, r)
				errs = append(errs, fmt.Errorf("%s: %w", r.File, err))
				continue
			}
			undone++
			fmt.Fprintf(a.Stdout, "%s: %s\n", r.File, said)
		}
		slices.Reverse(keep)
		if undone == 0 && len(errs) == 0 {
			return cli.WithHint(errors.New("there is nothing to undo"), "setup keeps a record of each file that it changed; there is none for this")
		}
		return errors.Join(append(errs, save(f, keep))...)
	})
}

func (a *app) undoOne(r record) (said string, err error) {
	e, err := configedit.Read(r.File)
	if err != nil {
		return "", err
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
			if os.Remove(dir) != nil { // somebody put something into it
				break
			}
		}
		return "removed; it was made by setup", nil
	}
	c, ok := clients.ByID(r.Client)
	if !ok {
		return "", fmt.Errorf("there is no client %q", r.Client)
	}
	text, err := c.Entry(r.File, "", clients.Server{}).Format.Remove(e.Text, r.Path)
	if err != nil {
		return "", errors.New(unreadable(r.File, err))
	}
	return "it was changed since, so only the entry was removed", e.Replace(text)
}
