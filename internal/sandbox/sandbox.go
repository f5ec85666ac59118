// Package sandbox says what a run is: which program is started ([Command]), what
// it may touch ([Policy]), how far the operating system confines it ([Level]), and
// what came of it ([Result]).
//
// It starts nothing. Package runner does, and only the gate's owner can import
// that. Package sandbox does not decide whether a program may run (package gate
// does), and it does not make text safe to show: output and file names are the
// program's own bytes.
package sandbox

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/hosts"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// A Level says how far a run is confined by the operating system. The zero
// value claims nothing.
type Level int

const (
	LevelNone    Level = iota // not confined at all
	LevelPartial              // less than full; the Report's Gaps say what is open
	LevelFull                 // only what the Policy names can be reached
)

var levelNames = []string{"none", "partial", "full"}

// String returns "none", "partial" or "full".
func (l Level) String() string { return enumString(levelNames, int(l), "Level") }

// ParseLevel is the inverse of [Level.String].
func ParseLevel(s string) (Level, error) {
	i, err := parseEnum(levelNames, s, "sandbox level")
	return Level(i), err
}

// MarshalText implements [encoding.TextMarshaler].
func (l Level) MarshalText() ([]byte, error) { return marshalEnum(levelNames, int(l), "sandbox level") }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (l *Level) UnmarshalText(text []byte) (err error) {
	*l, err = ParseLevel(string(text))
	return err
}

// A Network says what a run may reach. The zero value is nothing.
type Network int

const (
	NetworkNone     Network = iota // no sockets
	NetworkLoopback                // only the run's own processes
	NetworkFull                    // whatever the machine can reach
	NetworkHosts                   // only the run's own processes, and through a proxy the Policy's Hosts
)

var networkNames = []string{"none", "loopback", "full", "hosts"}

// OwnLoopback reports whether a run gets a loopback interface of its own.
func (n Network) OwnLoopback() bool { return n == NetworkLoopback || n == NetworkHosts }

// String returns "none", "loopback", "full" or "hosts".
func (n Network) String() string { return enumString(networkNames, int(n), "Network") }

// ParseNetwork is the inverse of [Network.String].
func ParseNetwork(s string) (Network, error) {
	i, err := parseEnum(networkNames, s, "network")
	return Network(i), err
}

// MarshalText implements [encoding.TextMarshaler].
func (n Network) MarshalText() ([]byte, error) { return marshalEnum(networkNames, int(n), "network") }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (n *Network) UnmarshalText(text []byte) (err error) {
	*n, err = ParseNetwork(string(text))
	return err
}

// Reach returns the part of the network that the run can reach: the name of Network,
// and the Hosts.
func (p *Policy) Reach() []string {
	reach := []string{p.Network.String()}
	for _, h := range p.Hosts {
		reach = append(reach, h.String())
	}
	return reach
}

func enumString(names []string, i int, kind string) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("%s(%d)", kind, i)
	}
	return names[i]
}

func parseEnum(names []string, s, kind string) (int, error) {
	if i := slices.Index(names, s); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("%s %q is not one of %q", kind, s, names)
}

func marshalEnum(names []string, i int, kind string) ([]byte, error) {
	if i < 0 || i >= len(names) {
		return nil, fmt.Errorf("%s %d has no name", kind, i)
	}
	return []byte(names[i]), nil
}

// Limits bounds one run. A field that is 0 stands for its value in
// [DefaultLimits]; a negative one is refused.
type Limits struct {
	Timeout time.Duration // wall clock, from the start of the program
	CPU     time.Duration // processor time; 0 stands for Timeout

	Memory    int64 // bytes of data a process may have
	Processes int   // at one time
	OpenFiles int   // of one process
	FileSize  int64 // bytes of one file; a larger one in the workspace is no artifact
	Workspace int64 // bytes of all files in the workspace after the run

	Layer      int64 // bytes of what the run changes in all Layers together
	LayerNames int   // files, folders and links of the same

	Cache      int64 // bytes that the Cache may hold between runs, and half of what it may hold during a run
	CacheNames int   // files, folders and links of the same

	Output       int   // bytes kept in memory of each stream, half from its head and half from its tail
	OutputMerged int   // the same for the two streams taken together
	OutputTotal  int64 // bytes of both streams; beyond this, the program is killed
}

// DefaultLimits returns the limits of a run that asks for none.
func DefaultLimits() Limits {
	return Limits{
		Timeout:      30 * time.Second,
		CPU:          30 * time.Second,
		Memory:       2 << 30,
		Processes:    256,
		OpenFiles:    1024,
		FileSize:     256 << 20,
		Workspace:    1 << 30,
		Layer:        512 << 20,
		LayerNames:   100_000,
		Cache:        1 << 30,
		CacheNames:   100_000,
		Output:       16 << 10,
		OutputMerged: 4 << 10,
		OutputTotal:  64 << 20,
	}
}

// WithDefaults returns l with every field that is 0 replaced by its default: the
// limits of a run under l.
func (l Limits) WithDefaults() Limits {
	d := DefaultLimits()
	l.Timeout = cmp.Or(l.Timeout, d.Timeout)
	l.CPU = cmp.Or(l.CPU, l.Timeout)
	l.Memory = cmp.Or(l.Memory, d.Memory)
	l.Processes = cmp.Or(l.Processes, d.Processes)
	l.OpenFiles = cmp.Or(l.OpenFiles, d.OpenFiles)
	l.FileSize = cmp.Or(l.FileSize, d.FileSize)
	l.Workspace = cmp.Or(l.Workspace, d.Workspace)
	l.Layer = cmp.Or(l.Layer, d.Layer)
	l.LayerNames = cmp.Or(l.LayerNames, d.LayerNames)
	l.Cache = cmp.Or(l.Cache, d.Cache)
	l.CacheNames = cmp.Or(l.CacheNames, d.CacheNames)
	l.Output = cmp.Or(l.Output, d.Output)
	l.OutputMerged = cmp.Or(l.OutputMerged, d.OutputMerged)
	l.OutputTotal = cmp.Or(l.OutputTotal, d.OutputTotal)
	return l
}

