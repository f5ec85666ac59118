package sources

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
)

// A Skill is knowledge from anywhere: a folder on this machine, a rulebook or a pak.
// Its content is loaded on demand.
type Skill struct {
	ID          string
	URI         string // a file's path, or the provider's identifier
	Description string // when to use it
	Source      SkillSource
	Content     *string // nil: only metadata
	Tags        []string
	CreatedAt   string // as the provider has it; "" for none
	UpdatedAt   string
	Version     string // as the provider has it, of an artifact; "" for none
}

// A SkillSource says where a skill is. The zero value is this machine.
type SkillSource struct {
	Provider   Provider
	Visibility string // of a rulebook: "PUBLIC" or "PRIVATE"
}

// A Provider offers skills over the network.
type Provider string

// The providers. Rulebooks are vetted by their provider; anyone can offer paks.
const (
	NoProvider       Provider = ""
	RulebookProvider Provider = "rulebook"
	PakProvider      Provider = "pak"
)

// IsLocal reports whether the skill is on this machine.
func (s Skill) IsLocal() bool { return s.Source.Provider == NoProvider }

// IsRulebook reports whether the skill is a rulebook.
func (s Skill) IsRulebook() bool { return s.Source.Provider == RulebookProvider }

// IsPak reports whether the skill is a pak.
func (s Skill) IsPak() bool { return s.Source.Provider == PakProvider }

// ProviderOf returns the provider for an address: none for this machine, the rulebook
// server for rulebooks, and paks for the rest.
func ProviderOf(source string) Provider {
	r, err := address.Parse(source)
	switch {
	case err != nil:
		return PakProvider // nobody vouches for it
	case r.Kind == address.Stakpak:
		return RulebookProvider
	case r.Kind == address.Folder, r.Kind == address.Archive, r.Kind == address.Git && strings.HasPrefix(r.At, "file://"):
		return NoProvider
	}
	return PakProvider
}

// About fills in a source's metadata for one of its packs: who may see it, when it was
// made, and its version. Most sources have little.
func About(ctx context.Context, s Snapshot, under string, e *lock.Entry) error {
	if c, ok := s.(*Catalog); ok {
		var err error
		if s, _, err = c.find(ctx, under); err != nil {
			return err
		}
	}
	var about Skill
	if a, ok := s.(interface{ About() Skill }); ok {
		about = a.About()
	}
	e.CreatedAt, e.UpdatedAt, e.Visibility, e.Version = date(about.CreatedAt), date(about.UpdatedAt), about.Source.Visibility, about.Version
	if !lock.ValidVisibility(e.Visibility) {
		e.Visibility = ""
	}
	return nil
}

// date returns a time in a uniform format, or "" if text is not a time.
func date(text string) string {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339)
}

// Label returns the text before the name in a list of skills: "[local]", "[rulebook]"
// or "[pak]".
func (s Skill) Label() string { return s.Source.Provider.Label() }

// Label returns the label of the provider's skills.
func (p Provider) Label() string {
	if p == NoProvider {
		return "[local]"
	}
	return "[" + string(p) + "]"
}

// A ListedRulebook is a rulebook in a list, without its content.
type ListedRulebook struct {
	ID          string   `json:"id"`
	URI         string   `json:"uri"`
	Description string   `json:"description"`
	Visibility  string   `json:"visibility"`
	Tags        []string `json:"tags"`
	CreatedAt   string   `json:"created_at,omitempty"`
	UpdatedAt   string   `json:"updated_at,omitempty"`
}

// A Rulebook is a rulebook with its content.
type Rulebook struct {
	ListedRulebook
	Content string `json:"content"`
}

// Skill returns the rulebook as a skill without content.
func (r ListedRulebook) Skill() Skill {
	return Skill{
		ID: r.ID, URI: r.URI, Description: r.Description, Tags: r.Tags, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		Source: SkillSource{Provider: RulebookProvider, Visibility: r.Visibility},
	}
}

// Skill returns the rulebook as a skill with content.
func (r Rulebook) Skill() Skill {
	s := r.ListedRulebook.Skill()
	s.Content = &r.Content
	return s
}

// Listed returns the skill as a rulebook in a list. The skill must be a rulebook.
func (s Skill) Listed() (ListedRulebook, error) {
	if !s.IsRulebook() {
		return ListedRulebook{}, fmt.Errorf("%q is a %s skill, and no rulebook", s.ID, s.Label())
	}
	return ListedRulebook{ID: s.ID, URI: s.URI, Description: s.Description, Visibility: s.Source.Visibility, Tags: s.Tags, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt}, nil
}

// Rulebook returns the skill as a rulebook. Its content must be loaded.
func (s Skill) Rulebook() (Rulebook, error) {
	l, err := s.Listed()
	if err != nil {
		return Rulebook{}, err
	}
	if s.Content == nil {
		return Rulebook{}, fmt.Errorf("%q: %w", s.ID, ErrNoContent)
	}
	return Rulebook{l, *s.Content}, nil
}

// ErrNoContent says that only the metadata of a skill is loaded.
var ErrNoContent = errors.New("its content has not been loaded")
