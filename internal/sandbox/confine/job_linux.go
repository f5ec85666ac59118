//go:build amd64 || arm64

package confine

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/seccomp"
)

// A Job is one program with everything that confines it.
type Job struct {
	Path      string // absolute; of the program
	Args, Env []string
	Files     []File // that must be unchanged when the program is started
	Dir       string // absolute; the working folder
	DirID     ID

	Namespaces bool        // user, PID, network, IPC, mount and UTS namespaces, and a file tree of its own
	HostNet    bool        // with Namespaces: except the network namespace
	Loopback   bool        // with Namespaces and without HostNet: bring up the loopback interface
	Listen     uint64      // with Loopback: port on which the server gets a listener; 0: none
	Binds      []Bind      // of the tree, parents before what is below them
	Links      []Link      // of the tree
	TmpSize    int64       // bytes of /tmp, and of /dev/shm
	Layer      TmpfsLimits // bounds the changes in all layered folders together

	Landlock Ruleset // its zero value is none
	Filter   seccomp.Filter
	Limits   Limits
	// Group is the name of a control group to bound all processes with; empty: none. The
	// job fails if there can be none and Limits need it, for Together or Processors.
	Group string

	// Contained says that the helper is the first process of a container, whose control group
	// bounds the memory of the job.
	Contained bool
}

// An ID identifies a folder. The zero value matches any.
type ID struct{ Dev, Ino uint64 }

// TmpfsLimits bounds a file system in memory.
type TmpfsLimits struct {
	Bytes int64
	Names int64 // files, folders and links
}

// A File is the program or a script's interpreter, with its state when it was hashed.
type File struct {
	Path  string // absolute
	State State
	// System says that the file is in a system folder, where only root can replace it.
	// It is then started by its path, so that the process gets its name.
	System bool
}

// A State identifies a file with its present content: writing to the file changes it.
// The zero value matches any.
type State struct {
	ID
	Size                 uint64
	Seconds, Nanoseconds uint64 // of the last status change (ctime)
}

// A Bind is a folder or file that the run sees. Its path on the host is the same
// unless From is set.
type Bind struct {
	Path     string // absolute, clean, no symbolic link at its end
	From     string // absolute, without symbolic links; empty: Path
	Writable bool
	File     bool // not a folder
	Optional bool // a missing one is no failure
	Device   bool // a file that is a device
	Layered  bool // with Writable: the folder itself stays as it is; see [MaxLayers]
	ID       ID   // the expected identity
}

// MaxLayers is how many layered folders a job may have.
//
// A program's writes to a layered folder go to a folder in memory. Before the program
// starts, the server gets descriptors of these folders in the order of the job's Binds,
// with an empty message: a head with the length 0. Before them, and in the same way, it
// gets the listener if the job has one.
const MaxLayers = 16

// A Link is a symbolic link of the tree.
type Link struct{ Path, Target string }

// A Ruleset is what Landlock allows.
type Ruleset struct {
	FS, Net, Scoped uint64 // rights refused unless a rule allows them, as in struct landlock_ruleset_attr
	Rules           []Rule
}

// A Rule allows something below a path.
type Rule struct {
	Path   string // as seen inside, without symbolic links
	Access uint64 // as in struct landlock_path_beneath_attr; for a file, only rights that files have
	ID     ID     // the expected identity
}

// Limits are the program's limits; a zero field sets none.
type Limits struct {
	CPU       int64 // seconds
	Data      int64 // bytes
	Processes int64

	// Together and Processors bound all processes of the job; they take Job.Group.
	Together   int64 // bytes
	Processors int64

	Files    int64 // open at one time
	FileSize int64 // bytes
}

// An orderByte is what the server sends after the job.
type orderByte = byte

const (
	OrderTerminate orderByte = 'T' // SIGTERM to everything
	OrderKill      orderByte = 'K' // SIGKILL to everything
)

// A Report is what the helper sends when no process of the job is left.
type Report struct {
	Failed bool   // the program was not started
	Step   string // with Failed: the step that failed, such as "mount /usr"
	Errno  uint64 // with Failed

	Status  uint64 // of the program, as wait(2) gives it
	CPU     int64  // microseconds, user and system
	MaxRSS  int64  // KiB
	TooMany bool   // killed for having more processes than Limits.Processes
	TooMuch bool   // killed for having more memory than Limits.Together, or than its container
}

// Steps of a report that concern the program and not its confinement.
const (
	StepStart  = "start the program"
	StepFolder = "enter the working folder"

	// StepListen fails where the filter cannot have a listener: a container manager
	// already has one, or the kernel is too old. Filter.NoListener needs none.
	StepListen = "have the seccomp filter ask the supervisor"

	// StepGroup fails where no control group has the job's bounds. The reason follows it.
	StepGroup = "make a control group for the program: "

	// Steps that found a different file than the approved one.
	StepProgram     = "find the program as it was"
	StepInterpreter = "find the interpreter as it was: " // and its path

	// Replaced ends the name of a step that found a different folder than expected.
	Replaced = "is not the folder it was"
)

var errMalformed = errors.New("malformed message")

// A codec writes values, or reads them back in the same order. Using one function for
// both keeps them in step.
type codec struct {
	out     []byte
	in      []byte
	reading bool
	bad     bool
}

