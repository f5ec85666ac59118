package server

import (
	"sync"
	"weak"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
)

// A toolsMark tells one list of tools from another. The zero value is of none.
type toolsMark struct {
	base string // of the tools that are always there, whose descriptions name packs
	own  string // of those of enabled packs; empty: there are none
}

// markOf is the mark of a list that begins with so many base tools.
func markOf(list []mcp.Tool, base int) toolsMark {
	m := toolsMark{base: string(printOf(list[:base]))}
	if len(list) > base {
		m.own = string(printOf(list[base:]))
	}
	return m
}

// toolsMark is the mark of a chat's tools with a Catalog. Where a chat has tools of its
// own, the whole list is of one look at the files of packs; see [Server.fill].
func (s *Server) toolsMark(catalog *packs.Catalog, c *chat) toolsMark {
	if c.hasOwn() || c.hasEnabled() {
		return markOf(s.tools(catalog, c), len(s.base))
	}
	return toolsMark{base: s.common.base(s, catalog)}
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
	marks              [2]commonMark // the newer one first
	before, now        weak.Pointer[packs.Catalog]
	prompts, resources bool // what listsDiffer says of those two
}

type commonMark struct {
	of   weak.Pointer[packs.Catalog]
	base string // see toolsMark
}

// base is the mark of the base tools with a Catalog: of its packs' files as they are,
// or as they were when somebody asked first.
func (m *common) base(s *Server, catalog *packs.Catalog) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := weak.Make(catalog)
	for _, have := range m.marks {
		if have.of == of {
			return have.base
		}
	}
	m.marks[0], m.marks[1] = commonMark{of, string(printOf(s.tools(catalog, nil)))}, m.marks[0]
	return m.marks[0].base
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
