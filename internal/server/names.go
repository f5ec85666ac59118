package server

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName is the longest name of a pack's tool, in characters: clients add a
// server name of their own and cut or drop what is longer than 60.
const maxName = 40

// basePrefix begins the names of the base tools. The specification has a dot
// after it; one dot makes Claude Desktop refuse every tool of a server, so it
// is an underscore unless the configuration says otherwise.
const (
	basePrefix   = "capability_packs_"
	dottedPrefix = "capability_packs."
)

// plainName returns the name a base tool is known by inside this package.
func plainName(name string) string {
	if rest, ok := strings.CutPrefix(name, dottedPrefix); ok {
		return basePrefix + rest
	}
	return name
}

// exposed returns the name under which a base tool is listed.
func (s *Server) exposed(plain string) string {
	if s.opts.Dotted {
		return dottedPrefix + strings.TrimPrefix(plain, basePrefix)
	}
	return plain
}

// packToolName is the listed name of a pack's tool: PACK__TOOL, at most 40
// characters. taken reports whether a name is used already, ignoring letter
// case and the difference between ".", "-" and "_", as some clients do; the
// later of two such names gets a hash.
func packToolName(packID, tool string, taken func(folded string) bool) string {
	pack := packID[strings.LastIndexByte(packID, '/')+1:]
	return shortName(pack+"__"+tool, packID+"\x00"+tool, taken)
}

// shortName is a name of at most 40 characters that is not taken and does not
// read as one of our own: with a hash of what it names where it has to be
// another one.
func shortName(name, of string, taken func(folded string) bool) string {
	// A client may draw two underscores together.
	if strings.HasPrefix(strings.ReplaceAll(foldName(name), "_", ""), strings.ReplaceAll(basePrefix, "_", "")) {
		name = "pack_" + name
	}
	if len(name) <= maxName && !taken(foldName(name)) {
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
		if short += suffix; !taken(foldName(short)) {
			return short
		}
	}
	return hash[:maxName] // two tools with equal hashes: cannot be
}

// shortHash tells names apart that would be the same.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// foldName maps names that a client may take for the same to the same text.
func foldName(name string) string {
	return strings.NewReplacer(".", "_", "-", "_").Replace(strings.ToLower(name))
}