// Together bounds all processes of one run together, by a control group. A field that is 0
// sets no bound. See [Report.Together].
type Together struct {
	Memory     int64 // bytes, with what the run has in file systems in memory
	Processors int   // how many are busy for the run at a time, on average
}

// Runners that a Place can name.
const (
	RunnerLocal     = "local"
	RunnerContainer = "container"
)

// A Place says where a run happens. Answers are bound to it. The zero value is this
// machine, in the sandbox of its system.
type Place struct {
	Runner  string // RunnerContainer; empty: RunnerLocal
	Image   string // id of the image, sha256:…, which fixes all its files
	Name    string // of the image, as the configuration has it
	Runtime string // of the containers; empty: the engine's usual one
	Terms   string // digest of the settings that every run asks of the engine
}

// Local reports whether runs happen on this machine, in the sandbox of its system.
func (p Place) Local() bool { return p == Place{} }

// String returns the place in words for people: "local", "container:runsc".
func (p Place) String() string {
	switch {
	case p.Local():
		return RunnerLocal
	case p.Runtime != "":
		return p.Runner + ":" + p.Runtime
	}
	return p.Runner
}

// A Policy says what one run may touch. The zero Policy has no network, no
// writable folder and the default limits.
type Policy struct {
	ReadOnly []string // absolute folders and files the run may read besides the system's and the program's own
	Writable []string // absolute folders the run may also change; they win over ReadOnly

	// Layers are the user's folders that the run may change without ever writing to them. The
	// runner's method Layers returns what to put here. None is in another. If one is no longer
	// possible as described, nothing is started.
	Layers []Layer

	// Cache is an absolute folder, without symbolic links, that is kept between runs and
	// that the run may change; empty: no cache. None of the user's other programs
	// listens on a socket in it. See [Limits] and [Result.Cache].
	Cache string

	// Private lists the folders of ReadOnly and Writable that are made for runs. None of
	// the user's other programs listens on a socket in them. See [Network].
	Private []string

	// Links are symbolic links that a run may follow to what is in ReadOnly and
	// Writable, where the level shows it a file system of its own.
	Links []paths.Link

	// Images are folders that a private copy replaces for the run. Nobody can change the
	// copy between a check and the run.
	Images []Image

	Network Network
	Hosts   []hosts.Host // with NetworkHosts: what the run may reach through the proxy that its environment names; at least one
	Limits  Limits

	Together Together // where the machine can bound that

	Review   bool // no change in a layer is applied before a person has seen it
	GitWrite bool // commits in layers with Commits or Git are applied, as git's data
}

// An Image says that a run finds, at the absolute folder or file At, the contents of
// the absolute path From, read-only. At itself must exist, no symbolic link may lead
// to it, and it is not read.
//
// A level that cannot show the run a file system of its own starts it with From in
// the place of At wherever At, or a path below it, is named: in the program's path,
// the arguments, the environment, the input, the working folder, and the Policy. So
// does every level when the run sees a folder that At is in, since what is mounted
// there goes where others move the folder under it. In both cases, a program that
// knows At from elsewhere finds nothing there, or At itself if the run may read a
// folder around it.
type Image struct{ At, From string }

// A Command is one program and everything that it is started with.
type Command struct {
	Program program.Program
	Args    []string // without argv[0], which is Program.Path; passed unchanged
	Dir     string   // absolute working folder; it must exist, and no symbolic link may lead to it
	Stdin   []byte   // the program's input; if empty, it reads the end of file at once

	// Env is the whole environment, as KEY=value, except that Run sets TMPDIR and
	// removes folders from PATH that the level hides. See [BaseEnv].
	Env []string

	// Workspace is the absolute folder whose changes are artifacts, and which keeps
	// output that does not fit the limits. Empty: neither.
	Workspace string

	// DirID and WorkspaceID identify Dir and Workspace as they were when somebody
	// approved them. If another folder or a symbolic link is there now, nothing is
	// started. Nil: not checked. A person is never shown them. On Windows, they must
	// come from an open folder, since the result of os.Stat identifies the folder only
	// when it is compared.
	DirID, WorkspaceID os.FileInfo

	// RunID names the files of kept output: 1 to 64 of [A-Za-z0-9_-]. Without
	// it, output that does not fit is not kept.
	RunID string

	// Pack and Tool name what is run. They are stored with the run's changes and shown,
	// and have no other effect.
	Pack, Tool string

	// Waiting is called before Run waits for other runs that have the turn in its
	// Layers. The function it returns is called when the wait is over. Nil: nobody is
	// told.
	Waiting func(changes.Holder) (over func())

	// Ready is called when the run has its turn in its Layers, whether or not it had to
	// wait. The program is not started if it returns an error, which Run returns. It and
	// Waiting are called by the goroutine that called Run. Nil: nothing is checked.
	Ready func() error

	// Join is for output that is shown as one text: output that does not fit
	// Limits.OutputMerged is kept in one file with both streams, not in one file for
	// each.
	Join bool
}

// CheckSearch returns a [*program.NotFoundError] if env(1) would find another program in
// the run's PATH than the one that was looked up.
func (c *Command) CheckSearch() error { return c.Program.CheckSearch(c.Env) }
