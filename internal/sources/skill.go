package sources

import (
	"errors"
	"fmt"
)

// A Skill is knowledge from anywhere: a folder here, a rulebook or a pak. Its content
// is loaded when it is asked for.
type Skill struct {
	ID          string
	URI         string // a file's path, or what its provider calls it
	Description string // when to use it
	Source      SkillSource
	Content     *string // nil: only metadata
	Tags        []string
	CreatedAt   string // as the provider has it; "" for none
	UpdatedAt   string
}

// A SkillSource is where a skill is. The zero value is here.
type SkillSource struct {
	Provider   Provider
	Visibility string // of a rulebook: "PUBLIC" or "PRIVATE"
}

// A Provider offers skills over the network.
type Provider string

// The providers. Rulebooks are vetted by who offers them; anybody offers paks.
const (
	NoProvider       Provider = ""
	RulebookProvider Provider = "rulebook"
	PakProvider      Provider = "pak"
)

// IsLocal reports whether the skill is here.
func (s Skill) IsLocal() bool { return s.Source.Provider == NoProvider }

// IsRulebook reports whether the skill is a rulebook.
func (s Skill) IsRulebook() bool { return s.Source.Provider == RulebookProvider }

// IsPak reports whether the skill is a pak.
func (s Skill) IsPak() bool { return s.Source.Provider == PakProvider }

// Label is what a list of skills has before the name: "[local]", "[rulebook]" or
// "[pak]".
func (s Skill) Label() string {
	if s.IsLocal() {
		return "[local]"
	}
	return "[" + string(s.Source.Provider) + "]"
}

// A ListedRulebook is a rulebook in a list: all but its content.
type ListedRulebook struct {
	ID          string   `json:"id"`
	URI         string   `json:"uri"`
	Description string   `json:"description"`
	Visibility  string   `json:"visibility"`
	Tags        []string `json:"tags"`
	CreatedAt   string   `json:"created_at,omitempty"`
	UpdatedAt   string   `json:"updated_at,omitempty"`
}

// A Rulebook is one with its content.
type Rulebook struct {
	ListedRulebook
	Content string `json:"content"`
}

// Skill is the rulebook as a skill without content.
func (r ListedRulebook) Skill() Skill {
	return Skill{
		ID: r.ID, URI: r.URI, Description: r.Description, Tags: r.Tags, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
		Source: SkillSource{Provider: RulebookProvider, Visibility: r.Visibility},
	}
}

// Skill is the rulebook as a skill with content.
func (r Rulebook) Skill() Skill {
	s := r.ListedRulebook.Skill()
	s.Content = &r.Content
	return s
}

// Listed is the skill as a rulebook in a list. Only a rulebook can be one.
func (s Skill) Listed() (ListedRulebook, error) {
	if !s.IsRulebook() {
		return ListedRulebook{}, fmt.Errorf("%q is a %s skill, and no rulebook", s.ID, s.Label())
	}
	return ListedRulebook{ID: s.ID, URI: s.URI, Description: s.Description, Visibility: s.Source.Visibility, Tags: s.Tags, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt}, nil
}

// Rulebook is the skill as a rulebook. Its content must have been loaded.
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

// ErrNoContent says that only the metadata of a skill is here.
var ErrNoContent = errors.New("its content has not been loaded")
