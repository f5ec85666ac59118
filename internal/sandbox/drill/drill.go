// Package drill shows what a machine's sandbox refuses: a confined program tries what a
// hostile one would try, and each outcome is compared with the level's promise.
//
// The list, [Rows], has two readers. [Run] goes through it for "packs-mcp doctor
// --attack". The tests of test/attack, which have many more operations for Linux, check
// it down to the error numbers and show it in docs/reference/sandbox.md.
//
// The tries are harmless even if nothing refuses them: they act on folders, sockets and
// a process that Run makes for them in a temporary home, write a few MiB there, and end
// within seconds. They send processes only signal 0, and do not touch the memory that
// they allocate.
//
// The package does not decide how a program is confined; package sandbox does. It
// proves nothing about operations that are not on its list.
package drill

import "github.com/packs-mcp/packs-mcp/internal/sandbox"

// A Row is one thing that a confined program tries.
type Row struct {
	Case string   // the id of the case that it belongs to
	Part string   // what it is about: "Files"
	Does string   // for people, and unique in its part: "list the home folder"
	Op   []string // the operation and its arguments; names in braces stand for things made for the try

	Linux          Want
	MacOS, Windows Expect // at the only level that confines there

	// Changes reports whether the operation, if nothing stops it, changes the user's
	// data.
	Changes bool

	Limits sandbox.Limits // of its run
}

// Want holds the outcomes that an operation may have on Linux: "ok", names of errors
// or signals, or outcomes that the operation documents, separated by "|".
type Want struct {
	Full       string // all there is
	Landlock   string // partial, without namespaces
	Namespaces string // partial, without Landlock
	None       string // shows that the operation works unconfined
}

// An Expect says what the outcome of a try must be.
type Expect string

const (
	Absent  Expect = ""        // the system has no such thing
	Refused Expect = "refused" // with any error
	Open    Expect = "open"    // the level does not promise to refuse it
	Works   Expect = "works"   // by design: a program that can do nothing proves nothing
)

// everywhere expects the same refusal from every level.
func everywhere(outcome string) Want { return Want{outcome, outcome, outcome, ok} }

// hidden expects that a file does not exist if the program has its own file tree, and
// otherwise that it cannot be opened.
func hidden() Want { return Want{"ENOENT", "EACCES", "ENOENT", ok} }

// ok is the outcome of an operation that succeeded.
const ok = "ok"

