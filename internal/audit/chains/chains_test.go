//go:build unix

package chains_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/audit/chains"
	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func keys(t *testing.T, text string) chains.Keys {
	t.Helper()
	k, err := store.ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return chains.KeysOf(k)
}

var ours, theirs = strings.Repeat("5e", 32), strings.Repeat("6f", 32)

func open(t *testing.T, url string) store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start returns a log of a server, which the caller closes.
func start(t *testing.T, url, server string) *chains.Log {
	t.Helper()
	return chains.Open(chains.Options{Store: open(t, url), Keys: keys(t, ours), Server: server, Every: time.Hour})
}

func add(t *testing.T, l *chains.Log, entries ...audit.Entry) {
	t.Helper()
	for _, e := range entries {
		if err := l.Append(e); err != nil {
			t.Fatal(err)
		}
	}
}

func end(t *testing.T, l *chains.Log) {
	t.Helper()
	add(t, l, audit.Entry{Event: audit.EventServerStop})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func decision(call string) audit.Entry {
	return audit.Entry{Event: audit.EventDecision, Call: call, Decision: "once"}
}

// exported exports the log of an engine.
func exported(t *testing.T, url string) string {
	t.Helper()
	s := open(t, url)
	defer s.Close()
	dir := filepath.Join(t.TempDir(), "export")
	if _, err := chains.Export(t.Context(), s, keys(t, ours), dir, time.Now()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func verify(t *testing.T, dir string) chains.Report {
	t.Helper()
	r, err := chains.Verify(dir, chains.Check{Keys: keys(t, ours).Public()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Three servers write at the same time. Each has a chain, and an export of all verifies.
func TestSeveralWriters(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		const servers, writers, each = 3, 8, 10
		var wg sync.WaitGroup
		for s := range servers {
			l := start(t, e.URL(), fmt.Sprint("web-", s))
			wg.Go(func() {
				var callers sync.WaitGroup
				for w := range writers {
					callers.Go(func() {
						for i := range each {
							if err := l.Append(decision(fmt.Sprint(s, "-", w, "-", i))); err != nil {
								t.Error(err)
							}
						}
					})
				}
				callers.Wait()
				end(t, l)
			})
		}
		wg.Wait()
		r := verify(t, exported(t, e.URL()))
		if !r.OK || len(r.Chains) != servers || r.Entries != servers*(writers*each+1) || len(r.Keys) != 1 {
			t.Errorf("Verify = %+v", r)
		}
		for _, c := range r.Chains {
			if c.Covered != c.Last {
				t.Errorf("the chain %s has %d entries, of which the checkpoints cover %d", c.Name, c.Last, c.Covered)
			}
		}
	})
}

// Servers write checkpoints while they work, and one covers what another wrote before it
// was killed.
func TestCheckpointsOfOthers(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		killed := start(t, e.URL(), "killed")
		add(t, killed, decision("a"), decision("b"))
		other := chains.Open(chains.Options{Store: open(t, e.URL()), Keys: keys(t, ours), Server: "other", Every: 10 * time.Millisecond})
		s := open(t, e.URL())
		defer s.Close()
		for late := time.After(30 * time.Second); ; {
			if _, _, err := s.Last(t.Context(), "checkpoints"); err == nil {
				break
			}
			select {
			case <-late:
				t.Fatal("there is no checkpoint")
			case <-time.After(5 * time.Millisecond):
			}
		}
		r := verify(t, exported(t, e.URL()))
		if !r.OK || len(r.Chains) != 1 || r.Chains[0].Covered != 2 {
			t.Errorf("Verify = %+v", r)
		}
		end(t, other)
		end(t, killed)
	})
}

// A line that is too long for one message of the engine is split.
func TestLongLine(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		l := start(t, e.URL(), "web")
		long := audit.Entry{Event: audit.EventRunStart, Run: "r", Argv: []string{strings.Repeat("x", 3<<20)}}
		add(t, l, decision("a"), long, decision("b"))
		if e.Name == "nats" {
			if err := l.Append(audit.Entry{Event: audit.EventRunStart, Dir: strings.Repeat("/", audit.MaxLine)}); !errors.Is(err, audit.ErrTooLong) {
				t.Errorf("Append of what is too long = %v", err)
			}
		}
		end(t, l)
		if r := verify(t, exported(t, e.URL())); !r.OK || r.Entries != 4 || len(r.Runs) != 1 {
			t.Errorf("Verify = %+v", r)
		}
	})
}

