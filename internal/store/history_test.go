//go:build unix

package store_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

// An operation is a replica's request about one key.
type operation struct {
	key   string
	verb  string // "put", "delete" or "get"
	value string
	rev   uint64 // that is expected
}

// An outcome is the answer to an operation.
type outcome struct {
	err   error  // nil, ErrConflict, ErrNotFound or ErrAway
	value string // of a get
	rev   uint64 // of a get or a put
}

// A cell is one key: the value and its revision, 0 if there is none.
type cell struct {
	value string
	rev   uint64
}

// register models a key: each operation happens at one moment between its beginning
// and its end, and of those that expect the same revision, one succeeds.
func register() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byKey := make(map[string][]porcupine.Operation)
			for _, o := range history {
				key := o.Input.(operation).key
				byKey[key] = append(byKey[key], o)
			}
			var all [][]porcupine.Operation
			for _, part := range byKey {
				all = append(all, part)
			}
			return all
		},
		Init: func() []any { return []any{cell{}} },
		Step: func(state, input, output any) []any {
			now, in, out := state.(cell), input.(operation), output.(outcome)
			fits := now.rev == in.rev
			// unknown is the revision of a write whose acknowledgement was lost.
			const unknown = ^uint64(0)
			if now.rev == unknown && out.rev != 0 && in.verb == "get" {
				now.rev = out.rev // the next reader learns it
			}
			switch {
			case in.verb == "get" && errors.Is(out.err, store.ErrNotFound):
				return when(now.rev == 0, now)
			case in.verb == "get" && out.err == nil:
				return when(now.rev != 0 && now.value == out.value && now.rev == out.rev, now)
			case in.verb == "get":
				return []any{now}
			case errors.Is(out.err, store.ErrAway) && fits && in.verb == "put":
				return []any{now, cell{in.value, unknown}} // it was either done or not
			case errors.Is(out.err, store.ErrAway) && fits:
				return []any{now, cell{}}
			case errors.Is(out.err, store.ErrAway):
				return []any{now}
			case errors.Is(out.err, store.ErrConflict):
				return when(!fits, now)
			case in.verb == "put":
				return when(fits, cell{in.value, out.rev})
			default:
				return when(fits, cell{})
			}
		},
		Equal:             func(a, b any) bool { return a == b },
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v → %+v", in, out) },
	}
	return m.ToModel()
}

func when(is bool, state cell) []any {
	if !is {
		return nil
	}
	return []any{state}
}

// What three replicas see of a few keys is linearizable, while the network to one of
// them keeps breaking.
func TestHistory(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		proxy := e.Proxy(t)
		replicas := []store.Store{open(t, e.URL()), open(t, e.URL()), open(t, proxy.URL())}
		begun := time.Now()
		var mu sync.Mutex
		var history []porcupine.Operation
		broken := 0
		note := func(client int, from time.Duration, in operation, out outcome) {
			mu.Lock()
			defer mu.Unlock()
			end := int64(time.Since(begun))
			if errors.Is(out.err, store.ErrAway) {
				broken++
				end = int64(time.Hour) // it may still happen
			}
			history = append(history, porcupine.Operation{ClientId: client, Input: in, Call: int64(from), Output: out, Return: end})
		}
		const keys, each, clients = 3, 60, 6
		var wg sync.WaitGroup
		for client := range clients {
			s := replicas[client%len(replicas)]
			wg.Go(func() {
				for i := range each {
					key := "k." + strconv.Itoa(i%keys)
					from := time.Since(begun)
					got, err := s.Get(t.Context(), key)
					value := string(got.Value)
					note(client, from, operation{key: key, verb: "get"}, outcome{err, value, got.Rev})
					if err != nil && !errors.Is(err, store.ErrNotFound) {
						continue
					}
					in := operation{key: key, verb: "put", value: fmt.Sprint(client, "-", i), rev: got.Rev}
					if got.Rev != 0 && i%5 == 4 {
						in.verb, in.value = "delete", ""
					}
					from = time.Since(begun)
					var out outcome
					if in.verb == "put" {
						out.rev, out.err = s.Put(t.Context(), key, []byte(in.value), in.rev, 0)
					} else {
						out.err = s.Delete(t.Context(), key, in.rev)
					}
					note(client, from, in, out)
				}
			})
		}
		for range 5 {
			mu.Lock()
			before := len(history)
			mu.Unlock()
			eventually(t, "more is written", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(history) > before+40 || len(history) > 2*each*(clients-2)
			})
			proxy.Cut()
			proxy.Mend()
		}
		wg.Wait()
		for _, o := range history {
			if err := o.Output.(outcome).err; err != nil && !errors.Is(err, store.ErrAway) && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%+v: %v", o.Input, err)
			}
		}
		t.Logf("%d operations, of which %d have no known end", len(history), broken)
		result, info := porcupine.CheckOperationsVerbose(register(), history, time.Minute)
		if result != porcupine.Ok {
			path := filepath.Join(os.TempDir(), strings.ReplaceAll(t.Name(), "/", "-")+".html")
			t.Errorf("the history is %s; see %s", result, path)
			if err := porcupine.VisualizePath(register(), info, path); err != nil {
				t.Error(err)
			}
		}
	})
}

// The checker refuses a history in which something happened twice.
func TestHistoryWithADuplicate(t *testing.T) {
	claim := func(client int, value string, out outcome) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Input: operation{key: "k", verb: "put", value: value}, Call: 1, Output: out, Return: 2}
	}
	for want, second := range map[bool]outcome{true: {err: store.ErrConflict}, false: {rev: 2}} {
		history := []porcupine.Operation{claim(0, "a", outcome{rev: 1}), claim(1, "b", second)}
		if got := porcupine.CheckOperations(register(), history); got != want {
			t.Errorf("a second claim with %+v is accepted: %v, want %v", second, got, want)
		}
	}
}
