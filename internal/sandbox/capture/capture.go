// Package capture keeps a run's output within bounds: the head and tail of each
// stream in memory, and, if a stream does not fit, all of it in a file in the run's
// workspace.
//
// It does not make the output safe to show.
package capture

import (
	"io"
	"os"
	"sync"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// An Output takes a run's output. The limits bound its memory.
type Output struct {
	over chan struct{} // closed by write when the budget is used up

	mu                     sync.Mutex // guards everything below, and the buffers
	room                   int64      // bytes that may still come
	exceeded               bool
	stdout, stderr, merged buffer
}

// New returns the Output for a run of c. All of limits are set. root is the run's
// workspace; nil: it has none.
func New(c *sandbox.Command, limits sandbox.Limits, root *os.Root) *Output {
	spillTo := func(stream string) *spill {
		s := &spill{root: root}
		if c.RunID != "" {
			s.name = Dir + "/" + c.RunID + "." + stream
		}
		return s
	}
	out := &Output{over: make(chan struct{}), room: limits.OutputTotal}
	out.merged.limit = limits.OutputMerged
	out.stdout = buffer{limit: limits.Output, most: sandbox.MaxWhole}
	out.stderr = buffer{limit: limits.Output}
	if c.Join {
		out.merged.spill = spillTo("output")
	} else {
		out.stdout.spill, out.stderr.spill = spillTo("stdout"), spillTo("stderr")
	}
	return out
}

// Over returns a channel that is closed when the output exceeds Limits.OutputTotal.
func (o *Output) Over() <-chan struct{} { return o.over }

// ReadStdout reads standard output until its end, an error, or the end of the budget.
func (o *Output) ReadStdout(r io.Reader) { o.copy(r, &o.stdout) }

// ReadStderr does the same with standard error.
func (o *Output) ReadStderr(r io.Reader) { o.copy(r, &o.stderr) }

// Exceeded reports whether Over is closed.
func (o *Output) Exceeded() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.exceeded
}

// Report adds the captured output to res. All reading must be over.
func (o *Output) Report(res *sandbox.Result) {
	res.Stdout, res.Stderr, res.Merged = o.stdout.capture(), o.stderr.capture(), o.merged.capture()
}

// copy reads r into b and the merged buffer until the end, an error, or the end
// of the budget.
func (o *Output) copy(r io.Reader, b *buffer) {
	chunk := make([]byte, 32<<10)
	for {
		n, err := r.Read(chunk)
		if !o.write(b, chunk[:n]) || err != nil {
			return
		}
	}
}

// write reports whether the budget leaves room for more.
func (o *Output) write(b *buffer, p []byte) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	take := p[:min(int64(len(p)), o.room)]
	o.room -= int64(len(take))
	o.merged.write(take)
	b.write(take)
	if len(take) < len(p) && !o.exceeded {
		o.exceeded = true
		close(o.over)
	}
	return !o.exceeded
}

// A buffer keeps the head and the tail of a stream.
type buffer struct {
	limit int    // of head and tail together
	most  int    // up to how many bytes all of it is kept as well; 0: never
	whole []byte // all of it so far; nil once there is more than most
	spill *spill // gets everything once the limit is passed; nil: none
	head  []byte
	tail  []byte // its last limit - limit/2 bytes count
	total int64
}

func (b *buffer) write(p []byte) {
	if len(p) == 0 {
		return
	}
	if b.spill != nil && b.total+int64(len(p)) > int64(b.limit) {
		if b.total <= int64(b.limit) { // head and tail are complete so far
			b.spill.open()
			b.spill.write(b.head)
			b.spill.write(b.tail)
		}
		b.spill.write(p)
	}
	b.total += int64(len(p))
	if b.total <= int64(b.most) {
		b.whole = append(b.whole, p...)
	} else {
		b.whole = nil
	}

	n := min(len(p), b.limit/2-len(b.head))
	b.head = append(b.head, p[:n]...)
	p = p[n:]
	keep := b.limit - b.limit/2
	if len(p) >= keep {
		b.tail = append(b.tail[:0], p[len(p)-keep:]...)
		return
	}
	if len(b.tail)+len(p) > 2*keep {
		n := copy(b.tail, b.tail[len(b.tail)-keep:])
		b.tail = b.tail[:n]
	}
	b.tail = append(b.tail, p...)
}