// Without the store, nothing is written, and the caller gets an error in time. When
// it is back, a new chain continues the previous one.
func TestStoreIsUnreachable(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		proxy := e.Proxy(t)
		l := start(t, proxy.URL(), "web")
		add(t, l, decision("a"))
		proxy.Cut()
		if err := l.Append(decision("lost")); !errors.Is(err, audit.ErrUnavailable) {
			t.Errorf("Append without the store = %v", err)
		}
		proxy.Mend()
		for late := time.Now().Add(30 * time.Second); ; {
			err := l.Append(decision("b"))
			if err == nil {
				break
			}
			if time.Now().After(late) {
				t.Fatalf("when the store was back, Append = %v", err)
			}
		}
		end(t, l)
		if err := l.Append(decision("c")); !errors.Is(err, audit.ErrClosed) {
			t.Errorf("Append after Close = %v", err)
		}
		dir := exported(t, e.URL())
		if r := verify(t, dir); !r.OK || len(r.Chains) != 2 {
			t.Errorf("Verify = %+v", r)
		}
		if all := lines(t, dir); !strings.Contains(all, "goes on from entry 1 of the chain web.") {
			t.Errorf("the second chain does not name the first:\n%s", all)
		}
	})
}

// lines returns the text of all chains.
func lines(t *testing.T, dir string) string {
	t.Helper()
	var all []byte
	for _, file := range chainFiles(t, dir) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	return string(all)
}

func chainFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "chains", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("chains of the export: %q, %v", files, err)
	}
	return files
}

// If somebody else writes to a server's chain, the server continues in a new one, and
// the foreign entries are found.
func TestForeignWriter(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		l, twin := start(t, e.URL(), "web"), start(t, e.URL(), "web") // two with the same name
		add(t, l, decision("a"))
		add(t, twin, decision("twin"))
		s := open(t, e.URL())
		defer s.Close()
		all, err := s.Chains(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(all) != 2 {
			t.Errorf("two servers of one name have the chains %v", all)
		}
		for name := range all {
			pos, block, err := s.Last(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(block, []byte(`"twin"`)) {
				continue
			}
			var first audit.Entry
			if err := json.Unmarshal(block[:bytes.IndexByte(block, '\n')], &first); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Append(t.Context(), name, pos, forged(t, name, first)); err != nil {
				t.Fatal(err)
			}
		}
		add(t, l, decision("b"))
		end(t, l)
		end(t, twin)
		dir := exported(t, e.URL())
		r := verify(t, dir)
		if r.OK || len(r.Chains) != 3 || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Message, "no replica wrote the seal") {
			t.Errorf("Verify = %+v", r)
		}
		if !strings.Contains(lines(t, dir), `"call":"b"`) {
			t.Error("what the server wrote afterwards is not there")
		}
	})
}

