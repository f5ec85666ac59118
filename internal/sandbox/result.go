package sandbox

import (
	"slices"
	"strconv"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
)

// A Cause says why a run ended or failed, other than by the program itself.
type Cause string

const (
	CauseExit           Cause = ""                // the program ended by itself
	CauseTimeout        Cause = "timeout"         // longer than Limits.Timeout
	CauseOutputLimit    Cause = "output_limit"    // more output than Limits.OutputTotal
	CauseCancelled      Cause = "cancelled"       // the context of the run was done
	CauseWorkspaceLimit Cause = "workspace_limit" // held more on disk than Limits.Workspace, or than Limits.Layer in a copy
	CauseCacheLimit     Cause = "cache_limit"     // the Cache held more than twice Limits.Cache
	CauseDiskFull       Cause = "disk_full"       // the disk of the audit log was about to be full
	CauseCPULimit       Cause = "cpu_limit"       // more processor time than Limits.CPU
	CauseFileSizeLimit  Cause = "file_size_limit" // wrote a file beyond Limits.FileSize
	CauseMemoryLimit    Cause = "memory_limit"    // all processes together had more memory than Together.Memory, or than their container
	CauseProcessLimit   Cause = "process_limit"   // more processes than Limits.Processes, where the system itself cannot refuse them
)

// A Result is the outcome of a program that was started.
type Result struct {
	ExitCode int    // -1 when a signal ended it
	Signal   string // "SIGKILL" and so on when a signal ended it, otherwise empty
	Cause    Cause

	Stdout, Stderr Capture
	Merged         Capture // both streams; each in order, interleaved about as they were written

	Started  time.Time
	Duration time.Duration // until the program ended; excludes what Run did afterwards
	Level    Level         // how this run was confined
	Place    Place         // where it ran; the gate sets it
	Usage    Usage

	Artifacts     []Artifact        // kept output first, then by path
	Skipped       []SkippedArtifact // new or changed things that are not artifacts, by path
	MoreArtifacts int               // how many more of both there were than are listed
	Incomplete    bool              // the workspace has more entries than were looked at

	// Cache describes the Policy's Cache after the run.
	Cache CacheUse

	// Contacts are the hosts that a run with [NetworkHosts] reached or was refused.
	Contacts []Contact

	// Changes are the changes in the Policy's Layers: one set for each changed folder.
	// ChangesProblem says why sets are missing; their folders are then as they were
	// before, and the run's changes to them are lost.
	Changes        []*changes.Set
	ChangesProblem string
}

// A Contact sums up a run's attempts to reach one host: all those with the same outcome.
// Its texts may come from the program.
type Contact struct {
	Host     string // name and port, or [OtherHosts]
	Address  string // that was connected to; empty: none, or too many to list
	Refused  string // why the connection was refused; empty: it was made
	Times    int
	Sent     int64 // bytes of all of them
	Received int64 // the same
}

// OtherHosts is the Host of the [Contact] that sums up all hosts beyond the limit.
const OtherHosts = "others"

// A CacheUse is what a cache held after a run.
type CacheUse struct {
	Bytes int64 // on disk, as far as they were counted
	Full  bool  // more than Limits allow between runs, or its disk was about to be full
}

// Usage is what the program used, with those of its children that it waited for. It
// is zero where the system does not report it.
type Usage struct {
	CPU    time.Duration // user and system
	MaxRSS int64         // bytes, of the largest process
}

// An Artifact is a regular file that appeared or changed in the workspace during the
// run. It may have been written by another run in the same workspace at the same
// time.
type Artifact struct {
	Path string // with slashes, relative to the workspace; any bytes the system allows
	Size int64
}

// A SkippedArtifact is something new or changed in the workspace that is not
// offered as an artifact.
type SkippedArtifact struct {
	Path   string // as in Artifact
	Reason string // for people: "is a symbolic link"
}

// A Capture is what is kept of a stream: all of it in Head, or its beginning
// and its end. Head and Tail are the program's own bytes; when something was
// dropped, they are cut so that no UTF-8 character is split.
type Capture struct {
	Head, Tail []byte
	Total      int64  // bytes read from the program
	Dropped    int64  // bytes between Head and Tail: Total - len(Head) - len(Tail)
	File       string // when Dropped > 0: slash path in the workspace of a file with all Total bytes
	NotKept    string // when Dropped > 0 and File is empty: why
	Whole      []byte // of standard output, when Dropped > 0 and Total is at most MaxWhole: all of it
}

// MaxWhole is how many bytes of standard output are kept for those who parse it,
// whatever the limits say of what is shown.
const MaxWhole = 1 << 20 // 1 MiB

// All returns the whole stream, and reports whether it is still there.
func (c Capture) All() ([]byte, bool) {
	if !c.Truncated() {
		return c.Bytes(), true
	}
	return c.Whole, c.Whole != nil
}

// Truncated reports whether bytes are missing between Head and Tail.
func (c Capture) Truncated() bool { return c.Dropped > 0 }

// Bytes returns a new slice with Head and Tail, and, when something is missing
// between them, a line that says how many bytes.
func (c Capture) Bytes() []byte {
	if !c.Truncated() {
		return slices.Concat(c.Head, c.Tail)
	}
	mark := "\n... [truncated " + strconv.FormatInt(c.Dropped, 10) + " bytes] ...\n"
	return slices.Concat(c.Head, []byte(mark), c.Tail)
}