// Rows returns the list.
func Rows() []Row {
	const mib = 1 << 20
	return []Row{
		{
			Case: "FS-01", Part: "Files", Does: "read a key in the home folder", Op: []string{"read-file", "{secret}"},
			Linux: hidden(), MacOS: Refused, Windows: Open,
		},
		{
			Case: "FS-01", Part: "Files", Does: "list the home folder", Op: []string{"list-folder", "{home}"},
			Linux: hidden(), MacOS: Refused, Windows: Open,
		},
		{
			Case: "FS-01", Part: "Files", Does: "read a file outside, as another person's", Op: []string{"read-file", "{outside}/file"},
			Linux: hidden(), MacOS: Refused, Windows: Open,
		},
		{
			Case: "FS-06", Part: "Files", Does: "create a file in the home folder", Op: []string{"create-file", "{home}/.profile"},
			Linux: hidden(), MacOS: Refused, Windows: Refused, Changes: true,
		},
		{
			Case: "FS-06", Part: "Files", Does: "write to a file outside", Op: []string{"change-file", "{outside}/file"},
			Linux: hidden(), MacOS: Refused, Windows: Refused, Changes: true,
		},
		{
			Case: "FS-06", Part: "Files", Does: "write to a file of the pack", Op: []string{"change-file", "{pack}/data.txt"},
			Linux: Want{"EROFS", "EACCES", "EROFS", ok}, MacOS: Refused, Windows: Refused, Changes: true,
		},
		{
			Case: "FS-06", Part: "Files", Does: "let a file of its own run with your rights, no matter who starts it (setuid)",
			Op: []string{"setuid-file", "{ws}/file"}, Linux: everywhere("EPERM"), MacOS: Refused,
		},
		{
			Case: "PK-15", Part: "Files", Does: "open a device, as the user's terminal", Op: []string{"open-device", "{pty}"},
			Linux: hidden(), MacOS: Refused,
		},
		{
			Case: "NW-01", Part: "Network: none", Does: "connect to a TCP port of this machine", Op: []string{"connect", "tcp", "127.0.0.1:{tcp}"},
			Linux: everywhere("EPERM"), MacOS: Refused, Windows: Open, Changes: true,
		},
		{
			Case: "NW-07", Part: "Network: none", Does: "connect to a unix socket, as of Docker or an SSH agent", Op: []string{"connect", "unix", "{unix}"},
			Linux: everywhere("EPERM"), MacOS: Refused, Windows: Open, Changes: true,
		},
		{
			Case: "NW-08", Part: "Network: none", Does: "connect to an abstract unix socket", Op: []string{"connect", "unix", "{abstract}"},
			Linux: everywhere("EPERM"), Changes: true,
		},
		{
			Case: "NW-14", Part: "Network: none", Does: "look up a name", Op: []string{"look-up", "127.0.0.1:{udp}"},
			Linux: everywhere("EPERM"), MacOS: Refused, Windows: Open, Changes: true,
		},
		{
			Case: "PK-09", Part: "Other processes", Does: "send a signal to another process of yours", Op: []string{"signal", "{victim}"},
			Linux: Want{"ESRCH|EPERM", "EPERM", "ESRCH|EPERM", ok}, MacOS: Refused, Windows: Open,
		},
		{
			Case: "EN-03", Part: "Other processes", Does: "see that it is there", Op: []string{"see-process", "{victim}"},
			Linux: Want{"ENOENT", ok, "ENOENT", ok}, MacOS: Refused, Windows: Open,
		},
		{
			Case: "EN-03", Part: "Other processes", Does: "read its environment", Op: []string{"read-environment", "{victim}"},
			Linux: hidden(), MacOS: Refused, Windows: Refused,
		},
		{
			Case: "PK-17", Part: "Other processes", Does: "trace it", Op: []string{"trace", "{victim}"},
			Linux: everywhere("EPERM"), MacOS: Refused, Windows: Refused,
		},
		{
			Case: "EN-03", Part: "Other processes", Does: "find a key of the server's among its own environment variables", Op: []string{"variable", keyVariable},
			Linux: Want{notThere, notThere, notThere, notThere}, MacOS: Refused, Windows: Refused,
		},
		{
			Case: "PK-17", Part: "The kernel", Does: "mount", Op: []string{"mount", "{ws}"}, Linux: everywhere("EPERM"),
		},
		{
			Case: "PK-17", Part: "The kernel", Does: "make a user namespace", Op: []string{"user-namespace"}, Linux: everywhere("EPERM"),
		},
		{
			Case: "PK-17", Part: "The kernel", Does: "use the kernel's keyrings", Op: []string{"keyring"}, Linux: everywhere("EPERM"),
		},
		{
			Case: "PK-09", Part: "Bounds", Does: "leave a process behind", Op: []string{"leave", "{ws}/alive"},
			Linux: everywhere(endedToo), MacOS: Refused, Windows: Refused,
		},
		{
			Case: "PK-11", Part: "Bounds", Does: "have more processes than the limit", Op: []string{"processes", "20"},
			Linux: Want{"EAGAIN", "EAGAIN|SIGKILL", "EAGAIN", ok}, MacOS: Refused, Windows: Refused, Limits: sandbox.Limits{Processes: 16},
		},
		{
			Case: "9.8", Part: "Bounds", Does: "have more memory than the limit", Op: []string{"memory", "640"},
			Linux: everywhere("ENOMEM"), MacOS: Open, Windows: Refused, Limits: sandbox.Limits{Memory: 512 * mib},
		},
		{
			Case: "PK-12", Part: "Bounds", Does: "write a larger file than the limit", Op: []string{"large-file", "{ws}/large", "5"},
			Linux: everywhere("EFBIG"), MacOS: Refused, Windows: Open, Limits: sandbox.Limits{FileSize: 4 * mib},
		},
		{
			Case: "HM-03", Part: "What stays possible", Does: "read the pack", Op: []string{"read-file", "{pack}/data.txt"},
			Linux: everywhere(ok), MacOS: Works, Windows: Works,
		},
		{
			Case: "HM-03", Part: "What stays possible", Does: "write in the workspace", Op: []string{"create-file", "{ws}/new"},
			Linux: everywhere(ok), MacOS: Works, Windows: Works,
		},
	}
}
