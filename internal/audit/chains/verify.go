package chains

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// Report is what [Verify] found.
type Report struct {
	OK          bool // there is no problem except, perhaps, torn lines
	Chains      []ChainReport
	Entries     int       // intact ones
	From, To    time.Time // of the oldest and of the newest of them
	Checkpoints int       // intact ones
	Last        string    // the hash of the last checkpoint: note it elsewhere
	LastTime    time.Time
	Keys        []string // the public keys that have signed something
	// Trusted says that the keys were the caller's; otherwise the export names them
	// itself.
	Trusted  bool
	Problems []audit.Problem // at most 1,000
	More     int             // how many more problems there are
	Runs     []audit.LooseRun
}

// ChainReport is about one chain.
type ChainReport struct {
	Name    string
	Entries int
	Last    int64 // number of its last intact entry
	Pruned  int64 // up to this entry, the beginning may have been removed
	// Covered is the newest entry that a checkpoint names. Nobody can notice that
	// entries after it were cut off.
	Covered int64
}

// Check says what a verification compares the export with.
type Check struct {
	// Keys are the public keys that may have signed; nil: those that the export names.
	Keys []string
	// Noted is the hash of a checkpoint that was noted elsewhere; "": none was.
	Noted string
}

// maxProblems bounds a report about files that are not an export at all.
const maxProblems = 1000

// Verify reads an export and reports whether each chain is as it was written, and as the
// checkpoints name it. It returns an error only if the export cannot be read.
func Verify(dir string, c Check) (Report, error) {
	v, err := verify(dir, c)
	if err != nil {
		return Report{}, fmt.Errorf("verifying the export %q: %w", dir, err)
	}
	return v.report, nil
}

// A claim is what a checkpoint says of an entry.
type claim struct {
	hash   string
	number int64 // of the checkpoint
}

type verifier struct {
	dir    string
	keys   []string
	used   map[string]bool
	report Report
	claims map[string]map[int64]claim // :: chain → number of an entry → what checkpoints say
	pruned map[string]head
	last   checkpoint
	runs   audit.Runs
	before time.Time
	cuts   map[string]head   // :: chain → its newest sealed entry that is older than before and that a checkpoint names
	ends   map[string]sealed // :: chain → its last seal, if nothing comes after its server's stop
}

func verify(dir string, c Check) (*verifier, error) {
	v := &verifier{
		dir: dir, keys: c.Keys, used: make(map[string]bool), claims: make(map[string]map[int64]claim), pruned: make(map[string]head),
		cuts: make(map[string]head), ends: make(map[string]sealed),
	}
	return v, v.all(c.Noted)
}

func (v *verifier) all(noted string) error {
	v.report.Trusted = v.keys != nil
	text, err := os.ReadFile(filepath.Join(v.dir, aboutFile))
	if err != nil {
		return err
	}
	var a about
	if err := json.Unmarshal(text, &a); err != nil || a.Format != 1 {
		return fmt.Errorf("%s is not of this version", aboutFile)
	}
	if v.keys == nil {
		v.keys = a.Keys
	}
	if err := v.checkpoints(noted); err != nil {
		return err
	}
	files, err := os.ReadDir(filepath.Join(v.dir, chainsDir))
	if err != nil {
		return err
	}
	there := make(map[string]bool)
	for _, f := range files {
		if name, ok := strings.CutSuffix(f.Name(), chainEnding); ok {
			there[name] = true
		} else {
			v.problem(filepath.Join(chainsDir, f.Name()), 0, audit.Changed, "the file is not of the export")
		}
	}
	for name := range v.claims {
		there[name] = there[name] || false
	}
	for _, name := range slices.Sorted(maps.Keys(there)) {
		if !there[name] {
			v.missing(name)
			continue
		}
		if err := v.chain(name); err != nil {
			return err
		}
	}
	v.report.Keys = slices.Sorted(maps.Keys(v.used))
	v.report.Runs = v.runs.Loose()
	v.report.OK = v.report.More == 0
	for _, p := range v.report.Problems {
		v.report.OK = v.report.OK && p.Kind == audit.Torn
	}
	return nil
}

func (v *verifier) problem(file string, line int, kind audit.ProblemKind, format string, args ...any) {
	if len(v.report.Problems) >= maxProblems {
		v.report.More++
		return
	}
	v.report.Problems = append(v.report.Problems, audit.Problem{File: file, Line: line, Kind: kind, Message: fmt.Sprintf(format, args...)})
}

