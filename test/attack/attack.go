// Package attack is the list of what a hostile program tries under the sandbox,
// and what must come of it at each level.
//
// The list is data ([Sections]), in one place, for two readers: the tests of
// this package run each line under every level that a machine has, with a small
// hostile program ([github.com/packs-mcp/packs-mcp/test/attack/probe]),
// and docs/reference/sandbox.md shows it to people. Nothing else imports this package,
// and nothing of it is in the program that people run.
//
// What takes more than one operation to see (that everything is killed, that
// limits hold, which level a machine without a feature has) is in the tests
// alone.
package attack

import (
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/drill"
)

// A Section is a part of the list.
type Section struct {
	Title string
	Note  string // what to know of all its rows, or empty
	Rows  []Row
}

// A Row is one operation, tried once at each level.
type Row struct {
	Case    string   // the id of the case that it belongs to
	Does    string   // for people, and unique: "connect to a TCP port of this machine"
	Probe   []string // the operation and its arguments, with names in braces for what the test makes
	Network sandbox.Network
	Want    Want
	Root    string // the outcome at partial for root, where Landlock alone does not do for root; empty: as Want says

	// NoListener is the outcome, where something confines, when the filter can ask
	// nobody; empty: as Want says.
	NoListener string

	// Changes says that the operation, when nothing stops it, changes something
	// of the user's that the test looks at. When it is refused, nothing of the
	// user's may change in any case.
	Changes bool

	// Unsafe is for what is never tried unconfined.
	Unsafe bool

	Limits sandbox.Limits // of its run
}

// Want are the outcomes that a row may have.
type Want drill.Want

// fromDoctor returns the rows of a part that the program itself has, for the probe.
func fromDoctor(part string) []Row {
	var rows []Row
	for _, r := range drill.Rows() {
		if r.Part == part {
			rows = append(rows, Row{
				Case: r.Case, Does: r.Does, Probe: append([]string{drill.Arg}, r.Op...), Want: Want(r.Linux), Changes: r.Changes, Limits: r.Limits,
			})
		}
	}
	return rows
}

// notStarted is the outcome of a run that the sandbox refuses since the level
// cannot do what the policy asks for.
const notStarted = "not started"

// everywhere is refused in the same way by every level.
func everywhere(outcome, none string) Want { return Want{outcome, outcome, outcome, none} }

// hidden is there no more where the program has a file tree of its own, and
// closed where it has not.
func hidden() Want { return Want{"ENOENT", "EACCES", "ENOENT", "ok"} }

// metadata is what Landlock does not look after.
func metadata(refused string) Want { return Want{refused, "ok", refused, "ok"} }

// fixed is a read-only file tree, or a closed one.
func fixed() Want { return Want{"EROFS", "EACCES", "EROFS", "ok"} }

// allowed is what a program may do at every level.
func allowed() Want { return everywhere("ok", "ok") }

// Sections returns the list. Its order is that of the documentation.
func Sections() []Section {
	sections := []Section{
		{"Files", "The key stands for anything of yours that the run was not given.", fileRows()},
		{"Network: none", "The default. Nothing that talks to anybody can be made.", networkRows()},
		{"Network: loopback", "The run has a network to itself: its own programs reach each other, and nobody else. That takes namespaces.", loopbackRows()},
		{"Network: hosts", "The run has a network to itself, and in it a proxy of ours that reaches the hosts that its tool names. These are the ways around that proxy. That takes namespaces.", hostsRows()},
		{"Network: full", "The Internet, and this machine's own ports. Local sockets stay closed.", openRows()},
		{"Other processes", "\"It\" is another process of yours, as the server or your shell.", processRows()},
		{"The kernel", "", kernelRows()},
		{"Memory, and what all of the user's programs share", "The limit on memory is as by default, 2 GiB.", limitRows()},
		{"Bounds", "The limits are 16 processes, 512 MiB of memory and 4 MiB for a file.", nil},
		{"What stays possible", "These work on purpose. That a program may run what it wrote means that looking at a pack's files does not tell all that will run.", allowedRows()},
	}
	for i := range sections {
		sections[i].Rows = append(fromDoctor(sections[i].Title), sections[i].Rows...)
	}
	return sections
}