// capture returns what is kept. The buffer must not be written to afterwards.
func (b *buffer) capture() sandbox.Capture {
	c := sandbox.Capture{Head: b.head, Tail: b.tail, Total: b.total}
	if keep := b.limit - b.limit/2; len(c.Tail) > keep {
		c.Tail = c.Tail[len(c.Tail)-keep:]
	}
	if b.total > int64(len(c.Head)+len(c.Tail)) {
		c.Head = trimPartialEnd(c.Head)
		c.Tail = trimPartialStart(c.Tail)
	}
	c.Dropped = c.Total - int64(len(c.Head)) - int64(len(c.Tail))
	if c.Dropped > 0 {
		c.Whole = b.whole
	}
	if b.spill != nil && c.Dropped > 0 {
		c.File, c.NotKept = b.spill.result()
	}
	return c
}

// Cut returns the capture of a stream p with that limit.
func Cut(p []byte, limit int) sandbox.Capture {
	b := buffer{limit: limit}
	b.write(p)
	return b.capture()
}

// trimPartialEnd removes the beginning of a UTF-8 character from the end of p.
func trimPartialEnd(p []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if c := p[len(p)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-i:]) {
				return p[:len(p)-i]
			}
			break
		}
	}
	return p
}

// trimPartialStart removes the end of a UTF-8 character from the start of p.
func trimPartialStart(p []byte) []byte {
	for i := 0; i < utf8.UTFMax && i < len(p); i++ {
		if utf8.RuneStart(p[i]) {
			return p[i:]
		}
	}
	return p
}

// Dir is the folder of the workspace that holds output that did not fit.
const Dir = ".packs-mcp"

// A spill is a file in the workspace with all the bytes of one stream. The program
// can write to that folder, so no link in it is followed.
type spill struct {
	root    *os.Root // nil: there is no workspace
	name    string   // slash path in root
	file    *os.File
	notKept string // why there is no file
}

// open creates the file, or notes why not.
func (s *spill) open() {
	switch {
	case s.root == nil:
		s.notKept = "the run has no workspace"
		return
	case s.name == "":
		s.notKept = "the run has no id"
		return
	}
	_ = s.root.Mkdir(Dir, 0o700) // the next call checks that it exists
	if info, err := s.root.Lstat(Dir); err != nil || !info.IsDir() {
		s.notKept = Dir + " in the workspace is not a folder"
		return
	}
	file, err := s.root.OpenFile(s.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		s.notKept = "creating the file: " + paths.Cause(err)
		return
	}
	s.file = file
	if !s.ours() {
		s.abandon("the program replaced " + Dir + " in the workspace")
	}
}

// ours reports whether the name still leads to the file that we opened, through a real
// folder, and whether the file has no other name.
func (s *spill) ours() bool {
	dir, err := s.root.Lstat(Dir)
	if err != nil || !dir.IsDir() {
		return false
	}
	there, err := s.root.Lstat(s.name)
	if err != nil {
		return false
	}
	here, err := s.file.Stat()
	return err == nil && os.SameFile(there, here) && paths.StampOf(here).Links == 1
}

func (s *spill) write(p []byte) {
	if s.file == nil {
		return
	}
	if _, err := s.file.Write(p); err != nil {
		_ = s.root.Remove(s.name)
		s.abandon("writing the file: " + paths.Cause(err))
	}
}

func (s *spill) abandon(why string) {
	_ = s.file.Close()
	s.file, s.notKept = nil, why
}

// result closes the file, and returns its name or why there is none.
func (s *spill) result() (name, notKept string) {
	if s.file == nil {
		return "", s.notKept
	}
	if !s.ours() {
		s.abandon("the program replaced the file")
		return "", s.notKept
	}
	if err := s.file.Close(); err != nil {
		return "", "writing the file: " + paths.Cause(err)
	}
	return s.name, ""
}
