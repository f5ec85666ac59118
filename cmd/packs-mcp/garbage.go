package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// room is what the heap of a program that starts may grow to, in bytes, before
// garbage is collected; Go's own is its smallest.
const (
	room    = 16 << 20
	goOwn   = 4 << 20
	percent = 100 * room / goOwn // of Go's
)

// starting is how long a program starts, at most. A server has had time to be idle
// by then, and gives back what it does not need.
const starting = time.Second

// collectLater has garbage collections wait, while the program starts, until the
// heap has some room: the smallest of them takes as long as a sixth of a start, and
// most starts then need none. A heap that outgrows the room is collected as it
// always is, so that the memory of a program with much to do is what it would be; a
// large one is collected more often, see growthOfLarge. What a user wants, in GOGC,
// stands.
func collectLater(gogc string, began time.Time) {
	if gogc == "" {
		afterCollection(began, debug.SetGCPercent(percent))
	}
}

// afterCollection sets how far the heap may grow after the next collection, and
// those after it: with more room until the start is over, and with less when the
// heap is large.
func afterCollection(began time.Time, usual int) {
	// It is found to be gone by the next collection.
	next := new([64]byte)
	runtime.AddCleanup(next, func(began time.Time) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		now := growthOfLarge(live[0].Value.Uint64(), usual)
		if time.Since(began) <= starting {
			now = growth(live[0].Value.Uint64(), now)
		}
		debug.SetGCPercent(now)
		afterCollection(began, usual)
	}, began)
}

// growth is by how many percent a heap of so many bytes may grow to have room, or
// by what is usual when that is more. It is also what Go's own least is
// multiplied by.
func growth(live uint64, usual int) int {
	if live >= room {
		return usual
	}
	return max(usual, min(percent, int(100*(room-live)/max(live, 1))))
}

// A heap of many thousands of packs hardly changes, and looking at them again makes as
// much garbage as there is room for: it may grow by spare bytes, or by leastGrowth
// percent when that is more.
const (
	spare       = 32 << 20
	leastGrowth = 25
)

// growthOfLarge is by how many percent a heap of so many bytes may grow: by what is
// usual, unless it is large.
func growthOfLarge(live uint64, usual int) int {
	if live <= spare {
		return usual
	}
	return min(usual, max(leastGrowth, int(100*spare/live)))
}

// muchMemory is from how many bytes of the heap on it pays to give back what is
// not used before the first answer: of some thousand packs.
const muchMemory = 16 << 20

// giveBackMuch returns what is not used to the system, if there may be much of it:
// reading packs takes several times the memory that they keep.
func giveBackMuch() {
	// Not runtime.ReadMemStats, which stops everything for half a millisecond.
	held := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(held)
	var sum uint64
	for _, s := range held {
		sum += s.Value.Uint64()
	}
	if sum >= muchMemory {
		debug.FreeOSMemory()
	}
}