// unsign is unsign with the keys of the verification.
func (v *verifier) unsign(line []byte, to any) error {
	err := unsign(line, v.keys, to)
	if err == nil {
		v.used[keyOf(line)] = true
	}
	return err
}

// checkpoints reads the checkpoints, and what they say.
func (v *verifier) checkpoints(noted string) error {
	known := noted == ""
	prev := ""
	err := v.lines(checkpointsFile, func(n int, line []byte, whole bool) {
		var c checkpoint
		err := v.unsign(line, &c)
		switch {
		case !bytes.HasPrefix(line, []byte(checkpointPrefix)) || !whole:
			v.problem(checkpointsFile, n, audit.Changed, "the line is not a checkpoint")
			prev = ""
			return
		case err != nil:
			v.problem(checkpointsFile, n, audit.Changed, "no replica wrote the checkpoint as it is: %v", err)
			prev = ""
			return
		}
		hash := hashOf(line)
		first := v.report.Checkpoints == 0
		switch {
		case first && n == 1 && c.Number == 1 && c.Prev == zeroHash, first && n == 1 && c.Whole:
		case first && n == 1:
			v.problem(checkpointsFile, n, audit.Dropped, "the checkpoints before number %d are missing", c.Number)
		case prev != "" && c.Number <= v.last.Number:
			v.problem(checkpointsFile, n, audit.Repeated, "checkpoint %d is there again, or is out of place", c.Number)
			return
		case prev != "" && c.Number != v.last.Number+1:
			v.problem(checkpointsFile, n, audit.Dropped, "the checkpoints between number %d and number %d are missing", v.last.Number, c.Number)
		case prev != "" && c.Prev != prev:
			v.problem(checkpointsFile, n, audit.Changed, "the checkpoint does not continue the one before: one of the two was replaced")
		}
		v.report.Checkpoints++
		prev, v.last = hash, c
		known = known || hash == noted || first && c.Prev == noted
		for chain, h := range c.Heads {
			of := v.claims[chain]
			if of == nil {
				of = make(map[int64]claim)
				v.claims[chain] = of
			}
			if said, again := of[h.Seq]; again && said.hash != h.Hash {
				v.problem(checkpointsFile, n, audit.Changed, "checkpoints %d and %d name different entries %d of the chain %s", said.number, c.Number, h.Seq, chain)
			}
			of[h.Seq] = claim{h.Hash, c.Number}
		}
		for chain, h := range c.Pruned {
			if h.Seq > v.pruned[chain].Seq {
				v.pruned[chain] = h
			}
		}
		v.report.Last, v.report.LastTime = hash, c.Time
	})
	if err == nil && !known {
		v.problem(checkpointsFile, 0, audit.Truncated, "the checkpoint that was noted is not there: the log was cut off before it, or is another one")
	}
	return err
}

// newest returns the newest entry of a chain that a checkpoint names.
func (v *verifier) newest(chain string) (seq int64, c claim) {
	for s, said := range v.claims[chain] {
		if s > seq {
			seq, c = s, said
		}
	}
	return seq, c
}

// missing judges a chain of which there is no file.
func (v *verifier) missing(chain string) {
	seq, c := v.newest(chain)
	if v.pruned[chain].Seq < seq {
		v.problem(filepath.Join(chainsDir, chain+chainEnding), 0, audit.Dropped, "the chain is missing; checkpoint %d names its entry %d", c.number, seq)
	}
}

