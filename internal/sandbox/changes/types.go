package changes

import (
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/layer"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/turns"
)

// Types of change sets; package record explains each.
type (
	Set    = record.Set
	Run    = record.Run
	Change = record.Change
	State  = record.State
)

// The kinds of changes.
const (
	KindCreate  = record.KindCreate
	KindReplace = record.KindReplace
	KindRemove  = record.KindRemove
	KindMkdir   = record.KindMkdir
	KindRmdir   = record.KindRmdir
	KindSymlink = record.KindSymlink
	KindMeta    = record.KindMeta
	KindGit     = record.KindGit
	KindSpecial = record.KindSpecial
)

// The states of a change.
const (
	Applied   = record.Applied
	Held      = record.Held
	Refused   = record.Refused
	Discarded = record.Discarded
)

// Types of folders and layers; package layer explains each.
type (
	GitFolder  = layer.GitFolder
	Copy       = layer.Copy
	CopyLimits = layer.CopyLimits
	Ending     = layer.Ending
)

// Types for waiting for a turn; package turns explains each.
type (
	Holder    = turns.Holder
	WaitError = turns.WaitError
)
