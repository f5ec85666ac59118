package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// splitLines keeps the line feeds.
func splitLines(b []byte) [][]byte {
	return slices.Collect(bytes.Lines(b))
}

// judge verifies a log of one file, whose content is b, without touching files.
func judge(t *testing.T, b []byte, head link, headErr error) Report {
	t.Helper()
	v := &verifier{path: "x", last: link{hash: zeroHash}, head: head, headErr: headErr}
	for raw, err := range readLines(bytes.NewReader(b), "x") {
		if err != nil {
			t.Fatalf("readLines() = %v, want no error", err)
		}
		v.line("x", raw)
	}
	v.finish()
	return v.report
}

func TestVerifyFindsEveryChangedBit(t *testing.T) {
	path := newLog(t, 3)
	good := read(t, path)
	head, err := readHead(path)
	if err != nil {
		t.Fatal(err)
	}
	if r := judge(t, good, head, nil); !r.OK {
		t.Fatalf("the original is %+v, want OK", r)
	}
	for i := range good {
		for bit := range 8 {
			b := bytes.Clone(good)
			b[i] ^= 1 << bit
			if r := judge(t, b, head, nil); r.OK {
				t.Fatalf("with bit %d of byte %d changed the log is OK, want a problem", bit, i)
			}
		}
	}
}

func TestVerifyFindsEveryCut(t *testing.T) {
	path := newLog(t, 3)
	good := read(t, path)
	for n := range len(good) {
		write(t, path, good[:n])
		r := verified(t, path)
		if n == len(good)-1 { // only the line feed is cut: no entry is lost
			if !r.OK || kinds(r) != "torn" {
				t.Errorf("Verify() without the last line feed = %+v, want OK and torn", r)
			}
			continue
		}
		if r.OK || r.Problems[len(r.Problems)-1].Kind != Truncated {
			t.Errorf("Verify() of the first %d of %d bytes = %+v, want truncated", n, len(good), r)
		}
	}
}