// chain judges a chain.
func (v *verifier) chain(name string) error {
	file := filepath.Join(chainsDir, name+chainEnding)
	r := ChainReport{Name: name, Pruned: v.pruned[name].Seq}
	r.Covered, _ = v.newest(name)
	var (
		last     head      // of the entries so far
		sealedTo int64     // the last entry with a seal
		times    time.Time // of the newest entry so far
		stopped  bool      // the last entry is its server's stop
		damaged  bool      // a line is wrong, which was reported
		open     int       // the first line without a seal; 0: there is none
	)
	err := v.lines(file, func(n int, line []byte, whole bool) {
		if bytes.HasPrefix(line, []byte(sealPrefix)) && whole {
			var s sealed
			err := v.unsign(line, &s)
			switch {
			case err != nil:
				v.problem(file, n, audit.Changed, "no replica wrote the seal as it is: %v", err)
			case s.Chain != name:
				v.problem(file, n, audit.Changed, "the seal is of the chain %s", s.Chain)
			case s.Seq <= sealedTo:
				v.problem(file, n, audit.Repeated, "the seal of entry %d is there again, or is out of place", s.Seq)
			case (s.Seq != last.Seq || s.Last != last.Hash) && !damaged:
				v.problem(file, n, audit.Changed, "the seal is not of the entries before it")
			default:
				sealedTo = s.Seq
				if times.Before(v.before) && s.Seq <= r.Covered {
					v.cuts[name] = head{s.Seq, s.Last}
				}
				if stopped {
					v.ends[name] = s
				} else {
					delete(v.ends, name)
				}
			}
			if err == nil && s.Chain == name && s.Seq > last.Seq {
				last = head{s.Seq, s.Last} // the damaged line cannot say it
			}
			open, damaged = 0, false
			return
		}
		if open == 0 {
			open = n
		}
		e, intact := audit.ParseLine(line)
		if !intact || !whole {
			if whole && !damaged {
				v.problem(file, n, audit.Changed, "the line was changed after it was written")
			}
			damaged = true
			return
		}
		v.entry(file, n, e, last, r, damaged)
		if e.Seq > last.Seq {
			last, times = head{e.Seq, e.Hash}, later(times, e.Time)
		}
		stopped = e.Event == audit.EventServerStop
		r.Entries++
		v.runs.Add(audit.Line{File: file, Number: n, Entry: e})
		v.times(e.Time)
	})
	if err != nil {
		return err
	}
	switch {
	case open > 0 && r.Covered <= sealedTo:
		v.problem(file, open, audit.Torn, "a server was stopped while it wrote; what follows has no seal and was not acknowledged")
	case open > 0:
		v.problem(file, open, audit.Changed, "what follows has no seal")
	}
	if seq, c := v.newest(name); seq > last.Seq && v.pruned[name].Seq < seq {
		v.problem(file, 0, audit.Truncated, "the chain ends with entry %d, but checkpoint %d names its entry %d: what followed was cut off", last.Seq, c.number, seq)
	}
	r.Last = last.Seq
	v.report.Entries += r.Entries
	v.report.Chains = append(v.report.Chains, r)
	return nil
}

// entry judges whether an intact entry is in its place. last is the one before it.
func (v *verifier) entry(file string, n int, e audit.Entry, last head, r ChainReport, damaged bool) {
	cut := v.pruned[r.Name]
	switch {
	case last.Seq == 0 && e.Seq == 1 && e.Prev == zeroHash:
	case last.Seq == 0 && e.Seq == cut.Seq+1 && e.Prev == cut.Hash, last.Seq == 0 && e.Seq > 1 && e.Seq <= cut.Seq: // pruned
	case last.Seq == 0:
		if !damaged {
			v.problem(file, n, audit.Dropped, "the entries before number %d are missing", e.Seq)
		}
	case e.Seq <= last.Seq:
		v.problem(file, n, audit.Repeated, "entry %d is there again, or is out of place", e.Seq)
	case damaged:
	case e.Seq != last.Seq+1:
		v.problem(file, n, audit.Dropped, "the entries between number %d and number %d are missing", last.Seq, e.Seq)
	case e.Prev != last.Hash:
		v.problem(file, n, audit.Changed, "the line does not continue the one before: one of the two was replaced")
	}
	if said, ok := v.claims[r.Name][e.Seq]; ok && said.hash != e.Hash {
		v.problem(file, n, audit.Changed, "the entry is not the one that checkpoint %d names", said.number)
	}
	if e.Seq == cut.Seq && e.Hash != cut.Hash {
		v.problem(file, n, audit.Changed, "the entry is not the one up to which the log was pruned")
	}
}

func (v *verifier) times(t time.Time) {
	if v.report.From.IsZero() || t.Before(v.report.From) {
		v.report.From = t
	}
	v.report.To = later(v.report.To, t)
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// lines calls f with the lines of a file, without their line feeds, from number 1. The
// last one may not be whole.
func (v *verifier) lines(file string, f func(n int, line []byte, whole bool)) error {
	path := filepath.Join(v.dir, file)
	fi, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		v.problem(file, 0, audit.Dropped, "the file is missing")
		return nil
	}
	if err != nil {
		return err
	}
	if !fi.Mode().IsRegular() {
		return fmt.Errorf("%q is not a regular file", file)
	}
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	r := bufio.NewReaderSize(in, 64<<10)
	var line []byte
	for n := 1; ; {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > audit.MaxLine+1 {
			return fmt.Errorf("line %d of %q is longer than any entry", n, file)
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return err
		}
		text, whole := bytes.CutSuffix(line, []byte("\n"))
		if whole || len(text) > 0 {
			f(n, text, whole)
		}
		if err != nil {
			return nil
		}
		line, n = line[:0], n+1
	}
}
