// Package toolname has the rules for names of tools: how the base tools and a pack's
// tools are listed, and how clients change a name before they pass it on.
//
// It does not know which tools of packs exist: its caller says which names are taken.
package toolname

import (
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strings"
)

// maxName is the longest name of a pack's tool, in characters: clients add a server
// name of their own, and cut or drop names longer than 60.
const maxName = 40

// Prefix begins the names of the base tools. The specification has a dot after it. A
// single dot makes Claude Desktop refuse every tool of a server, so it is an
// underscore unless the configuration says otherwise.
const (
	Prefix       = "capability_packs_"
	dottedPrefix = "capability_packs."
)

// The base tools, as this program calls them; see [Plain].
const (
	List     = Prefix + "list"
	OpenDocs = Prefix + "open_docs"
	ReadFile = Prefix + "read_file"
	Enable   = Prefix + "enable_tools"
	Call     = Prefix + "call_tool"
	Exec     = Prefix + "exec_best_effort"
	// The two tools for clients that show cards and cannot ask.
	Approvals = Prefix + "approvals"
	Decide    = Prefix + "decide"
)

// Plain returns the name of a base tool that this program uses internally.
func Plain(name string) string {
	if rest, ok := strings.CutPrefix(name, dottedPrefix); ok {
		return Prefix + rest
	}
	return name
}

// Exposed returns the name under which a base tool is listed: with a dot, if dotted.
func Exposed(plain string, dotted bool) string {
	if dotted {
		return dottedPrefix + strings.TrimPrefix(plain, Prefix)
	}
	return plain
}

// OfPack returns the listed name of a pack's tool: PACK__TOOL, at most 40 characters.
// taken reports whether a name is already used, ignoring letter case and the
// difference between ".", "-" and "_", as some clients do. The later of two such
// names gets a hash.
func OfPack(packID, tool string, taken func(folded string) bool) string {
	pack := packID[strings.LastIndexByte(packID, '/')+1:]
	return Short(pack+"__"+tool, packID+"\x00"+tool, taken)
}

// Short returns a name of at most 40 characters that is not taken and does not look
// like one of our own. If the name has to be changed for that, it gets a hash of what
// it names.
func Short(name, of string, taken func(folded string) bool) string {
	// Some clients join two underscores.
	if strings.HasPrefix(strings.ReplaceAll(Fold(name), "_", ""), strings.ReplaceAll(Prefix, "_", "")) {
		name = "pack_" + name
	}
	if len(name) <= maxName && !taken(Fold(name)) {
		return name
	}
	sum := sha256.Sum256([]byte(of))
	hash := hex.EncodeToString(sum[:])
	for n := 6; n <= len(hash); n++ {
		suffix := "_" + hash[:n]
		short := name
		if len(short)+len(suffix) > maxName {
			short = short[:maxName-len(suffix)]
		}
		if short += suffix; !taken(Fold(short)) {
			return short
		}
	}
	return hash[:maxName] // two tools with the same hash: impossible
}

// Hash distinguishes names that would otherwise be the same.
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// Fold maps names that a client may confuse to the same text.
func Fold(name string) string {
	return strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToLower(name))
}

// ownNames are the names that clients usually give this server.
var ownNames = [...]string{"mcp", "packs-mcp", "packs_mcp"}

// WithoutPrefix yields what remains of a name after removing a client's prefix, the
// longest first: "mcp__packs__git__status" gives packs__git__status, git__status and
// status. certain is false if the prefix ends in a single "_" or "-", which also
// occur inside names, unless the prefix is a usual name of this server, as in
// packs-mcp_status.
func WithoutPrefix(name string) iter.Seq2[string, bool] {
	ours := IsOurs(name)
	return func(yield func(rest string, certain bool) bool) {
		for i := 1; i < len(name); i++ {
			before := name[:i]
			certain := strings.HasSuffix(before, "__") || strings.IndexByte(".:/", before[i-1]) >= 0 || isOnlyOurs(before)
			if (certain || ours && strings.IndexByte("_-", before[i-1]) >= 0) && !yield(name[i:], certain) {
				return
			}
		}
	}
}

// IsOurs reports whether a name begins with a usual name of this server.
func IsOurs(name string) bool {
	lower := strings.ToLower(name)
	return slices.ContainsFunc(ownNames[:], func(own string) bool {
		rest, ok := strings.CutPrefix(lower, own)
		return ok && rest != "" && strings.IndexByte("_-.:/", rest[0]) >= 0
	})
}

// isOnlyOurs reports whether a prefix with its separator consists only of usual names
// of this server: "packs-mcp_", "mcp_packs-mcp_".
func isOnlyOurs(prefix string) bool {
	lower := strings.TrimPrefix(strings.ToLower(prefix), "mcp_")
	return slices.ContainsFunc(ownNames[1:], func(own string) bool { return lower == own+"_" || lower == own+"-" })
}
