// Package attack is the list of what a hostile program tries in the sandbox, and the
// required outcome at each level.
//
// The list is data ([Sections]) with two uses: the tests of this package run each row at
// every level that a machine supports, with a small hostile program
// ([github.com/packs-mcp/packs-mcp/test/attack/probe]), and docs/reference/sandbox.md shows
// it to people. Nothing else imports this package, and it is not part of the product.
//
// What takes more than one operation to check (that everything is killed, that limits
// hold, which level a machine without a feature has) is only in the tests.
package attack

import (
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/drill"
)

// A Section is a part of the list.
type Section struct {
	Title string
	Note  string // a remark about all its rows, or empty
	Rows  []Row
}

// A Row is one operation, tried once at each level.
type Row struct {
	Case    string   // the id of the case that it belongs to
	Does    string   // what it does, for people; unique: "connect to a TCP port of this machine"
	Probe   []string // the operation and its arguments; names in braces stand for paths and the like in the test
	Network sandbox.Network
	Want    Want
	Root    string // the outcome at partial as root, whom Landlock alone does not confine; empty: as in Want

	// NoListener is the outcome, in confinement, if nobody can answer the filter's
	// questions; empty: as in Want.
	NoListener string

	// Changes says that the operation, if it succeeds, changes something of the user's that
	// the test checks. A refused operation must never change anything of the user's.
	Changes bool

	// Unsafe says that the operation is never tried unconfined.
	Unsafe bool

	Limits sandbox.Limits // limits of its run
}

// Want lists the possible outcomes of a row.
type Want drill.Want

// fromDoctor returns rows for the probe from a section of the program's own list.
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

// notStarted is the outcome of a run that the sandbox refuses because the level cannot
// enforce the policy.
const notStarted = "not started"

// everywhere is the outcome of an operation that every level refuses in the same way.
func everywhere(outcome, none string) Want { return Want{outcome, outcome, outcome, none} }

// hidden is the outcome for a path that does not exist in a file tree of the program's own,
// and that is inaccessible elsewhere.
func hidden() Want { return Want{"ENOENT", "EACCES", "ENOENT", "ok"} }

// metadata is the outcome of an operation that Landlock does not restrict.
func metadata(refused string) Want { return Want{refused, "ok", refused, "ok"} }

// fixed is the outcome of a write to a read-only or inaccessible path.
func fixed() Want { return Want{"EROFS", "EACCES", "EROFS", "ok"} }

// allowed is the outcome of an operation that every level permits.
func allowed() Want { return everywhere("ok", "ok") }

// Sections returns the list in the order of the documentation.
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
