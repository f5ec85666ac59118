package store

import "strings"

// A Feed reports which entries of a mirror have changed, to a caller that derives data
// from them. Several changes of one entry count as one. It lasts as long as its mirror.
type Feed struct {
	mirror *Mirror
	prefix string
	wake   chan struct{}

	keys map[string]bool // not taken yet; the mirror's mu guards it
}

// Feed returns a feed of the entries whose keys have a prefix. All existing entries
// count as changed.
func (m *Mirror) Feed(prefix string) *Feed {
	f := &Feed{mirror: m, prefix: prefix, wake: make(chan struct{}, 1), keys: make(map[string]bool)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.feeds = append(m.feeds, f)
	for key := range m.entries {
		f.note(key)
	}
	return f
}

// Take returns the keys of the entries that changed since the last call. After
// [Mirror.Sync], these include all earlier changes by any replica.
func (f *Feed) Take() []string {
	f.mirror.mu.Lock()
	defer f.mirror.mu.Unlock()
	if len(f.keys) == 0 {
		return nil
	}
	all := make([]string, 0, len(f.keys))
	for key := range f.keys {
		all = append(all, key)
	}
	clear(f.keys)
	return all
}

// Wake has a value when there is something to take, and sometimes when there is not.
func (f *Feed) Wake() <-chan struct{} { return f.wake }

// note records a change. The caller holds the mirror's mu.
func (f *Feed) note(key string) {
	if !strings.HasPrefix(key, f.prefix) {
		return
	}
	f.keys[key] = true
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// changedKey tells the feeds of a change. The caller holds mu.
func (m *Mirror) changedKey(key string) {
	for _, f := range m.feeds {
		f.note(key)
	}
}

// Entry returns the mirror's copy of an entry, and reports whether there is one.
func (m *Mirror) Entry(key string) (Entry, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.entries[key]
	return e, ok
}
