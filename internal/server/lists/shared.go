package lists

import (
	"sync"
	"weak"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
)

// Options are what a [Shared] is made of. Both functions are required.
type Options struct {
	// Tools returns the list of tools of a chat that enabled none.
	Tools func(*packs.Catalog) []mcp.Tool
	// Differ reports whether two Catalogs give different lists of prompts and of
	// resources.
	Differ func(before, now *packs.Catalog) (prompts, resources bool)
}

// A Shared remembers the lists of all chats that attached nothing of their own. There
// may be a thousand such chats, and an edit then costs no more than for one. It
// remembers the lists of the two newest Catalogs that were asked about, but does not
// keep a Catalog in memory. It is safe for concurrent use.
type Shared struct {
	opts Options

	mu                 sync.Mutex
	looks              int            // how often LookAgain was called
	prints             [2]sharedPrint // of two Catalogs, the newer one first
	before, now        weak.Pointer[packs.Catalog]
	prompts, resources bool // the result of Differ for those two
}

type sharedPrint struct {
	of    weak.Pointer[packs.Catalog]
	look  int    // after which look it was made
	tools string // see [Follower.digest]
}

// NewShared returns the Shared of a server.
func NewShared(o Options) *Shared { return &Shared{opts: o} }

// LookAgain is called after a look at the packs: their files may have changed.
func (s *Shared) LookAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
}

// digest returns the digest of the tools of a chat that enabled none. The digest is made
// at the first request for this Catalog after a look, and holds until the next look.
func (s *Shared) digest(catalog *packs.Catalog) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := weak.Make(catalog)
	for _, have := range s.prints {
		if have.of == of && have.look == s.looks {
			return have.tools
		}
	}
	if s.prints[0].of != of {
		s.prints[1] = s.prints[0]
	}
	s.prints[0] = sharedPrint{of, s.looks, string(offer.Print(s.opts.Tools(catalog)))}
	return s.prints[0].tools
}

// digestBefore returns the digest that digest last returned for an earlier Catalog.
func (s *Shared) digestBefore(catalog *packs.Catalog) (tools string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := weak.Make(catalog)
	for _, have := range s.prints {
		if have.of == of {
			return have.tools, true
		}
	}
	return "", false
}

// differ is Differ, and remembers what it returned for the last two Catalogs.
func (s *Shared) differ(before, now *packs.Catalog) (prompts, resources bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a, b := weak.Make(before), weak.Make(now); a != s.before || b != s.now {
		s.prompts, s.resources = s.opts.Differ(before, now)
		s.before, s.now = a, b
	}
	return s.prompts, s.resources
}