// forged returns a block that continues a chain correctly, except for the key.
func forged(t *testing.T, name string, after audit.Entry) []byte {
	t.Helper()
	nats := storetest.NATS(t)
	l := chains.Open(chains.Options{Store: open(t, nats.URL()), Keys: keys(t, theirs), Server: strings.SplitN(name, ".", 2)[0], Every: time.Hour})
	add(t, l, after, decision("forged"))
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s := open(t, nats.URL())
	defer s.Close()
	all, err := s.Chains(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for other := range all {
		if other != "checkpoints" {
			_, block, err := s.Last(t.Context(), other)
			if err != nil {
				t.Fatal(err)
			}
			return bytes.ReplaceAll(block, []byte(other), []byte(name))
		}
	}
	t.Fatal("there is no chain")
	return nil
}

// Changes to an export, or to the store before it, are found.
func TestHostile(t *testing.T) {
	e := storetest.NATS(t)
	for i := range 3 {
		l := start(t, e.URL(), fmt.Sprint("web-", i))
		add(t, l, decision("a"), decision("b"), decision("c"))
		end(t, l)
	}
	good := exported(t, e.URL())
	first := verify(t, good)
	if !first.OK {
		t.Fatalf("the export is not good: %+v", first)
	}
	const points = "checkpoints.jsonl"
	for _, test := range []struct {
		name string
		do   func(t *testing.T, dir string)
		want string // of exactly one problem
	}{
		{"a line changed", func(t *testing.T, dir string) {
			edit(t, chainFiles(t, dir)[0], func(s string) string { return strings.Replace(s, `"call":"b"`, `"call":"x"`, 1) })
		}, "the line was changed after it was written"},
		{"a line dropped", func(t *testing.T, dir string) {
			edit(t, chainFiles(t, dir)[0], func(s string) string { return drop(s, 3, 4) })
		}, "the entries between number 1 and number 3 are missing"},
		{"a seal dropped", func(t *testing.T, dir string) {
			edit(t, chainFiles(t, dir)[0], func(s string) string { return drop(s, 8, 8) })
		}, "what follows has no seal"},
		{"a tail cut off", func(t *testing.T, dir string) {
			edit(t, chainFiles(t, dir)[1], func(s string) string { return drop(s, 5, 8) })
		}, "the chain ends with entry 2, but checkpoint 2 names its entry 4"},
		{"a beginning cut off", func(t *testing.T, dir string) {
			edit(t, chainFiles(t, dir)[1], func(s string) string { return drop(s, 1, 2) })
		}, "the entries before number 2 are missing"},
		{"a chain left out", func(t *testing.T, dir string) {
			if err := os.Remove(chainFiles(t, dir)[2]); err != nil {
				t.Fatal(err)
			}
		}, "the chain is missing; checkpoint 3 names its entry 4"},
		{"a chain under the name of another", func(t *testing.T, dir string) {
			all := chainFiles(t, dir)
			text, err := os.ReadFile(all[0])
			if err != nil {
				t.Fatal(err)
			}
			edit(t, all[1], func(string) string { return string(text) })
		}, "the seal is of the chain"},
		{"a block twice", func(t *testing.T, dir string) {
			edit(t, chainFiles(t, dir)[0], func(s string) string {
				all := strings.SplitAfter(s, "\n")
				return strings.Join(slices.Concat(all[:4], all[2:]), "")
			})
		}, "entry 2 is there again"},
		{"a checkpoint replayed", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, points), func(s string) string { return s + strings.SplitAfter(s, "\n")[1] })
		}, "checkpoint 2 is there again"},
		{"a checkpoint left out", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, points), func(s string) string { return drop(s, 2, 2) })
		}, "the checkpoints between number 1 and number 3 are missing"},
		{"a checkpoint changed", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, points), func(s string) string { return strings.Replace(s, `"by":"web-2"`, `"by":"web-9"`, 1) })
		}, "no replica wrote the checkpoint"},
		{"no checkpoints", func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, points)); err != nil {
				t.Fatal(err)
			}
		}, "the file is missing"},
		{"a file more", func(t *testing.T, dir string) {
			edit(t, filepath.Join(dir, "chains", "more.txt"), func(string) string { return "" })
		}, "the file is not of the export"},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(good)); err != nil {
				t.Fatal(err)
			}
			test.do(t, dir)
			r := verify(t, dir)
			if r.OK || !slices.ContainsFunc(r.Problems, func(p audit.Problem) bool { return strings.Contains(p.Message, test.want) }) {
				t.Errorf("Verify = %+v, want %q", r, test.want)
			}
		})
	}
	t.Run("other keys", func(t *testing.T) {
		r, err := chains.Verify(good, chains.Check{Keys: keys(t, theirs).Public()})
		if err != nil || r.OK {
			t.Errorf("Verify with other keys = %+v, %v", r, err)
		}
	})
	// If everything is set back to an earlier state, only the noted hash shows it.
	t.Run("an earlier state", func(t *testing.T) {
		l := start(t, e.URL(), "later")
		end(t, l)
		now := verify(t, exported(t, e.URL()))
		for noted, want := range map[string]bool{now.Last: false, first.Last: true, "": true} {
			r, err := chains.Verify(good, chains.Check{Noted: noted})
			if err != nil || r.OK != want {
				t.Errorf("Verify of an earlier state, with %q noted = %+v, %v, want %v", noted, r, err, want)
			}
		}
	})
}

