package server

import (
	"sync"
	"weak"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
)

// toolsPrint returns a digest of the list of a chat's tools, by which lists are
// compared. For chats that attached, detached and enabled nothing of their own, it is
// made once after each look at the packs and shared. For any other chat it is made
// from the packs' files as they are now.
func (s *Server) toolsPrint(catalog *packs.Catalog, c *chat) string {
	if c.hasOwn() || c.hasEnabled() {
		return string(offer.Print(s.tools(catalog, c)))
	}
	return s.shared.tools(s, catalog)
}

// toolsPrintBefore is toolsPrint for an earlier Catalog. If a print of it is
// remembered, that print shows the packs' files as they were then; otherwise it is
// made from the files as they are now.
func (s *Server) toolsPrintBefore(catalog *packs.Catalog, c *chat) string {
	if !c.hasOwn() && !c.hasEnabled() {
		if have, ok := s.shared.toolsBefore(catalog); ok {
			return have
		}
	}
	return s.toolsPrint(catalog, c)
}

// listsDifferFor is listsDiffer for a chat.
func (s *Server) listsDifferFor(c *chat, before, now *packs.Catalog) (prompts, resources bool) {
	if c.hasOwn() {
		return s.offer.ListsDiffer(before, now)
	}
	return s.shared.listsDiffer(s, before, now)
}

// hasOwn reports whether a person attached or detached something in this chat alone,
// so that no other chat has the same Catalog.
func (c *chat) hasOwn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.own.Attached)+len(c.own.Detached) > 0
}

// hasEnabled reports whether the chat enabled tools, which may be gone by now.
func (c *chat) hasEnabled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.enabled) > 0
}

// sharedLists remembers the lists of all chats that attached nothing of their own.
// There may be a thousand such chats, and an edit then costs no more than for one. It
// remembers the lists of the two newest Catalogs that were asked about, but does not
// keep a Catalog in memory. The zero value is ready.
type sharedLists struct {
	mu                 sync.Mutex
	looks              int            // how often lookAgain was called
	prints             [2]sharedPrint // of two Catalogs, the newer one first
	before, now        weak.Pointer[packs.Catalog]
	prompts, resources bool // the result of listsDiffer for those two
}

type sharedPrint struct {
	of    weak.Pointer[packs.Catalog]
	look  int    // after which look it was made
	tools string // see toolsPrint
}

// lookAgain is called after a look at the packs: their files may have changed.
func (m *sharedLists) lookAgain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looks++
}

// tools returns the print of the tools of a chat that enabled none. The print is made
// at the first request for this Catalog after a look, and holds until the next look.
func (m *sharedLists) tools(s *Server, catalog *packs.Catalog) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := weak.Make(catalog)
	for _, have := range m.prints {
		if have.of == of && have.look == m.looks {
			return have.tools
		}
	}
	if m.prints[0].of != of {
		m.prints[1] = m.prints[0]
	}
	m.prints[0] = sharedPrint{of, m.looks, string(offer.Print(s.tools(catalog, nil)))}
	return m.prints[0].tools
}

// toolsBefore returns the print that tools last returned for an earlier Catalog.
func (m *sharedLists) toolsBefore(catalog *packs.Catalog) (tools string, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := weak.Make(catalog)
	for _, have := range m.prints {
		if have.of == of {
			return have.tools, true
		}
	}
	return "", false
}

func (m *sharedLists) listsDiffer(s *Server, before, now *packs.Catalog) (prompts, resources bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, b := weak.Make(before), weak.Make(now); a != m.before || b != m.now {
		m.prompts, m.resources = s.offer.ListsDiffer(before, now)
		m.before, m.now = a, b
	}
	return m.prompts, m.resources
}