func (c *codec) uint(v *uint64) {
	if !c.reading {
		c.out = binary.AppendUvarint(c.out, *v)
		return
	}
	x, n := binary.Uvarint(c.in)
	if n <= 0 {
		c.bad, c.in = true, nil
		return
	}
	*v, c.in = x, c.in[n:]
}

func (c *codec) int(v *int64) {
	u := uint64(*v)
	c.uint(&u)
	*v = int64(u)
}

func (c *codec) bool(v *bool) {
	var u uint64
	if *v {
		u = 1
	}
	c.uint(&u)
	*v = u == 1
}

func (c *codec) string(v *string) {
	n := uint64(len(*v))
	c.uint(&n)
	if !c.reading {
		c.out = append(c.out, *v...)
		return
	}
	if n > uint64(len(c.in)) {
		c.bad, c.in = true, nil
		return
	}
	*v, c.in = string(c.in[:n]), c.in[n:]
}

// list codes the elements of v one by one.
func list[T any](c *codec, v *[]T, element func(*T)) {
	n := uint64(len(*v))
	c.uint(&n)
	if c.reading {
		if n > uint64(len(c.in)) { // each takes at least a byte
			c.bad, c.in = true, nil
			return
		}
		*v = make([]T, n)
	}
	for i := range *v {
		element(&(*v)[i])
	}
}

func (c *codec) id(v *ID) {
	c.uint(&v.Dev)
	c.uint(&v.Ino)
}

func (c *codec) job(j *Job) {
	c.string(&j.Path)
	list(c, &j.Args, c.string)
	list(c, &j.Env, c.string)
	list(c, &j.Files, func(f *File) {
		c.string(&f.Path)
		c.id(&f.State.ID)
		c.uint(&f.State.Size)
		c.uint(&f.State.Seconds)
		c.uint(&f.State.Nanoseconds)
		c.bool(&f.System)
	})
	c.string(&j.Dir)
	c.id(&j.DirID)
	c.bool(&j.Namespaces)
	c.bool(&j.HostNet)
	c.bool(&j.Loopback)
	c.uint(&j.Listen)
	list(c, &j.Binds, func(b *Bind) {
		c.string(&b.Path)
		c.string(&b.From)
		c.bool(&b.Writable)
		c.bool(&b.File)
		c.bool(&b.Optional)
		c.bool(&b.Device)
		c.bool(&b.Layered)
		c.id(&b.ID)
	})
	list(c, &j.Links, func(l *Link) {
		c.string(&l.Path)
		c.string(&l.Target)
	})
	c.int(&j.TmpSize)
	c.int(&j.Layer.Bytes)
	c.int(&j.Layer.Names)
	c.uint(&j.Landlock.FS)
	c.uint(&j.Landlock.Net)
	c.uint(&j.Landlock.Scoped)
	list(c, &j.Landlock.Rules, func(r *Rule) {
		c.string(&r.Path)
		c.uint(&r.Access)
		c.id(&r.ID)
	})
	c.uint((*uint64)(&j.Filter.Network))
	c.bool(&j.Filter.Alone)
	c.bool(&j.Filter.Counted)
	c.bool(&j.Filter.NoScope)
	list(c, &j.Filter.Keep, c.int)
	c.bool(&j.Filter.NoListener)
	c.int(&j.Filter.Piece)
	c.int(&j.Limits.CPU)
	c.int(&j.Limits.Data)
	c.int(&j.Limits.Processes)
	c.int(&j.Limits.Together)
	c.int(&j.Limits.Processors)
	c.int(&j.Limits.Files)
	c.int(&j.Limits.FileSize)
	c.string(&j.Group)
	c.bool(&j.Contained)
}

func (c *codec) report(r *Report) {
	c.bool(&r.Failed)
	c.string(&r.Step)
	c.uint(&r.Errno)
	c.uint(&r.Status)
	c.int(&r.CPU)
	c.int(&r.MaxRSS)
	c.bool(&r.TooMany)
	c.bool(&r.TooMuch)
}

// HeadSize is the size in bytes of what precedes a message: its length.
const HeadSize = 4

// Length returns how many bytes follow a message's head.
func Length(head [HeadSize]byte) uint32 { return binary.LittleEndian.Uint32(head[:]) }

func framed(write func(*codec)) []byte {
	c := codec{out: make([]byte, HeadSize, 4096)}
	write(&c)
	n := len(c.out) - HeadSize
	if n > math.MaxUint32 {
		return nil // arguments never take that much; the reader reports a malformed message
	}
	binary.LittleEndian.PutUint32(c.out, uint32(n))
	return c.out
}

func parsed(message []byte, read func(*codec)) error {
	c := codec{in: message, reading: true}
	read(&c)
	if c.bad || len(c.in) > 0 {
		return errMalformed
	}
	return nil
}

// Message returns j as the helper reads it: the length in HeadSize bytes, then the
// job.
func (j *Job) Message() []byte { return framed(func(c *codec) { c.job(j) }) }

// parseJob is the inverse of [Job.Message], without the length.
func parseJob(message []byte) (*Job, error) {
	var j Job
	return &j, parsed(message, func(c *codec) { c.job(&j) })
}

// Message returns r as the server reads it.
func (r *Report) Message() []byte { return framed(func(c *codec) { c.report(r) }) }

// ParseReport is the inverse of [Report.Message], without the length.
func ParseReport(message []byte) (*Report, error) {
	var r Report
	return &r, parsed(message, func(c *codec) { c.report(&r) })
}
