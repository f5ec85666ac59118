// Package packs finds capability packs in folders and describes them: their names,
// what is wrong with them, and which of them a person attached.
//
// [Scan] makes a [Catalog], which never changes. For a newer one, scan again, or use a
// [Library], which reads only what changed. Package watch sees changes while the
// program runs, package toolfiles compiles the tools of a pack, and package memo
// remembers what a scan saw. This package starts nothing, asks nobody, parses no tool
// except a file that is a pack by itself, and keeps no document in memory: bodies are
// read when they are opened.
package packs

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/memo"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
)

// Codes of the diagnostics of this package, next to those of package
// frontmatter. They are stable.
const (
	CodeRootMissing      = "root-missing"       // warning: a root is not there
	CodeRootUnreadable   = "root-unreadable"    // warning: a root, or a directory below it, cannot be read
	CodeTooManyDirs      = "root-too-large"     // warning: not every directory was looked at
	CodeTooDeep          = "root-too-deep"      // warning: directories that lie too deep were not looked at
	CodeLinkOutside      = "link-outside"       // warning: a symlink leads out of the root and is not followed
	CodeNoPack           = "no-pack"            // error: the directory a person named holds no pack; says what is missing
	CodeEntryUnreadable  = "entry-unreadable"   // error: the entry document cannot be read
	CodeEntryTooLarge    = "entry-too-large"    // error: the entry document is over the limit
	CodeEntryAmbiguous   = "entry-ambiguous"    // warning: several spellings of SKILL.md
	CodeDocMissing       = "doc-missing"        // warning: a configured document is not there
	CodeNameSlugged      = "name-not-valid"     // warning: the name is not an identifier, and the id has a form of it that is
	CodeIDReserved       = "id-reserved"        // error: the name or id belongs to the bridge, or looks like a tool's
	CodeIDCollision      = "id-collision"       // warning: another pack of the root has this pack's id, so it has another
	CodeShadowed         = "id-shadowed"        // warning: a pack of a root with higher priority has this id
	CodeAttachedOther    = "attached-elsewhere" // warning: the id is attached for another directory, so this pack is not
	CodeAttachUnknown    = "attach-unknown"     // warning: a root lists an id to attach that it does not hold
	CodeDescriptionShort = "description-long"   // info: the model sees only the beginning
	CodeFileDenied       = "file-denied"        // warning: a file, or a folder, is left out of what is served
	CodeNotDigested      = "not-digested"       // error: the pack's files have no digest
	CodeToolsUnreadable  = "tools-unreadable"   // error: a file that declares tools cannot be read
)

// Trust says how far a person vouches for a pack. The zero value and every unknown
// value mean untrusted.
type Trust string

// The kinds of trust.
const (
	TrustBundled   Trust = "bundled"   // comes with the program
	TrustUser      Trust = "user"      // a person put it there, or said so
	TrustUntrusted Trust = "untrusted" // comes with a project, or from elsewhere
)

// normal returns t, or TrustUntrusted for anything that is not a Trust.
func (t Trust) normal() Trust {
	if t == TrustBundled || t == TrustUser {
		return t
	}
	return TrustUntrusted
}

// A Root is a directory that holds packs, or is one.
type Root struct {
	Dir    string
	Source string // "flag", "config", "project", "user", "bundled", or another program's name; shown, not judged
	Trust  Trust

	// AttachAll attaches every pack of the root that no person detached; Attach
	// only those with these ids ("all" means AttachAll).
	AttachAll bool
	Attach    []string

	// Entry names the entry documents of packs, Docs their additional documents.
	// The keys are the packs' directories, relative to Dir and with slashes ("."
	// for the root itself). The values are paths inside those directories.
	Entry map[string]string
	Docs  map[string][]string

	// Named says that a person named this very directory: when it holds no
	// pack, a diagnostic says what is missing.
	Named bool

	// Optional says that nobody named the directory. If it is missing, that is not
	// reported, and its packs are found once it exists.
	Optional bool

	// Tools says that the root is for tools: every NAME.tool.json below it that
	// belongs to no pack is one. Elsewhere only those in the root's own
	// directory, in one called "tools", and below one called "tools.d" are.
	Tools bool

	// Memory has the packs instead of the disk; Dir is its path. It is for [Scan] only.
	Memory *packfs.Memory

	// Inside is a directory that must contain Dir, symlinks resolved; otherwise
	// the root is skipped. A cloned project must not choose what is read outside
	// of it. Empty means no such bound.
	Inside string
}

// Limits bound what is read of one pack. A field that is 0 has its default.
type Limits struct {
	EntryDoc    int64 // bytes; 1 MiB
	Frontmatter int   // bytes; 64 KiB
	Description int   // characters that a model sees; 1,024
	ToolsFile   int64 // bytes of a file that declares tools; 1 MiB
	PackSize    int64 // bytes of all files of a pack, and so of each; 4 GiB
}

