package audit

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
)

// ProblemKind says what is wrong with a log.
type ProblemKind string

// The kinds of problem.
const (
	Changed   ProblemKind = "changed"   // a line was changed after it was written
	Dropped   ProblemKind = "dropped"   // lines are missing
	Reordered ProblemKind = "reordered" // a line is out of place
	Repeated  ProblemKind = "repeated"  // a line, or its number, occurs more than once
	Truncated ProblemKind = "truncated" // lines are missing at the end, or cannot be proved present
	Mode      ProblemKind = "mode"      // others can read or write a file, or could have replaced it
	Torn      ProblemKind = "torn"      // a writer was stopped in the middle of a line; no entry is lost
)

// Problem is one thing wrong with a log.
type Problem struct {
	File    string // where
	Line    int    // from 1; 0 for the file as a whole
	Kind    ProblemKind
	Message string // for people, one sentence without full stop
}

func (p Problem) String() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s: %s", p.File, p.Kind, p.Message)
	}
	return fmt.Sprintf("%s:%d: %s: %s", p.File, p.Line, p.Kind, p.Message)
}

// Report is what Verify found.
type Report struct {
	// OK reports that the log is what was written to it: there is no problem
	// except, perhaps, torn lines.
	OK       bool
	Files    []string  // the files read, oldest first
	Entries  int       // intact lines
	First    int64     // number of the first intact entry; 0 when there is none
	Last     int64     // highest number
	From, To time.Time // of the first and of the last intact entry; zero when there is none
	Hash     string    // of the entry with the highest number: note it elsewhere to pin the log down
	Problems []Problem // in the order of files and lines; at most 1,000
	More     int       // how many more problems there are
	// Runs are the runs whose start or end is missing from the log. That is not
	// a problem with the chain: a crash leaves it.
	Runs []LooseRun
}

// maxProblems bounds a report about a file that is not a log at all.
const maxProblems = 1000

// Verify reads the log at path, its renamed files first, and reports whether
// each line is as it was written, in its place. If others append meanwhile, it
// judges the log as it was at the start. It returns an error only if the log
// cannot be read: fs.ErrNotExist if there is none.
func Verify(path string) (Report, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Report{}, fmt.Errorf("verifying audit log %q: %w", path, err)
	}
	r, err := verify(path)
	if err != nil {
		return Report{}, fmt.Errorf("verifying audit log %q: %w", path, err)
	}
	return r, nil
}

func verify(path string) (Report, error) {
	v := &verifier{path: path, last: link{hash: zeroHash}}
	parts, err := v.snapshot()
	defer func() {
		for _, p := range parts {
			p.file.Close() // only read from
		}
	}()
	if err != nil {
		return Report{}, err
	}
	for _, p := range parts {
		v.report.Files = append(v.report.Files, p.name)
		for raw, err := range readLines(io.NewSectionReader(p.file, 0, p.size), p.name) {
			if err != nil {
				return Report{}, err
			}
			v.line(p.name, raw)
		}
	}
	v.finish()
	return v.report, nil
}

// A part is one file of the log as it was when Verify began.
type part struct {
	name string
	file *os.File
	size int64
}

// A verifier follows the chain. Where the chain breaks, it continues from the
// line found there, so that one change is one problem.
type verifier struct {
	path    string
	head    link
	headErr error
	report  Report

	last    link   // the entry with the highest number so far
	file    string // where the last line is
	number  int
	damaged int64 // lines since last that most likely were entries once
	runs    Runs  // of the intact entries
	torn    torn  // lines that are not entries, which a recovered event may explain
	gaps    []gap // skipped numbers, ascending
}

type gap struct {
	from, to int64
	file     string // the line after the gap
	line     int
	end      bool // a recovered event says that these were missing at the end
}

// torn collects lines that are not entries.
type torn struct {
	lines []Problem
	sum   hash.Hash
	bytes int64
	open  bool // the last one has no line feed
}

