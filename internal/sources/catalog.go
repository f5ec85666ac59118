package sources

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
)

// A catalog is a source that lists its packs, and fetches each of them by itself. It
// is for one goroutine.
type catalog struct {
	at     string
	pin    string // of the list
	offers []*offer
}

// An offer is one pack of a catalog.
type offer struct {
	Pack
	fetch func(context.Context) (Snapshot, error)
	got   Snapshot // what was fetched, or nil
}

func (c *catalog) Resolved() string { return c.at }

// Pin is the digest of the list. [PinOf] has that of one pack.
func (c *catalog) Pin() string { return c.pin }

// Signer is nobody: a list is as good as the server that it comes from.
func (c *catalog) Signer() (*lock.Signature, error) { return nil, nil }

func (c *catalog) Close() error {
	var err error
	for _, o := range c.offers {
		if o.got != nil {
			err = errors.Join(err, o.got.Close())
		}
	}
	return err
}

// PinOf returns what the source calls the state of one of its packs: most sources have
// one pin for all.
func PinOf(ctx context.Context, s Snapshot, under string) (string, error) {
	c, ok := s.(*catalog)
	if !ok {
		return s.Pin(), nil
	}
	o, _, err := c.find(ctx, under)
	if err != nil {
		return "", err
	}
	return o.Pin(), nil
}

// find fetches the pack that a path belongs to, once, and returns what is left of the
// path.
func (c *catalog) find(ctx context.Context, under string) (Snapshot, string, error) {
	if under == "" {
		return nil, "", fmt.Errorf("%s is a list of packs: one of them has to be named", c.at)
	}
	for _, o := range c.offers {
		rest, ok := below(under+"/", o.Path)
		if o.Path == "" || !ok {
			continue
		}
		rest = strings.TrimSuffix(rest, "/")
		if o.got == nil {
			if err := o.open(ctx); err != nil {
				return nil, "", fmt.Errorf("%s, %q: %w", c.at, o.Name, err)
			}
		}
		return o.got, rest, nil
	}
	return nil, "", fmt.Errorf("there is nothing at %q in %s", under, c.at)
}

// open fetches the pack. It must be what the list says.
func (o *offer) open(ctx context.Context) error {
	if !o.Valid {
		return fmt.Errorf("the entry is not valid: %q", o.Problems)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	s, err := o.fetch(ctx)
	if err != nil {
		return err
	}
	found, err := Survey(ctx, s, "")
	i := slices.IndexFunc(found, func(p Pack) bool { return p.Path == "" })
	switch {
	case err != nil:
	case i < 0:
		err = errors.New("there is no pack in it")
	case !found[i].Valid:
		err = fmt.Errorf("the pack has problems: %q", found[i].Problems)
	case found[i].Name != o.Name:
		err = fmt.Errorf("the pack says that its name is %q", found[i].Name)
	}
	if err != nil {
		return errors.Join(err, s.Close())
	}
	o.got = s
	return nil
}

// packs are those at and below a path, as the list has them.
func (c *catalog) packs(under string) []Pack {
	var all []Pack
	for _, o := range c.offers {
		if _, ok := below(o.Path, under); ok || o.Path == under {
			all = append(all, o.Pack)
		}
	}
	return all
}

func (c *catalog) Walk(ctx context.Context, under string, do func(stage.Entry, io.Reader) error) error {
	s, rest, err := c.find(ctx, under)
	if err != nil {
		return err
	}
	return s.Walk(ctx, rest, do)
}

// documents are files that were fetched one by one.
type documents struct {
	at, pin string
	files   []page // sorted by path
	said    Skill  // what their source says beside them
}

func (d *documents) about() Skill { return d.said }

type page struct {
	path string
	data []byte
}

func (d *documents) Resolved() string { return d.at }

func (d *documents) Pin() string { return d.pin }

// Signer is nobody.
func (d *documents) Signer() (*lock.Signature, error) { return nil, nil }

func (d *documents) Close() error { return nil }

func (d *documents) Walk(ctx context.Context, under string, do func(stage.Entry, io.Reader) error) error {
	for _, f := range d.files {
		rel, ok := below(f.path, under)
		if !ok {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := do(stage.Entry{Path: rel}, bytes.NewReader(f.data)); err != nil {
			return err
		}
	}
	return nil
}