func (l Limits) withDefaults() Limits {
	if l.EntryDoc <= 0 {
		l.EntryDoc = 1 << 20
	}
	if l.Frontmatter <= 0 {
		l.Frontmatter = frontmatter.MaxSize
	}
	if l.Description <= 0 {
		l.Description = 1024
	}
	if l.ToolsFile <= 0 {
		l.ToolsFile = 1 << 20
	}
	return l
}

// settings names the limits that decide what a scan reads of the same files; see
// [Index].
func (l Limits) settings() string {
	return fmt.Sprintf("%d %d %d", l.EntryDoc, l.Frontmatter, l.ToolsFile)
}

// Options say what Scan looks at.
type Options struct {
	Roots    []Root     // by priority, the highest first
	Mode     string     // the configured mode; empty means "Global"
	Attached attach.Set // what a person attached and detached
	Attach   []string   // ids, whole and in any letter case, attached whatever Attached says; "all" for every pack
	Limits   Limits
	Patient  bool         // read every document, however long that takes; for [Scan] only
	Logger   *slog.Logger // nil: no log
	Index    memo.Index   // for a Library only; the zero value keeps nothing on disk

	clock  func() time.Time // nil: time.Now; tests only
	bounds bounds           // of the walk; zero: the usual ones; others in tests only
	whole  bool             // a scan that lacks descriptors or memory is an error
}

// A Pack is one directory with an entry document, or one file with a tool. It
// belongs to its Catalog and must not be modified.
type Pack struct {
	ID          string // "acme/billing/refunds"
	Name        string // as the frontmatter has it; that of the directory when there is none
	Description string // whole

	// Dir is the pack's directory, or the file of a loose tool: absolute, symlinks
	// resolved, and unique in a Catalog.
	Dir       string
	*Origin            // what all packs of its root have in common; nil only before the pack is found
	Trust     Trust    // never empty
	Entry     string   // path of the entry document inside the pack, with slashes
	ToolFiles []string // paths of its tools.json and *.tool.json, with slashes; the entry document may declare tools too

	Loose         bool      // the pack is one *.tool.json in a folder of tools, and Body is generated
	Valid         bool      // none of Problems is an error
	Offered       bool      // its modes allow the configured one
	Attached      bool      // a person attached it, or its root attaches all
	AttachedSince time.Time // when a person did; zero when its root attaches it
	ShadowedBy    string    // the directory of the pack that has the id instead; empty for none

	// Frontmatter is zero if it could not be read. Code that offers the pack must
	// respect its DisableModelInvocation and UserInvocable.
	Frontmatter frontmatter.Summary
	Problems    []diag.Diagnostic // paths are those inside the pack

	folder packfs.Which // identifies the directory at Dir when it was found
	state  uint64       // derived from the stamps of its entry document and tool files
	path   string       // relative to the root, with slashes; the path by which it was found
}

// An Origin says where packs come from. All packs of a root share one.
type Origin struct {
	Root   string // the directory, as it was given
	Source string // see [Root]

	docs   map[string][]string // see [Root]
	memory *packfs.Memory      // see [Root]
	limits Limits
}

// IsUnread reports whether there was no time yet to read the entry document; see
// [Library.ReadOn].
func (p *Pack) IsUnread() bool { return isUnread(p.Problems) }

// Tags returns the tags in the frontmatter.
func (p *Pack) Tags() []string { return p.Frontmatter.Tags() }

// Modes returns the modes in the frontmatter.
func (p *Pack) Modes() []string { return p.Frontmatter.Modes() }

// Docs returns the paths of the additional documents that the configuration names for
// this pack.
func (p *Pack) Docs() []string { return p.docs[p.path] }

// Limits returns the bounds under which the pack is read.
func (p *Pack) Limits() Limits { return p.limits }

// State returns a number that changes if the entry document or a tool file was
// written between two scans.
func (p *Pack) State() uint64 { return p.state }

// OpenDir opens the same directory that the scan found. If another directory or a
// symlink is in its place by now, the error is [packfs.ErrReplaced], until the next
// scan. For a loose tool, the Dir shows nothing but the tool's file. The caller closes
// it.
func (p *Pack) OpenDir() (*packfs.Dir, error) {
	dir, err := p.openDir()
	if err != nil {
		return nil, err
	}
	dir.LimitTree(p.limits.PackSize)
	return dir, nil
}

func (p *Pack) openDir() (*packfs.Dir, error) {
	switch inMemory := p.Origin != nil && p.memory != nil; {
	case inMemory && p.Loose:
		return p.memory.OpenFile(p.Dir)
	case inMemory:
		return p.memory.Open(p.Dir)
	case p.Loose:
		return packfs.OpenFile(p.Dir)
	}
	return packfs.OpenWhich(p.Dir, p.folder)
}

// Folder returns the pack's directory. For a loose tool, it is the directory that
// holds its file.
func (p *Pack) Folder() string {
	if p.Loose {
		return filepath.Dir(p.Dir)
	}
	return p.Dir
}
