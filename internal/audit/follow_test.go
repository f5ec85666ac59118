package audit

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// followed collects what a follower yields until it has want lines, and then
// stops it.
func followed(t *testing.T, path string, act func(caught int), want int) (lines []Line, problems []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	caught := 0
	for line, err := range follow(ctx, path, time.Millisecond) {
		switch e, ok := errors.AsType[*LineError](err); {
		case ok:
			problems = append(problems, e.Err.Error())
		case err != nil:
			t.Fatalf("follow() = %v, want no error", err)
		case line.File == "":
			caught++
			act(caught)
		default:
			if lines = append(lines, line); len(lines) == want {
				return lines, problems
			}
		}
	}
	t.Fatalf("follow() gave %d lines, want %d", len(lines), want)
	return nil, nil
}

func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	opts := testOptions(t)
	opts.MaxSize = 1000 // four lines
	var l *Log
	lines, problems := followed(t, path, func(caught int) {
		if l == nil { // the log does not exist when following begins
			l = openLog(t, path, opts)
		}
		if caught%3 == 0 { // every few checks, more lines than fit in one file
			mustAppend(t, l, EventRunStart, EventRunEnd, EventDecision, EventRunStart, EventRunEnd, EventDecision, EventAttach)
		}
	}, 40)
	if len(problems) > 0 {
		t.Errorf("follow() found problems %q, want none", problems)
	}
	for i, line := range lines {
		if line.Entry.Seq != int64(i+1) || line.Number < 1 || line.Number > 4 {
			t.Fatalf("line %d is entry %d, line %d of %q", i, line.Entry.Seq, line.Number, line.File)
		}
	}
}

// While others write and rename as fast as they can, no line is missed or
// repeated.
func TestFollowRaces(t *testing.T) {
	const writers, each = 4, 150
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	opts := testOptions(t)
	opts.MaxSize = 600
	var wg sync.WaitGroup
	defer wg.Wait()
	for range writers {
		l := openLog(t, path, opts)
		wg.Go(func() {
			for range each {
				if err := l.AppendLazy(Entry{Event: EventRunEnd}); err != nil {
					t.Errorf("AppendLazy() = %v, want no error", err)
				}
			}
		})
	}
	lines, problems := followed(t, path, func(int) {}, writers*each)
	if len(problems) > 0 {
		t.Errorf("follow() found problems %q, want none", problems)
	}
	for i, line := range lines {
		if line.Entry.Seq != int64(i+1) {
			t.Fatalf("line %d is entry %d", i, line.Entry.Seq)
		}
	}
}

func TestFollowDamage(t *testing.T) {
	path := newLog(t, 3)
	good := read(t, path)
	half := bytes.LastIndexByte(good[:len(good)-1], '\n') + 20
	step := 0
	lines, problems := followed(t, path, func(int) {
		switch step++; step {
		case 1: // a line in two halves is one line
			appendTo(t, path, good[half:half+5])
		case 2:
			appendTo(t, path, []byte("\n"))
		case 3:
			write(t, path, good[:half])
		case 4:
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		case 6:
			write(t, path, good)
		}
	}, 3+2+3)
	if want := "invalid character, cut off, removed"; len(problems) != 3 || !strings.HasPrefix(problems[0], "invalid character") ||
		!strings.Contains(problems[1], "cut off") || !strings.Contains(problems[2], "removed") {
		t.Errorf("follow() found problems %q, want %s", problems, want)
	}
	if got := lines[7].Entry.Seq; got != 3 {
		t.Errorf("the last line is entry %d, want 3", got)
	}
}

func appendTo(t *testing.T, path string, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