// snapshot opens the files of the log and records the head and the sizes, while
// writers are locked out.
func (v *verifier) snapshot() (parts []part, err error) {
	// Take only an existing lock: Verify writes nothing beside a copy of a log.
	if _, err := os.Lstat(lockPath(v.path)); err == nil {
		lock := flock.New(lockPath(v.path), flock.SetFlag(os.O_RDONLY|openFlags))
		ctx, cancel := context.WithTimeout(context.Background(), lockWait)
		defer cancel()
		if _, err := lock.TryLockContext(ctx, time.Millisecond); err != nil && !errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("locking %q: %w", lock.Path(), err)
		}
		defer lock.Unlock() //nolint:errcheck // closing the file, which the end of Unlock is, unlocks as well
	}
	v.head, v.headErr = readHead(v.path)
	if u, ok := errors.AsType[*UnsafeError](v.headErr); ok {
		v.problem(u.Path, 0, Mode, "the file %s: %s", u.Reason, u.Hint)
	}
	names, err := logFiles(v.path)
	if errors.Is(err, fs.ErrNotExist) && v.headErr == nil && v.head.seq > 0 {
		return nil, nil // the head proves that there was a log
	}
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if fi, err := os.Lstat(name); err == nil {
			if u, ok := errors.AsType[*UnsafeError](checkSafe(name, fi)); ok {
				v.problem(name, 0, Mode, "the file %s: %s", u.Reason, u.Hint)
			}
		}
		f, err := openRead(name)
		if err != nil {
			return parts, err
		}
		fi, err := f.Stat()
		if err != nil {
			return parts, errors.Join(err, f.Close())
		}
		parts = append(parts, part{name, f, fi.Size()})
	}
	return parts, nil
}

func (v *verifier) problem(file string, line int, kind ProblemKind, format string, args ...any) {
	if len(v.report.Problems) >= maxProblems {
		v.report.More++
		return
	}
	v.report.Problems = append(v.report.Problems, Problem{file, line, kind, fmt.Sprintf(format, args...)})
}

// line judges one line.
func (v *verifier) line(file string, raw rawLine) {
	v.file, v.number = file, raw.number
	var e Entry
	intact := false
	err := raw.tooLong()
	if err == nil {
		e, intact, err = parse(raw.text)
	}
	switch {
	case err == nil && intact:
		v.entry(file, raw, e)
	case err == nil && e.Hash != "" && raw.newline:
		v.endTorn(nil)
		v.problem(file, raw.number, Changed, "the line was changed after it was written")
		v.damaged++
	default:
		v.addTorn(file, raw)
	}
}

// entry judges whether an intact entry is in its place.
func (v *verifier) entry(file string, raw rawLine, e Entry) {
	v.endTorn(&e)
	v.report.Entries++
	if v.report.First == 0 {
		v.report.First, v.report.From = e.Seq, e.Time
	}
	v.report.To = e.Time
	v.runs.Add(Line{File: file, Number: raw.number, Entry: e})
	if v.headErr == nil && e.Seq == v.head.seq && e.Hash != v.head.hash {
		v.problem(file, raw.number, Changed, "the entry is not the one that the head file names")
	}
	if e.Seq <= v.last.seq {
		if v.fill(e.Seq) {
			v.problem(file, raw.number, Reordered, "entry %d is not in its place", e.Seq)
		} else {
			v.problem(file, raw.number, Repeated, "there is an entry %d before", e.Seq)
		}
		return
	}
	if from := v.last.seq + v.damaged + 1; from < e.Seq {
		end := e.Recovered != nil && e.Recovered.Missing > 0
		v.gaps = append(v.gaps, gap{from, e.Seq - 1, file, raw.number, end})
	} else if e.Prev != v.last.hash && v.damaged == 0 {
		v.problem(file, raw.number, Changed, "the line does not continue the one before: one of the two was replaced")
	}
	if r := e.Recovered; r != nil {
		switch r.Head {
		case headLost:
			v.problem(file, raw.number, Truncated, "the head file was lost before this line: entries may be missing here")
		case headDiffers:
			v.problem(file, raw.number, Changed, "the head file did not belong to the lines before this one: one of them was replaced")
		}
	}
	if !raw.newline {
		v.problem(file, raw.number, Torn, "the line feed at the end is missing; nothing of the entry is lost")
	}
	v.last = link{seq: e.Seq, hash: e.Hash}
	v.damaged = 0
}

