package toolfiles

import (
	"context"
	"iter"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/charset"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/markdown"
)

// maxNamed is the largest file, in bytes, that is read for names alone.
const maxNamed = 256 << 10

// minNamed is how many bytes a pack counts for, at least, when its files are read for
// names: opening them takes as long as reading that many.
const minNamed = 4 << 10

// Name reads the names of the tools that packs declare, in files and in entry documents,
// for [Files.Names], unless they were read since these changed. It compiles nothing. It
// stops after more than max bytes, counting at least minNamed for each pack, or when ctx
// ends. It reports whether it read anything.
func (f *Files) Name(ctx context.Context, of iter.Seq[*packs.Pack], max int) bool {
	type span struct {
		pack     *packs.Pack
		from, to int
	}
	var text []byte
	var read []span
	left := max
	for p := range of {
		if left <= 0 || ctx.Err() != nil {
			break
		}
		if f.isNamed(p) {
			continue
		}
		from, least := len(text), left-minNamed
		text = f.appendNames(text, p, &left)
		left = min(left, least)
		read = append(read, span{p, from, len(text)})
	}
	// One string for all: a string for each pack would keep a page of discarded bytes
	// in memory.
	all := string(text)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range read {
		f.names[s.pack.Dir] = named{s.pack.State(), all[s.from:s.to]}
	}
	return len(read) > 0
}

func (f *Files) isNamed(p *packs.Pack) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	have, ok := f.names[p.Dir]
	return ok && have.state == p.State()
}

// appendNames appends the names of a pack's tools, a line for each, and subtracts what it
// read from left. It skips files that cannot be read.
func (f *Files) appendNames(text []byte, p *packs.Pack, left *int) []byte {
	dir, err := p.OpenDir()
	if err != nil {
		return text
	}
	defer dir.Close()
	here := *left - maxSources*maxNamed
	names := 0
	for _, file := range p.ToolFiles[:min(len(p.ToolFiles), f.count)] {
		if *left < here {
			break
		}
		data, err := dir.ReadAll(file, min(f.size, maxNamed))
		if err != nil {
			continue
		}
		*left -= len(data)
		for _, name := range formats.Names(file, data, f.limits) {
			if names++; names <= f.count {
				text = append(append(text, name...), '\n')
			}
		}
	}
	if p.Loose || p.Entry == "" || *left < here {
		return text
	}
	data, err := dir.ReadAll(p.Entry, min(p.Limits().EntryDoc, maxNamed))
	if err != nil {
		return text
	}
	*left -= len(data)
	if charset.Of(data) != charset.UTF8 {
		return text // its tools are not read
	}
	body := 0
	if block, state := frontmatter.Find(data); state == frontmatter.Closed {
		body = block.Body
	}
	for _, name := range markdown.Names(data[body:]) {
		if names++; names <= f.count {
			text = append(append(text, name...), '\n')
		}
	}
	return text
}

// Names returns the names of a pack's tools, including those that its mode hides, as far
// as they are known, and looks at no file. It prefers the names that Name read since the
// pack's files changed, then those of the last Load, then older ones of Name.
func (f *Files) Names(p *packs.Pack) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	now, ok := f.names[p.Dir]
	set := f.known[p.Dir].set
	if ok && (now.state == p.State() || set == nil) {
		for name := range strings.Lines(now.lines) {
			names = append(names, strings.TrimSuffix(name, "\n"))
		}
		return names
	}
	if set != nil {
		for _, t := range set.Tools {
			names = append(names, t.Name)
		}
	}
	return names
}