func TestVerifyKinds(t *testing.T) {
	const n = 5
	forge := func(t *testing.T, line []byte, change func(*Entry)) []byte {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		change(&e)
		out, err := encode(&e)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for _, tc := range []struct {
		name string
		edit func(t *testing.T, lines [][]byte) [][]byte
		want string // the problems' kinds
		line int    // of the first
	}{
		{"nothing", func(_ *testing.T, l [][]byte) [][]byte { return l }, "", 0},
		{"word changed", func(_ *testing.T, l [][]byte) [][]byte {
			l[2] = bytes.Replace(l[2], []byte("acme"), []byte("evil"), 1)
			return l
		}, "changed", 3},
		{"line no JSON", func(_ *testing.T, l [][]byte) [][]byte { l[2] = []byte("hello\n"); return l }, "changed", 3},
		{"last line no JSON", func(_ *testing.T, l [][]byte) [][]byte { l[4] = []byte("hello\n"); return l }, "changed", 5},
		{"replaced, hash fitting", func(t *testing.T, l [][]byte) [][]byte {
			l[2] = forge(t, l[2], func(e *Entry) { e.Pack = "evil" })
			return l
		}, "changed", 4},
		{"last replaced, hash fitting", func(t *testing.T, l [][]byte) [][]byte {
			l[4] = forge(t, l[4], func(e *Entry) { e.Pack = "evil" })
			return l
		}, "changed", 5},
		{"last two replaced, hashes fitting", func(t *testing.T, l [][]byte) [][]byte {
			l[3] = forge(t, l[3], func(e *Entry) { e.Pack = "evil" })
			var e Entry
			if err := json.Unmarshal(l[3], &e); err != nil {
				t.Fatal(err)
			}
			l[4] = forge(t, l[4], func(last *Entry) { last.Prev = e.Hash })
			return l
		}, "changed", 5},
		{"first dropped", func(_ *testing.T, l [][]byte) [][]byte { return l[1:] }, "dropped", 1},
		{"third dropped", func(_ *testing.T, l [][]byte) [][]byte { return slices.Delete(l, 2, 3) }, "dropped", 3},
		{"two dropped", func(_ *testing.T, l [][]byte) [][]byte { return slices.Delete(l, 1, 3) }, "dropped", 2},
		{"last dropped", func(_ *testing.T, l [][]byte) [][]byte { return l[:4] }, "truncated", 4},
		{"all dropped", func(_ *testing.T, l [][]byte) [][]byte { return nil }, "truncated", 0},
		{"neighbors swapped", func(_ *testing.T, l [][]byte) [][]byte { l[1], l[2] = l[2], l[1]; return l }, "reordered", 3},
		{"last two swapped", func(_ *testing.T, l [][]byte) [][]byte { l[3], l[4] = l[4], l[3]; return l }, "reordered", 5},
		{"ends swapped", func(_ *testing.T, l [][]byte) [][]byte { l[0], l[4] = l[4], l[0]; return l }, "reordered reordered reordered reordered", 2},
		{"repeated", func(_ *testing.T, l [][]byte) [][]byte { return slices.Insert(l, 3, l[2]) }, "repeated", 4},
		{"last repeated", func(_ *testing.T, l [][]byte) [][]byte { return append(l, l[4]) }, "repeated", 6},
		{"line put in", func(_ *testing.T, l [][]byte) [][]byte { return slices.Insert(l, 2, []byte("hi\n")) }, "changed", 3},
		{"empty line put in", func(_ *testing.T, l [][]byte) [][]byte { return slices.Insert(l, 2, []byte("\n")) }, "changed", 3},
		{"empty line at the end", func(_ *testing.T, l [][]byte) [][]byte { return append(l, []byte("\n")) }, "changed", 6},
		{"two things", func(_ *testing.T, l [][]byte) [][]byte {
			l[1] = bytes.Replace(l[1], []byte("acme"), []byte("evil"), 1)
			return slices.Delete(l, 3, 4)
		}, "changed dropped", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := newLog(t, n)
			write(t, path, bytes.Join(tc.edit(t, splitLines(read(t, path))), nil))
			r := verified(t, path)
			line := 0
			if len(r.Problems) > 0 {
				line = r.Problems[0].Line
			}
			if kinds(r) != tc.want || line != tc.line || r.OK != (tc.want == "") {
				t.Errorf("Verify() = OK %v, %v, want %q from line %d", r.OK, r.Problems, tc.want, tc.line)
			}
		})
	}
}