// fill removes seq from the gaps, and reports whether it was in one.
func (v *verifier) fill(seq int64) bool {
	i, found := slices.BinarySearchFunc(v.gaps, seq, func(g gap, seq int64) int {
		switch {
		case g.to < seq:
			return -1
		case g.from > seq:
			return 1
		}
		return 0
	})
	if !found {
		return false
	}
	before, after := v.gaps[i], v.gaps[i]
	before.to, after.from = seq-1, seq+1
	v.gaps = slices.Replace(v.gaps, i, i+1, slices.DeleteFunc([]gap{before, after}, func(g gap) bool { return g.from > g.to })...)
	return true
}

// addTorn records a line that is not an entry. The next entry determines what it
// is.
func (v *verifier) addTorn(file string, raw rawLine) {
	t := &v.torn
	if t.sum == nil {
		t.sum = sha256.New()
	} else {
		t.sum.Write([]byte("\n"))
		t.bytes++
	}
	t.sum.Write(raw.text)
	t.bytes += raw.size // if the line is too long, this is more than was hashed, so nothing explains it
	t.open = !raw.newline
	t.lines = append(t.lines, Problem{File: file, Line: raw.number})
}

// endTorn judges the lines that are not entries, given the intact entry after
// them, or nil.
func (v *verifier) endTorn(next *Entry) {
	t := v.torn
	if t.sum == nil {
		return
	}
	v.torn = torn{}
	explained := false
	if next != nil && next.Recovered != nil && next.Recovered.Torn != nil &&
		(next.Prev == v.last.hash || v.damaged > 0) {
		want := next.Recovered.Torn
		explained = want.Bytes == t.bytes && want.SHA256 == hex.EncodeToString(t.sum.Sum(nil))
	}
	for _, p := range t.lines {
		if explained {
			v.problem(p.File, p.Line, Torn, "a writer was stopped in the middle of the line; the next line records it")
			continue
		}
		v.problem(p.File, p.Line, Changed, "the line is not an audit entry")
		v.damaged++
	}
}

// finish judges the end of the log.
func (v *verifier) finish() {
	r := &v.report
	if t := v.torn; t.open {
		// A crash leaves these. If there was more once, the head shows it below.
		for _, p := range t.lines {
			v.problem(p.File, p.Line, Torn, "a writer was stopped in the middle of the line; the next append will record it")
		}
	} else {
		v.endTorn(nil)
	}
	for _, g := range v.gaps {
		what := fmt.Sprintf("entries %d to %d are missing", g.from, g.to)
		if g.from == g.to {
			what = fmt.Sprintf("entry %d is missing", g.from)
		}
		if g.end {
			v.problem(g.file, g.line, Truncated, "%s before this line: cut off, or lost when the machine stopped", what)
		} else {
			v.problem(g.file, g.line, Dropped, "%s before this line", what)
		}
	}
	switch {
	case errors.Is(v.headErr, fs.ErrNotExist) && r.Entries == 0 && len(r.Problems) == 0:
		// The log was just created.
	case v.headErr != nil:
		v.problem(headPath(v.path), 0, Truncated, "the head file is missing or damaged: nothing proves that no entry was cut off the end")
	case v.head.seq > v.last.seq+v.damaged:
		v.problem(cmp.Or(v.file, v.path), v.number, Truncated, "the log ends with entry %d, but entry %d was written: what followed was cut off, or lost when the machine stopped",
			v.last.seq, v.head.seq)
	}
	r.Last, r.Hash = v.last.seq, v.last.hash
	r.Runs = v.runs.Loose()
	r.OK = r.More == 0
	for _, p := range r.Problems {
		r.OK = r.OK && p.Kind == Torn
	}
	slices.SortStableFunc(r.Problems, func(a, b Problem) int {
		if c := cmp.Compare(slices.Index(r.Files, a.File), slices.Index(r.Files, b.File)); c != 0 {
			return c
		}
		return cmp.Compare(a.Line, b.Line)
	})
}
