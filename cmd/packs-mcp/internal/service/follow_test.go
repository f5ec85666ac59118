package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"
)

// A scriptedIndex behaves as scripted when it is written.
type scriptedIndex struct {
	wrote bool
	err   error
	did   *[]string

	unread int // steps left to read
}

func (x *scriptedIndex) SaveIndex(context.Context) (bool, error) {
	*x.did = append(*x.did, "save")
	return x.wrote, x.err
}

func (x *scriptedIndex) ReadOn(context.Context) (changed, more bool, err error) {
	if x.unread == 0 {
		return false, false, nil
	}
	*x.did = append(*x.did, "read")
	x.unread--
	return true, x.unread > 0, nil
}

// Deferred work is done step by step, and the index is written at most once in a
// while. A write that found nothing to write, or another process's lock, is
// tried again as soon as possible.
func TestIdleGoesInSteps(t *testing.T) {
	var did []string
	index := &scriptedIndex{did: &did}
	readies := 0 // steps left
	k := &keeper{library: index, changed: func(context.Context) { did = append(did, "tell") }, logger: slog.New(slog.NewTextHandler(io.Discard, nil)), ready: func(context.Context) bool {
		did = append(did, "ready")
		readies--
		return readies >= 0
	}}
	for _, step := range []struct {
		name    string
		do      func()
		readies int
		want    []string // until there are no more steps
	}{
		{"nothing to write", func() {}, 1, []string{"save", "ready", "|", "save", "ready", "|"}},
		{"something to write", func() { index.wrote = true }, 2, []string{"save", "|", "ready", "|", "ready", "|", "ready", "|"}},
		{"again, soon after", func() {}, 0, []string{"ready", "|"}},
		{"almost late enough", func() { k.saved = k.saved.Add(time.Minute - saveEvery) }, 0, []string{"ready", "|"}},
		{"late enough", func() { k.saved = k.saved.Add(-time.Minute) }, 0, []string{"save", "|", "ready", "|"}},
		{"an error", func() { k.saved = k.saved.Add(-saveEvery); index.wrote, index.err = false, errors.New("full") }, 0, []string{"save", "|", "ready", "|"}},
		{"again, soon after an error", func() {}, 0, []string{"ready", "|"}},
		{"documents that are not read", func() { index.unread = 3 }, 1, []string{"read", "tell", "|", "read", "tell", "|", "read", "tell", "ready", "|", "ready", "|"}},
	} {
		did, readies = nil, step.readies
		step.do()
		for more := true; more && len(did) < 100; {
			more = k.idle(t.Context())
			did = append(did, "|")
		}
		if !slices.Equal(did, step.want) {
			t.Errorf("%s: %q, want %q", step.name, did, step.want)
		}
	}
}
