package seatbelt

import "slices"

// A proc is a process as the system lists it.
type proc struct {
	pid, ppid, pgid, sid int
	uid                  int
	start                int64 // distinguishes it from others with the same pid
	zombie               bool  // it has ended and was not reaped
}

// A tree is what is known about one program and the processes that it started.
//
// A process belongs to it if its parent, process group or session does. A process that
// had none of these when it was first seen is not found: its parent was never seen and
// has ended.
type tree struct {
	root    int
	since   int64 // when root started; 0: not seen yet
	exclude []int // processes, groups and sessions outside the tree

	members  map[int]int64 // :: pid → start
	groups   map[int]bool  // of members; still in use
	sessions map[int]bool  // likewise
}

// newTree returns the tree of the program root, which leads a group and a
// session of its own.
func newTree(root int, exclude ...int) *tree {
	return &tree{
		root:     root,
		exclude:  append(exclude, 0, 1),
		members:  map[int]int64{},
		groups:   map[int]bool{root: true},
		sessions: map[int]bool{root: true},
	}
}

// see updates the tree from a list of all processes, and returns those of the tree. A
// process for which also, if it is not nil, returns true belongs to it too.
func (t *tree) see(all []proc, also func(proc) bool) []proc {
	t.forget(all)
	var found []proc
	for again := true; again; {
		again = false
		for _, p := range all {
			if _, known := t.members[p.pid]; known || !t.belongs(p) && (also == nil || !t.may(p) || !also(p)) {
				continue
			}
			again = true
			t.members[p.pid] = p.start
			if p.pid == t.root {
				t.since = p.start
			}
			if !slices.Contains(t.exclude, p.pgid) {
				t.groups[p.pgid] = true
			}
			if !slices.Contains(t.exclude, p.sid) {
				t.sessions[p.sid] = true
			}
		}
		also = nil // its answer does not change
	}
	for _, p := range all {
		if _, ok := t.members[p.pid]; ok {
			found = append(found, p)
		}
	}
	return found
}

// forget drops processes that are gone, so that a process that reuses a pid does not
// count as part of the tree.
func (t *tree) forget(all []proc) {
	starts, groups, sessions := map[int]int64{}, map[int]bool{}, map[int]bool{}
	for _, p := range all {
		starts[p.pid], groups[p.pgid], sessions[p.sid] = p.start, true, true
	}
	for pid, start := range t.members {
		if now, ok := starts[pid]; !ok || now != start {
			delete(t.members, pid)
		}
	}
	for id := range t.groups {
		if !groups[id] {
			delete(t.groups, id)
		}
	}
	for id := range t.sessions {
		if !sessions[id] {
			delete(t.sessions, id)
		}
	}
}

func (t *tree) belongs(p proc) bool {
	if !t.may(p) {
		return false
	}
	_, child := t.members[p.ppid]
	return p.pid == t.root || child || t.groups[p.pgid] || t.sessions[p.sid]
}

// may reports whether p can belong to the tree.
func (t *tree) may(p proc) bool {
	return p.start >= t.since && !slices.Contains(t.exclude, p.pid)
}
