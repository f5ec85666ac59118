package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// room is how far the heap of a starting program may grow, in bytes, before
// garbage is collected; goOwn is Go's minimum.
const (
	room    = 16 << 20
	goOwn   = 4 << 20
	percent = 100 * room / goOwn // of Go's
)

// starting is the longest that a program counts as starting. By then a server
// has had time to be idle, and returns memory that it does not need.
const starting = time.Second

// collectLater delays garbage collection while the program starts, until the
// heap has grown to room: the smallest collection takes a sixth of a start, and
// most starts then need none. Later, a small heap may grow by room, see
// growthOfBusy, and a large one is collected more often, see growthOfLarge. It does nothing if the user set GOGC.
func collectLater(gogc string, began time.Time) {
	if gogc == "" {
		afterCollection(began, debug.SetGCPercent(percent))
	}
}

// afterCollection sets how far the heap may grow after the next and later
// collections: further until the start is over, and less far if the heap is
// large.
func afterCollection(began time.Time, usual int) {
	// The next collection finds it unreachable.
	next := new([64]byte)
	runtime.AddCleanup(next, func(began time.Time) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		size := live[0].Value.Uint64()
		now := growthOfLarge(size, usual)
		if time.Since(began) <= starting {
			now = growth(size, now)
		} else {
			now = growthOfBusy(size, now)
		}
		debug.SetGCPercent(now)
		afterCollection(began, usual)
	}, began)
}

// growth returns by how many percent a heap of live bytes may grow to reach
// room, or usual if that is more. Go's minimum heap is multiplied by it too.
func growth(live uint64, usual int) int {
	if live >= room {
		return usual
	}
	return max(usual, min(percent, int(100*(room-live)/max(live, 1))))
}

// growthOfBusy returns by how many percent a heap of live bytes may grow once the
// program has started: by room, or usual if that is more. A small heap is collected
// after few calls otherwise, which takes a sixth of their time. An idle server
// gives the room back.
func growthOfBusy(live uint64, usual int) int {
	return max(usual, min(percent, int(100*room/max(live, 1))))
}

// A heap of many thousands of packs hardly changes, but a scan creates as much
// garbage as there is room for. So it may grow only by spare bytes, or by
// leastGrowth percent if that is more.
const (
	spare       = 32 << 20
	leastGrowth = 25
)

// growthOfLarge returns by how many percent a heap of live bytes may grow:
// usual, unless the heap is large.
func growthOfLarge(live uint64, usual int) int {
	if live <= spare {
		return usual
	}
	return min(usual, max(leastGrowth, int(100*spare/live)))
}
