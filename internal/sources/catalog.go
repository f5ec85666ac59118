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

// A Catalog is a source that lists its packs and fetches each one separately. It is
// for one goroutine.
type Catalog struct {
	at     string
	pin    string // of the list
	offers []*Offer
}

// An Offer is one pack of a [Catalog].
type Offer struct {
	Pack
	Fetch func(context.Context) (Snapshot, error)
	got   Snapshot // the fetched pack, or nil
}

// NewCatalog returns the source at an address which offers these packs; pin is the digest
// of its list.
func NewCatalog(at, pin string, offers []*Offer) *Catalog { return &Catalog{at, pin, offers} }

func (c *Catalog) Resolved() string { return c.at }

// Pin is the digest of the list. [PinOf] has that of one pack.
func (c *Catalog) Pin() string { return c.pin }

// Signer returns nil: a list is only as trustworthy as its server.
func (c *Catalog) Signer() (*lock.Signature, error) { return nil, nil }

func (c *Catalog) Close() error {
	var err error
	for _, o := range c.offers {
		if o.got != nil {
			err = errors.Join(err, o.got.Close())
		}
	}
	return err
}

// PinOf returns the source's pin for one of its packs. Most sources have one pin for
// all.
func PinOf(ctx context.Context, s Snapshot, under string) (string, error) {
	one, err := At(ctx, s, under)
	if err != nil {
		return "", err
	}
	return one.Pin(), nil
}

// find fetches the pack that a path belongs to, once, and returns the rest of the
// path.
func (c *Catalog) find(ctx context.Context, under string) (Snapshot, string, error) {
	if under == "" {
		return nil, "", fmt.Errorf("%s is a list of packs: one of them has to be named", c.at)
	}
	for _, o := range c.offers {
		rest, ok := Below(under+"/", o.Path)
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

// open fetches the pack, which must match the list.
func (o *Offer) open(ctx context.Context) error {
	if !o.Valid {
		return fmt.Errorf("the entry is not valid: %q", o.Problems)
	}
	s, err := o.Fetch(ctx)
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

// packs returns the listed packs at and below a path.
func (c *Catalog) packs(under string) []Pack {
	var all []Pack
	for _, o := range c.offers {
		if _, ok := Below(o.Path, under); ok || o.Path == under {
			all = append(all, o.Pack)
		}
	}
	return all
}

func (c *Catalog) Walk(ctx context.Context, under string, do func(stage.Entry, io.Reader) error) error {
	s, rest, err := c.find(ctx, under)
	if err != nil {
		return err
	}
	return s.Walk(ctx, rest, do)
}

// Documents are files that were fetched separately.
type Documents struct {
	At, Fixed string // see [Snapshot]: Resolved and Pin
	Files     []Page // sorted by path
	Said      Skill  // the source's metadata
}

func (d *Documents) About() Skill { return d.Said }

// A Page is one file of Documents.
type Page struct {
	Path string
	Data []byte
}

func (d *Documents) Resolved() string { return d.At }

func (d *Documents) Pin() string { return d.Fixed }

// Signer returns nil.
func (d *Documents) Signer() (*lock.Signature, error) { return nil, nil }

func (d *Documents) Close() error { return nil }

func (d *Documents) Walk(ctx context.Context, under string, do func(stage.Entry, io.Reader) error) error {
	for _, f := range d.Files {
		rel, ok := Below(f.Path, under)
		if !ok {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := do(stage.Entry{Path: rel}, bytes.NewReader(f.Data)); err != nil {
			return err
		}
	}
	return nil
}
