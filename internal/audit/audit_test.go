package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

func testOptions(t testing.TB) Options {
	return Options{
		Server: "s1",
		Now:    func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("x", 3600)) },
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func openLog(t testing.TB, path string, opts Options) *Log {
	t.Helper()
	l, err := Open(path, opts)
	if err != nil {
		t.Fatalf("Open(%q) = %v, want no error", path, err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func mustAppend(t testing.TB, l *Log, events ...Event) {
	t.Helper()
	for _, ev := range events {
		if err := l.Append(Entry{Event: ev, Pack: "acme/lint"}); err != nil {
			t.Fatalf("Append(%q) = %v, want no error", ev, err)
		}
	}
}

// newLog writes a log with n entries and returns its path.
func newLog(t testing.TB, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := openLog(t, path, testOptions(t))
	for range n {
		mustAppend(t, l, EventRunEnd)
	}
	if err := l.Close(); err != nil {
		t.Fatalf("Close() = %v, want no error", err)
	}
	return path
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func write(t testing.TB, path string, b []byte) {
	t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func verified(t testing.TB, path string) Report {
	t.Helper()
	r, err := Verify(path)
	if err != nil {
		t.Fatalf("Verify(%q) = %v, want no error", path, err)
	}
	return r
}

// kinds are the kinds of r's problems, in order.
func kinds(r Report) string {
	var out []string
	for _, p := range r.Problems {
		out = append(out, string(p.Kind))
	}
	return strings.Join(out, " ")
}

func TestAppendLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "audit.jsonl")
	l := openLog(t, path, testOptions(t))
	code := 0
	err := l.Append(Entry{
		Seq: 77, Prev: "nonsense", Hash: "nonsense", // set by the log
		Event: EventRunEnd, Chat: "c", Run: "r1", Kind: "run", Tool: "fmt", Pack: "acme/lint",
		Args: strictjson.Write(map[string]any{"a": "<&>\u202e", "b": `,"prev":"`}), Argv: []string{"gofmt", "-l"}, ExitCode: &code, DurationMS: 12,
	})
	if err != nil {
		t.Fatal(err)
	}
	body := `{"seq":1,"time":"2026-01-02T02:04:05.000000006Z","event":"run.end","server":"s1","chat":"c","run":"r1",` +
		`"kind":"run","tool":"fmt","pack":"acme/lint","argv":["gofmt","-l"],"exit_code":0,"duration_ms":12,"args":{"a":"<&>\u202e","b":",\"prev\":\""},` +
		`"prev":"0000000000000000000000000000000000000000000000000000000000000000"`
	sum := sha256.Sum256([]byte(body + "}"))
	want := body + `,"hash":"` + hex.EncodeToString(sum[:]) + "\"}\n"
	if diff := cmp.Diff(want, string(read(t, path))); diff != "" {
		t.Errorf("the line differs (-want +got):\n%s", diff)
	}
	if err := l.Append(Entry{Event: EventDecision}); err != nil {
		t.Fatal(err)
	}
	for line, err := range Read(path) {
		if err != nil || line.Number == 2 && (line.Entry.Seq != 2 || line.Entry.Prev != hex.EncodeToString(sum[:])) {
			t.Errorf("Read(%q) gave %+v, %v, want entry 2 after hash %x", path, line, err, sum)
		}
	}
	r := verified(t, path)
	at := testOptions(t).Now().UTC()
	want2 := Report{OK: true, Files: []string{path}, Entries: 2, First: 1, Last: 2, From: at, To: at, Hash: r.Hash, Runs: r.Runs}
	if diff := cmp.Diff(want2, r, cmp.AllowUnexported(strictjson.Compact{})); diff != "" {
		t.Errorf("Verify(%q) differs (-want +got):\n%s", path, diff)
	}
}

func TestAppendRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := openLog(t, path, testOptions(t))
	for _, tc := range []struct {
		name string
		e    Entry
		want string
	}{
		{"no event", Entry{}, "the entry has no event"},
		{"own event", Entry{Event: EventRecovered}, `event "recovered" is reserved for the log itself`},
		{"too long", Entry{Event: EventRunEnd, Reason: strings.Repeat("x", maxLine)}, "audit entry is too long: its line has"},
	} {
		if err := l.Append(tc.e); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: Append() = %v, want an error with %q", tc.name, err, tc.want)
		}
	}
	mustAppend(t, l, EventRunEnd)
	if r := verified(t, path); !r.OK || r.Entries != 1 {
		t.Errorf("Verify() = %+v, want one entry and OK", r)
	}
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"b"}`:                  "{\"a\":\"b\"}",
		"{\"a\":\"é 日本 😀\"}":         "{\"a\":\"é 日本 😀\"}",
		"{\"a\":\"\u009b31m\x7f\"}":  `{"a":"\u009b31m\u007f"}`,
		"{\"a\":\"x\u202ey\ufeff\"}": `{"a":"x\u202ey\ufeff"}`,
		"{\"a\":\"\U000e0041\"}":     `{"a":"\udb40\udc41"}`,
		"{\"a\":\"\xff\"}":           `{"a":"\ufffd"}`,
		// HU-04
		"{\"a\":\"\u3164\u2800x\"}":                        `{"a":"\u3164\u2800x"}`,
		"{\"a\":\"e\u0301\"}":                              "{\"a\":\"e\u0301\"}",
		"{\"a\":\"Z" + strings.Repeat("\u0335", 5) + "\"}": "{\"a\":\"Z" + strings.Repeat("\u0335", 3) + strings.Repeat(`\u0335`, 2) + "\"}",
	} {
		got := string(escape([]byte(in)))
		if got != want {
			t.Errorf("escape(%q) = %q, want %q", in, got, want)
		}
		if !json.Valid([]byte(got)) {
			t.Errorf("escape(%q) = %q, want JSON", in, got)
		}
	}
}

// Escaping keeps the decoded text equal to the original.
func TestEscapedRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := openLog(t, path, testOptions(t))
	want := "a\u202e\u009b\U000e0041\n\x00é"
	if err := l.Append(Entry{Event: EventRunEnd, Reason: want}); err != nil {
		t.Fatal(err)
	}
	for line, err := range Read(path) {
		if err != nil || line.Entry.Reason != want {
			t.Errorf("Read() = %q, %v, want %q", line.Entry.Reason, err, want)
		}
	}
	if b := read(t, path); !regexp.MustCompile(`^[ -~é]*\n$`).Match(b) {
		t.Errorf("the line is %q, want only visible characters", b)
	}
}

func TestOpenMakesPrivateFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "packs-mcp")
	path := filepath.Join(dir, "audit.jsonl")
	mustAppend(t, openLog(t, path, testOptions(t)), EventDecision)
	skipWithoutModes(t)
	for name, want := range map[string]fs.FileMode{
		filepath.Dir(dir): fs.ModeDir | 0o700,
		dir:               fs.ModeDir | 0o700,
		path:              0o600,
		headPath(path):    0o600,
		lockPath(path):    0o600,
	} {
		fi, err := os.Lstat(name)
		if err != nil || fi.Mode() != want {
			t.Errorf("Lstat(%q) = %v, %v, want mode %v", name, fi, err, want)
		}
	}
}

func TestClose(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := openLog(t, path, testOptions(t))
	if err := l.AppendLazy(Entry{Event: EventRunEnd}); err != nil {
		t.Fatal(err)
	}
	synced := 0
	l.ops.sync = func(f *os.File) error { synced++; return f.Sync() }
	for range 2 {
		if err := l.Close(); err != nil {
			t.Errorf("Close() = %v, want no error", err)
		}
	}
	if synced != 1 {
		t.Errorf("Close synced %d times, want 1", synced)
	}
	if err := l.Append(Entry{Event: EventRunEnd}); !errors.Is(err, ErrClosed) {
		t.Errorf("Append() after Close = %v, want ErrClosed", err)
	}
	if err := l.AppendLazy(Entry{Event: EventRunEnd}); !errors.Is(err, ErrClosed) {
		t.Errorf("AppendLazy() after Close = %v, want ErrClosed", err)
	}
}

func TestAppendLazySyncsWithinASecond(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	opts := testOptions(t)
	synctest.Test(t, func(t *testing.T) {
		l, err := Open(path, opts)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		var synced atomic.Int32
		var broken atomic.Pointer[error]
		gone := errors.New("the disk is gone")
		l.ops.sync = func(*os.File) error {
			synced.Add(1)
			if err := broken.Load(); err != nil {
				return *err
			}
			return nil
		}
		add := func() error { return l.AppendLazy(Entry{Event: EventRunEnd}) }
		for range 10 {
			if err := add(); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := synced.Load(); n != 0 {
			t.Errorf("synced %d times at once, want 0", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n := synced.Load(); n != 1 {
			t.Errorf("synced %d times after a second, want 1", n)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := synced.Load(); n != 1 {
			t.Errorf("synced %d times while nothing was written, want 1", n)
		}

		broken.Store(&gone)
		if err := add(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if err := add(); !errors.Is(err, gone) {
			t.Errorf("AppendLazy() after a failed sync = %v, want %v", err, gone)
		}
		broken.Store(nil)
		if err := add(); err != nil {
			t.Errorf("AppendLazy() after the error was reported = %v, want no error", err)
		}
	})
}

func TestAppendErrorsLeaveTheLogUsable(t *testing.T) {
	full := errors.New("no space left")
	for _, tc := range []struct {
		name     string
		keep     int // bytes that reach the file before the error
		ok       bool
		problems string
	}{
		{"nothing written", 0, true, ""},
		{"half a line written", 40, true, "torn"},
		{"all but the line feed written", -1, true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.jsonl")
			l := openLog(t, path, testOptions(t))
			mustAppend(t, l, EventDecision)
			l.ops.write = func(f *os.File, b []byte) (int, error) {
				keep := tc.keep
				if keep < 0 {
					keep += len(b)
				}
				n, err := f.Write(b[:keep])
				return n, errors.Join(full, err)
			}
			for range 2 {
				if err := l.Append(Entry{Event: EventRunStart}); !errors.Is(err, full) {
					t.Errorf("Append() on a full disk = %v, want %v", err, full)
				}
			}
			l.ops.write = (*os.File).Write
			mustAppend(t, l, EventRunEnd, EventRunEnd)
			r := verified(t, path)
			if got := strings.Join(slicesUnique(strings.Fields(kinds(r))), " "); r.OK != tc.ok || got != tc.problems {
				t.Errorf("Verify() = %+v, want OK %v and problems %q", r, tc.ok, tc.problems)
			}
		})
	}

	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l := openLog(t, path, testOptions(t))
	l.ops.sync = func(*os.File) error { return full }
	if err := l.Append(Entry{Event: EventRunStart}); !errors.Is(err, full) {
		t.Errorf("Append() that cannot sync = %v, want %v", err, full)
	}
}

func slicesUnique(in []string) (out []string) {
	for _, s := range in {
		if len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}
	return out
}

func TestLockTimeout(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	holder := openLog(t, path, testOptions(t))
	waiter := openLog(t, path, testOptions(t))
	waiter.wait = 20 * time.Millisecond
	release, err := holder.acquire()
	if err != nil {
		t.Fatal(err)
	}
	if err := waiter.Append(Entry{Event: EventRunEnd}); err == nil || !strings.Contains(err.Error(), "waited 20ms for the process that holds") {
		t.Errorf("Append() under another's lock = %v, want a timeout", err)
	}
	release()
	mustAppend(t, waiter, EventRunEnd)

	release, err = waiter.acquire()
	if err != nil {
		t.Fatal(err)
	}
	if err := waiter.Append(Entry{Event: EventRunEnd}); err == nil || !strings.Contains(err.Error(), "waited 20ms for other writers of this process") {
		t.Errorf("Append() under its own lock = %v, want a timeout", err)
	}
	release()
	mustAppend(t, waiter, EventRunEnd)
}

func TestRotation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	opts := testOptions(t)
	opts.MaxSize = 1000
	a, b := openLog(t, path, opts), openLog(t, path, opts)
	for range 10 {
		mustAppend(t, a, EventRunEnd, EventRunEnd)
		mustAppend(t, b, EventDecision)
	}
	r := verified(t, path)
	if !r.OK || r.Entries != 30 || r.First != 1 || r.Last != 30 || len(r.Files) < 5 {
		t.Fatalf("Verify() = %+v, want 30 entries in several files", r)
	}
	if want := filepath.Join(filepath.Dir(path), "audit-000000000001.jsonl"); r.Files[0] != want {
		t.Errorf("the first file is %q, want %q", r.Files[0], want)
	}
	seq := int64(0)
	for line, err := range Read(path) {
		if seq++; err != nil || line.Entry.Seq != seq {
			t.Errorf("Read() gave entry %d, %v, want entry %d", line.Entry.Seq, err, seq)
		}
	}
	for _, name := range r.Files {
		if fi, err := os.Stat(name); err != nil || fi.Size() > opts.MaxSize {
			t.Errorf("Stat(%q) = %v, %v, want at most %d bytes", name, fi, err, opts.MaxSize)
		}
	}

	middle := read(t, r.Files[2])
	write(t, r.Files[2], append(middle[:50:50], append([]byte{middle[50] ^ 1}, middle[51:]...)...))
	if got := verified(t, path); got.OK || got.Problems[0].File != r.Files[2] || got.Problems[0].Line != 1 {
		t.Errorf("Verify() with a changed old file = %+v, want a problem in %q", got, r.Files[2])
	}
	if err := os.Remove(r.Files[2]); err != nil {
		t.Fatal(err)
	}
	if got := verified(t, path); kinds(got) != "dropped" {
		t.Errorf("Verify() without an old file = %+v, want it dropped", got)
	}
}

// TestAppendAll appends several entries at once: over several files, behind a line that was
// cut off, and with one that is refused.
func TestAppendAll(t *testing.T) {
	path := newLog(t, 1)
	write(t, path, append(read(t, path), `{"seq":2`...))
	opts := testOptions(t)
	opts.MaxSize = 1000
	l, other := openLog(t, path, opts), openLog(t, path, opts)
	all := make([]Entry, 10)
	for i := range all {
		all[i].Event = EventSource
	}
	for range 2 {
		if err := l.AppendAll(all); err != nil {
			t.Fatal(err)
		}
		mustAppend(t, other, EventRunEnd)
	}
	all[5].Event = ""
	if err := l.AppendAll(all); err == nil {
		t.Error("AppendAll() with an entry that has no event = nil, want an error")
	}
	r := verified(t, path)
	if !r.OK || r.Entries != 1+1+2*11 || len(r.Files) < 4 {
		t.Fatalf("Verify() = %+v, want 24 entries in several files", r)
	}
	for _, name := range r.Files[1:] { // the first has the damage and what followed in one write
		if fi, err := os.Stat(name); err != nil || fi.Size() > opts.MaxSize {
			t.Errorf("Stat(%q) = %v, %v, want at most %d bytes", name, fi, err, opts.MaxSize)
		}
	}
}

// A process that stops between the rename and the first line of the new file
// leaves a log that can continue.
func TestRotationInterrupted(t *testing.T) {
	path := newLog(t, 3)
	if err := os.Rename(path, rotatedName(path, 1)); err != nil {
		t.Fatal(err)
	}
	if r := verified(t, path); !r.OK || r.Last != 3 {
		t.Errorf("Verify() before = %+v, want OK", r)
	}
	mustAppend(t, openLog(t, path, testOptions(t)), EventRunEnd)
	if r := verified(t, path); !r.OK || r.Entries != 4 || r.Last != 4 {
		t.Errorf("Verify() after = %+v, want 4 entries and OK", r)
	}
}

func TestRotationThatCannotRename(t *testing.T) {
	path := newLog(t, 3)
	if err := os.Mkdir(rotatedName(path, 1), 0o700); err != nil {
		t.Fatal(err)
	}
	opts := testOptions(t)
	opts.MaxSize = 100
	mustAppend(t, openLog(t, path, opts), EventRunEnd, EventRunEnd)
	if err := os.Remove(rotatedName(path, 1)); err != nil {
		t.Fatal(err)
	}
	if r := verified(t, path); !r.OK || r.Entries != 5 || len(r.Files) < 1 {
		t.Errorf("Verify() = %+v, want 5 entries and OK", r)
	}
}

// FuzzRead works on bytes alone: files would make it slow, and different each
// time.
func FuzzRead(f *testing.F) {
	good := read(f, newLog(f, 2))
	f.Add(good)
	f.Add(good[:len(good)-10])
	f.Add([]byte("\n\x00{}\n{\"seq\":1}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		lines := 0
		yieldLines(bytes.NewReader(b), "x", func(_ Line, err error) bool {
			if _, ok := errors.AsType[*LineError](err); err != nil && !ok {
				t.Fatalf("yieldLines() = %v, want a *LineError", err)
			}
			lines++
			return true
		})
		before := judge(t, b, link{}, fs.ErrNotExist)
		if before.OK != (lines == 0) {
			t.Fatalf("a log of %d lines without head is %+v, want it OK only if it is empty", lines, before)
		}

		// Do what the next append would do: it explains the end and leaves the
		// rest.
		r := bytes.NewReader(b)
		end, err := readTail(r, int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		torn, err := end.torn(r, int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		if !end.found {
			end.last.hash = zeroHash
		}
		if !end.newline {
			b = append(slices.Clip(b), '\n')
		}
		line, err := encode(&Entry{Seq: end.last.seq + 1, Event: EventRecovered, Recovered: &Recovery{Torn: torn}, Prev: end.last.hash})
		if err != nil {
			t.Fatal(err)
		}
		after := judge(t, append(b, line...), link{}, fs.ErrNotExist)
		if after.Entries != before.Entries+1 {
			t.Fatalf("after an append there are %d entries, want %d", after.Entries, before.Entries+1)
		}
	})
}

func benchmarkAppend(b *testing.B, add func(*Log, Entry) error) {
	l := openLog(b, filepath.Join(b.TempDir(), "audit.jsonl"), Options{})
	e := Entry{Event: EventRunEnd, Chat: "c", Kind: "read", Pack: "acme/lint", PackDigest: zeroHash, Decision: "chat", Channel: "grant"}
	for b.Loop() {
		if err := add(l, e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppend(b *testing.B)     { benchmarkAppend(b, (*Log).Append) }
func BenchmarkAppendLazy(b *testing.B) { benchmarkAppend(b, (*Log).AppendLazy) }
