package finder

import (
	"context"
	"encoding/binary"
	"weak"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packed"
	"github.com/packs-mcp/packs-mcp/internal/packs/search"
)

// A Store keeps the index from one start to the next; [packs.Library] is one.
type Store interface {
	// LoadWords returns what SaveWords wrote last, perhaps about other packs.
	LoadWords() (string, error)
	SaveWords(data []byte) error
}

// Prepare makes the index for the first query, and stores it for the next start. Of a
// stored one, it takes what was made of the same texts: making it all takes five times
// as long. It does nothing if tools would have to be compiled for the index. An error
// means that it was not stored.
func (f *Finder) Prepare(ctx context.Context, store Store) error {
	now := f.catalog(ctx)
	if len(now.Attached()) <= MaxLoaded {
		return nil
	}
	if data := f.prepare(now, store); data != nil {
		return store.SaveWords(data)
	}
	return nil
}

// prepare makes the index, and returns what to store; nil: nothing.
func (f *Finder) prepare(now *packs.Catalog, store Store) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.index != nil {
		return nil // for a query
	}
	if text, err := store.LoadWords(); err == nil { // otherwise it is made anew
		f.load(text)
	}
	stored := f.index
	f.of = weak.Make(now)
	// Which other names are known by now depends on who was faster, and the next start
	// would find other texts than are stored. Ready adds them.
	f.take(documents(now, namedByFiles))
	if f.index == stored {
		return nil
	}
	return f.stored()
}

// stored returns the index as load takes it. The caller holds mu.
func (f *Finder) stored() []byte {
	data := packed.AppendTexts(nil, f.ids)
	for _, mark := range f.marks {
		data = binary.LittleEndian.AppendUint64(data, mark)
	}
	return f.index.Append(data)
}

// load takes a stored index, unless the text is damaged. The caller holds mu.
func (f *Finder) load(text string) {
	from := packed.From(text)
	ids := from.Texts()
	marks := make([]uint64, len(ids))
	for i := range marks {
		marks[i] = from.Fixed(8)
	}
	index, err := search.Read(&from)
	if err != nil || !from.IsDone() || index.Len() != len(ids) {
		return
	}
	f.index, f.ids, f.marks = index, ids, marks
}
