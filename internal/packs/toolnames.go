package packs

import (
	"context"
	"iter"
	"strings"
)

// maxNamed is the largest file, in bytes, that is read for names alone.
const maxNamed = 256 << 10

// minNamed is how many bytes a pack counts for, at least, when its files are read for
// names: to open them takes as long as to read so many.
const minNamed = 4 << 10

// Name reads the names of the tools that the files of packs declare, for
// [ToolFiles.Names], unless they were read since the files changed. It compiles
// nothing, and does not look into entry documents. When it has read more than max
// bytes, of each pack minNamed at least, or ctx ends, it leaves the rest out. It reports
// whether it read something.
func (f *ToolFiles) Name(ctx context.Context, packs iter.Seq[*Pack], max int) bool {
	type span struct {
		pack     *Pack
		from, to int
	}
	var text []byte
	var read []span
	left := max
	for p := range packs {
		if left <= 0 || ctx.Err() != nil {
			break
		}
		if len(p.ToolFiles) == 0 || f.isNamed(p) {
			continue
		}
		from, least := len(text), left-minNamed
		text = f.appendNames(text, p, &left)
		left = min(left, least)
		read = append(read, span{p, from, len(text)})
	}
	// In one piece: each on its own would keep a page of what is thrown away in
	// memory.
	all := string(text)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range read {
		f.names[s.pack.Dir] = named{s.pack.state, all[s.from:s.to]}
	}
	return len(read) > 0
}

func (f *ToolFiles) isNamed(p *Pack) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	have, ok := f.names[p.Dir]
	return ok && have.state == p.state
}

// appendNames appends the names of a pack's tools, a line for each, and takes what
// it read from left. What cannot be read has none.
func (f *ToolFiles) appendNames(text []byte, p *Pack, left *int) []byte {
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
		for _, name := range f.loader.Names(file, data) {
			if names++; names <= f.count {
				text = append(append(text, name...), '\n')
			}
		}
	}
	return text
}

// Names returns the names of a pack's tools, those that its mode hides too, as far
// as they are known: of its files, as Name read them since they changed, otherwise
// as Load found them, whenever that was; of its entry document, as Load found them.
// It looks at no file.
func (f *ToolFiles) Names(p *Pack) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	now, ok := f.names[p.Dir]
	fresh := ok && now.state == p.state
	if fresh {
		for name := range strings.Lines(now.lines) {
			names = append(names, strings.TrimSuffix(name, "\n"))
		}
	}
	if set := f.known[p.Dir].set; set != nil {
		for _, t := range set.Tools {
			if !fresh || t.File == p.Entry && !p.Loose {
				names = append(names, t.Name)
			}
		}
	}
	return names
}