func edit(t *testing.T, file string, how func(string) string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(how(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
}

// drop returns a text without some of its lines, from number 1.
func drop(s string, from, to int) string {
	all := strings.SplitAfter(s, "\n")
	return strings.Join(slices.Concat(all[:from-1], all[to:]), "")
}

// Old entries that were exported can be removed from the store. The rest still
// verifies, the heads of removed chains stay, and nothing else may be missing.
func TestPrune(t *testing.T) {
	storetest.Each(t, func(t *testing.T, e *storetest.Engine) {
		now := time.Now()
		old := chains.Open(chains.Options{Store: open(t, e.URL()), Keys: keys(t, ours), Server: "old", Every: time.Hour})
		aged := func(e audit.Entry) audit.Entry { e.Time = now.AddDate(0, 0, -100); return e }
		add(t, old, aged(decision("a")), aged(decision("b")), aged(audit.Entry{Event: audit.EventServerStop}))
		if err := old.Close(); err != nil {
			t.Fatal(err)
		}
		running := start(t, e.URL(), "running")
		add(t, running, aged(decision("c")), aged(decision("d")), decision("e"))
		end(t, running)
		s := open(t, e.URL())
		defer s.Close()
		before := now.AddDate(0, 0, -90)
		dir := exported(t, e.URL())
		prune := func(ctx context.Context, dir string) (chains.Pruned, error) {
			return chains.Prune(ctx, s, keys(t, ours), dir, before, now)
		}

		broken := filepath.Join(t.TempDir(), "broken")
		if err := os.CopyFS(broken, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		edit(t, chainFiles(t, broken)[0], func(s string) string { return strings.Replace(s, `"call":"b"`, `"call":"x"`, 1) })
		if _, err := prune(t.Context(), broken); !errors.Is(err, chains.ErrUnverified) {
			t.Errorf("Prune with a changed export = %v", err)
		}
		out, err := prune(t.Context(), dir)
		if err != nil || out != (chains.Pruned{Chains: 2, Entries: 5, Whole: 1}) {
			t.Fatalf("Prune = %+v, %v", out, err)
		}
		if out, err := prune(t.Context(), dir); err != nil || out != (chains.Pruned{}) {
			t.Errorf("Prune of what is gone = %+v, %v", out, err)
		}
		later := start(t, e.URL(), "later")
		end(t, later)
		dir = exported(t, e.URL())
		r := verify(t, dir)
		if !r.OK || r.Entries != 3 || r.Checkpoints != 2 {
			t.Errorf("Verify after Prune = %+v", r)
		}
		heads, err := os.ReadFile(filepath.Join(dir, "checkpoints.jsonl"))
		if err != nil || !strings.Contains(string(heads), `"old.`) {
			t.Errorf("the checkpoints do not name the chain that is gone: %s, %v", heads, err)
		}
		for _, file := range chainFiles(t, dir) {
			if strings.Contains(file, "running") {
				edit(t, file, func(s string) string { return drop(s, 1, 2) })
			}
		}
		if r := verify(t, dir); r.OK {
			t.Errorf("more than was pruned is missing, and Verify = %+v", r)
		}
	})
}
