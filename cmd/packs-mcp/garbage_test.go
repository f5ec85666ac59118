package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"
)

// testInitialisation tests that there is no garbage collection before main. Go
// initialises all packages before collectLater is called, and starts its first
// collection when the heap has 2.8 MiB, so the packages must use less than that.
func testInitialisation(t *testing.T, program string) {
	cmd := exec.Command(program, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("packs-mcp version: %v\n%s", err, text)
	}
	sum, most := 0, ""
	for line := range strings.Lines(string(text)) {
		var name string
		var at, took float64
		var size int
		if n, _ := fmt.Sscanf(line, "init %s @%f ms, %f ms clock, %d bytes", &name, &at, &took, &size); n == 4 {
			if sum += size; size > 50<<10 {
				most += line
			}
		}
	}
	if sum < 1<<20 || sum > 2700<<10 {
		t.Errorf("initialising packages allocates %d KiB, want at most 2700; most of it:\n%s", sum>>10, most)
	}
}

func TestGrowthOfTheHeap(t *testing.T) {
	for _, test := range []struct {
		live  uint64
		usual int
		want  int
	}{
		{live: 0, usual: 100, want: 400},
		{live: 1 << 20, usual: 100, want: 400}, // Go's minimum grows with it, up to room
		{live: 4 << 20, usual: 100, want: 300},
		{live: 8 << 20, usual: 100, want: 100},
		{live: 12 << 20, usual: 100, want: 100},
		{live: 1 << 40, usual: 100, want: 100},
		{live: 8 << 20, usual: 50, want: 100},
		{live: 1 << 20, usual: 1000, want: 1000},
	} {
		if got := growth(test.live, test.usual); got != test.want {
			t.Errorf("growth(%d, %d) = %d, want %d", test.live, test.usual, got, test.want)
		}
	}
}

func TestGrowthOfALargeHeap(t *testing.T) {
	for _, test := range []struct {
		live        uint64
		usual, want int
	}{
		{live: 1 << 20, usual: 100, want: 100},
		{live: 32 << 20, usual: 100, want: 100},
		{live: 64 << 20, usual: 100, want: 50},
		{live: 1 << 30, usual: 100, want: 25},
		{live: 1 << 30, usual: 10, want: 10},
	} {
		if got := growthOfLarge(test.live, test.usual); got != test.want {
			t.Errorf("growthOfLarge(%d, %d) = %d, want %d", test.live, test.usual, got, test.want)
		}
	}
}

func TestGrowthOfABusyHeap(t *testing.T) {
	for _, test := range []struct {
		live        uint64
		usual, want int
	}{
		{live: 0, usual: 100, want: 400},
		{live: 1 << 20, usual: 100, want: 400},
		{live: 8 << 20, usual: 100, want: 200},
		{live: 16 << 20, usual: 100, want: 100},
		{live: 64 << 20, usual: 50, want: 50},
	} {
		if got := growthOfBusy(test.live, test.usual); got != test.want {
			t.Errorf("growthOfBusy(%d, %d) = %d, want %d", test.live, test.usual, got, test.want)
		}
	}
}

func TestCollectionsWaitAtTheStart(t *testing.T) {
	large := make([]byte, room+4<<20) // so that it may grow as usual but is not large
	defer runtime.KeepAlive(large)
	own := debug.SetGCPercent(123)
	defer debug.SetGCPercent(own)
	now := func() int {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return int(s[0].Value.Uint64())
	}
	if collectLater("123", time.Now()); now() != 123 {
		t.Errorf("with GOGC=123, the heap may grow by %d percent", now())
	}
	if collectLater("", time.Now().Add(-2*starting)); now() != percent {
		t.Errorf("the heap may grow by %d percent at first, want %d", now(), percent)
	}
	// The start is over, so the next collection is the last that was delayed. When it
	// happens depends on what the tests before this one left.
	want := func() int {
		s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(s)
		return growthOfBusy(s[0].Value.Uint64(), growthOfLarge(s[0].Value.Uint64(), 123))
	}
	for end := time.Now().Add(20 * time.Second); now() != want(); runtime.GC() {
		if time.Now().After(end) {
			t.Fatalf("after the start, the heap may still grow by %d percent, want %d", now(), want())
		}
	}
}