// Damage done while no server was writing is still seen after a server continues
// the log.
func TestDamageOutlivesTheNextAppend(t *testing.T) {
	for _, tc := range []struct {
		name string
		edit func(t *testing.T, path string)
		ok   bool
		want string
	}{
		{"torn line", func(t *testing.T, path string) {
			write(t, path, append(read(t, path), `{"seq":4,"ti`...))
		}, true, "torn"},
		{"torn lines", func(t *testing.T, path string) {
			write(t, path, append(read(t, path), "{\"seq\":4,\"ti\n{\"se\n\n{"...))
		}, true, "torn torn torn torn"},
		{"zeros, as a power cut leaves them", func(t *testing.T, path string) {
			write(t, path, append(read(t, path), make([]byte, 5000)...))
		}, true, "torn"},
		{"line feed missing", func(t *testing.T, path string) {
			write(t, path, bytes.TrimSuffix(read(t, path), []byte("\n")))
		}, true, ""},
		{"head one behind, as a crash leaves it", func(t *testing.T, path string) {
			var e Entry
			if err := json.Unmarshal(splitLines(read(t, path))[1], &e); err != nil {
				t.Fatal(err)
			}
			h := head{path: headPath(path)}
			if err := errors.Join(h.write(link{seq: e.Seq, hash: e.Hash}), h.close()); err != nil {
				t.Fatal(err)
			}
		}, true, ""},
		{"last line cut off", func(t *testing.T, path string) {
			write(t, path, bytes.Join(splitLines(read(t, path))[:2], nil))
		}, false, "truncated"},
		{"last line cut in half", func(t *testing.T, path string) {
			b := read(t, path)
			write(t, path, b[:len(b)-50])
		}, false, "torn truncated"},
		{"last line changed", func(t *testing.T, path string) {
			b := read(t, path)
			i := bytes.LastIndex(b, []byte("acme"))
			b[i] ^= 1
			write(t, path, b)
		}, false, "changed"},
		{"last line replaced, hash fitting", func(t *testing.T, path string) {
			lines := splitLines(read(t, path))
			var e Entry
			if err := json.Unmarshal(lines[2], &e); err != nil {
				t.Fatal(err)
			}
			e.Pack = "evil"
			line, err := encode(&e)
			if err != nil {
				t.Fatal(err)
			}
			write(t, path, slices.Concat(lines[0], lines[1], line))
		}, false, "changed"},
		{"everything cut off", func(t *testing.T, path string) { write(t, path, nil) }, false, "truncated"},
		{"file removed", func(t *testing.T, path string) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}, false, "truncated"},
		{"head removed", func(t *testing.T, path string) {
			if err := os.Remove(headPath(path)); err != nil {
				t.Fatal(err)
			}
		}, false, "truncated"},
		{"head damaged", func(t *testing.T, path string) { write(t, headPath(path), []byte("3 abc\n")) }, false, "truncated"},
		{"head too long", func(t *testing.T, path string) {
			write(t, headPath(path), append(read(t, headPath(path)), "more\n"...))
		}, false, "truncated"},
	} {
		for _, running := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, writer open %v", tc.name, running), func(t *testing.T) {
				path := newLog(t, 3)
				var l *Log
				if running { // it read the log before the damage
					l = openLog(t, path, testOptions(t))
					tc.edit(t, path)
				} else {
					tc.edit(t, path)
					l = openLog(t, path, testOptions(t))
				}
				mustAppend(t, l, EventRunEnd, EventDecision)
				// A writer does not read the end again while the file has the
				// same size; Verify still sees the damage.
				if r := verified(t, path); !running && (r.OK != tc.ok || kinds(r) != tc.want) {
					t.Errorf("Verify() = OK %v, %v, want OK %v, %q", r.OK, r.Problems, tc.ok, tc.want)
				} else if running && !tc.ok && r.OK && !bytes.Contains([]byte(tc.name), []byte("head")) {
					t.Errorf("Verify() = OK, want %q", tc.want)
				}
				if again := openLog(t, path, testOptions(t)); again.pos.recovery != nil {
					t.Errorf("the log is still damaged: %+v", again.pos.recovery)
				}
			})
		}
	}
}

func TestVerifyNoLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if _, err := Verify(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Verify(%q) = %v, want fs.ErrNotExist", path, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) > 0 {
		t.Errorf("Verify left %v, %v, want nothing", entries, err)
	}
	for _, err := range Read(path) {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Read(%q) = %v, want fs.ErrNotExist", path, err)
		}
	}
	if err := openLog(t, path, testOptions(t)).Close(); err != nil {
		t.Fatal(err)
	}
	if r := verified(t, path); !r.OK || r.Entries != 0 {
		t.Errorf("Verify() of an empty log = %+v, want OK", r)
	}
}

func TestVerifyBoundsItsReport(t *testing.T) {
	path := newLog(t, 1)
	write(t, path, bytes.Repeat([]byte("x\n"), maxProblems+10))
	r := verified(t, path)
	if r.OK || len(r.Problems) != maxProblems || r.More < 10 {
		t.Errorf("Verify() gave %d problems and %d more, want %d and at least 10", len(r.Problems), r.More, maxProblems)
	}
}

func TestReadLinesBoundsALine(t *testing.T) {
	long := bytes.Repeat([]byte("x"), maxLine+5)
	var sizes []int64
	for line, err := range readLines(bytes.NewReader(slices.Concat([]byte("a\n"), long, []byte("\nb"))), "x") {
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, line.size)
		if (line.tooLong() != nil) != (line.number == 2) || len(line.text) > maxLine {
			t.Errorf("line %d has %d bytes of %d, tooLong() = %v", line.number, len(line.text), line.size, line.tooLong())
		}
	}
	if want := []int64{1, maxLine + 5, 1}; !slices.Equal(sizes, want) {
		t.Errorf("readLines gave lines of %v, want %v", sizes, want)
	}
}
