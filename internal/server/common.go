package server

import (
	"sync"
	"weak"

	"github.com/packs-mcp/packs-mcp/internal/packs"
)

// toolsPrint tells one list of a chat's tools from another, as the packs' files are
// since the last look at the packs. Where the chat has tools of its own, the whole
// list is of one look at the files of packs; see [Server.fill].
func (s *Server) toolsPrint(catalog *packs.Catalog, c *chat) string {
	if c.hasOwn() || c.hasEnabled() {
		return string(printOf(s.tools(catalog, c)))
	}
	return s.common.tools(s, catalog)
}

// toolsPrintBefore is toolsPrint of a Catalog of before, as the packs' files were then
// if somebody asked.
func (s *Server) toolsPrintBefore(catalog *packs.Catalog, c *chat) string {
	if !c.hasOwn() && !c.hasEnabled() {
		if have, ok := s.common.toolsBefore(catalog); ok {
			return have
		}
	}
	return s.toolsPrint(catalog, c)
}

// listsDifferFor is listsDiffer for a chat.
func (s *Server) listsDifferFor(c *chat, before, now *packs.Catalog) (prompts, resources bool) {
	if c.hasOwn() {
		return s.listsDiffer(before, now)
	}
	return s.common.listsDiffer(s, before, now)
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

// common is what all chats that have attached nothing of their own have in common:
// there may be a thousand, and an edit costs once what it would cost in each. It is
// of the newest Catalogs that somebody asked about, and keeps none of them. The zero
// value is ready.
type common struct {
	mu                 sync.Mutex
	looks              int            // how often lookAgain was called
	prints             [2]commonPrint // of two Catalogs, the newer one first
	before, now        weak.Pointer[packs.Catalog]
	prompts, resources bool // what listsDiffer says of those two
}

type commonPrint struct {
	of    weak.Pointer[packs.Catalog]
	look  int    // after which it was made
	tools string // see toolsPrint
}

// lookAgain says that the packs' files may be others by now.
func (m *common) lookAgain() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looks++
}

// tools is the print of the tools of a chat that enabled none: of the packs' files as
// they are, or as they were when somebody asked first about this Catalog since the
// last look.
func (m *common) tools(s *Server, catalog *packs.Catalog) string {
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
	m.prints[0] = commonPrint{of, m.looks, string(printOf(s.tools(catalog, nil)))}
	return m.prints[0].tools
}

// toolsBefore is the print that tools returned last for a Catalog of before.
func (m *common) toolsBefore(catalog *packs.Catalog) (tools string, ok bool) {
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

func (m *common) listsDiffer(s *Server, before, now *packs.Catalog) (prompts, resources bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, b := weak.Make(before), weak.Make(now); a != m.before || b != m.now {
		m.prompts, m.resources = s.listsDiffer(before, now)
		m.before, m.now = a, b
	}
	return m.prompts, m.resources
}
