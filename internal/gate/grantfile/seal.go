package grantfile

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// The file is one JSON object: the version, a grant a line, and the seal, which
// is the HMAC-SHA-256 of every byte before its own hexadecimal digits.
//
//	{"version":1,"grants":[
//	{"id":…},
//	{"id":…}
//	],"seal":"…"}
const (
	version = 1
	head    = `{"version":1,"grants":[` + "\n"
	foot    = `],"seal":"`
	end     = "\"}\n"

	sealSize = 2 * sha256.Size
	frame    = len(head) + len(foot) + sealSize + len(end)
)

// kept is the shape of the file.
type kept struct {
	Version int            `json:"version"`
	Grants  []grants.Grant `json:"grants"`
	Seal    string         `json:"seal"`
}

func sealOf(key, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// checkSeal returns the seal of data, the content of the file, if it is valid.
func (s *Store) checkSeal(key, data []byte) (string, error) {
	body, tail := data, []byte(nil)
	if cut := len(data) - sealSize - len(end); cut > 0 {
		body, tail = data[:cut], data[cut:]
	}
	seal := sealOf(key, body)
	if hmac.Equal(tail, []byte(seal+end)) {
		return seal, nil
	}
	// The file is refused; find out why.
	if err := s.file.CheckVersion(data, version); err != nil {
		return "", err
	}
	switch {
	case len(data) == 0:
		return "", s.file.Refuse("it is empty")
	case !bytes.HasPrefix(data, []byte(head)) || !json.Valid(data):
		return "", s.file.Refuse("it is cut off or was not written by this program: its seal is missing")
	default:
		return "", s.file.Refuse("it was changed after it was written, or its key %q was: its seal does not fit", s.key.Path)
	}
}

// parse reads data, whose seal is valid.
func (s *Store) parse(data []byte) ([]grants.Grant, error) {
	var k kept
	if err := s.file.CheckVersion(data, version); err != nil {
		return nil, err
	}
	if err := s.file.Decode(data, &k); err != nil {
		return nil, err
	}
	if problem := invalid(k.Grants); problem != "" {
		return nil, s.file.Refuse("%s", problem)
	}
	return k.Grants, nil
}

// invalid returns why these grants cannot be stored; empty if they can.
func invalid(given []grants.Grant) string {
	ids := make(map[string]bool, len(given))
	for i, g := range given {
		switch {
		case g.ID == "":
			return fmt.Sprintf("grant %d has no id", i+1)
		case ids[g.ID]:
			return fmt.Sprintf("the id %q occurs twice", g.ID)
		case g.Digest == "":
			return fmt.Sprintf("the grant %q has no digest", g.ID)
		case g.Kind == "":
			return fmt.Sprintf("the grant %q has no kind", g.ID)
		case slices.ContainsFunc(g.Facts, inexact):
			return fmt.Sprintf("the grant %q has a fact that is not UTF-8, which the file cannot hold", g.ID)
		}
		ids[g.ID] = true
	}
	return ""
}

// inexact reports whether JSON cannot represent a fact exactly.
func inexact(f call.Fact) bool {
	return !utf8.ValidString(f.Name) || slices.ContainsFunc(f.Values, func(v string) bool { return !utf8.ValidString(v) })
}

// encode returns the file that holds the grants, and its seal. It leaves out those
// that have been void for longest, as many as necessary. old are the grants that the
// file holds now, and people is how many share its room.
func encode(key []byte, given, old []grants.Grant, people int) (data []byte, seal string, err error) {
	lines, err := linesOf(given)
	if err != nil {
		return nil, "", err
	}
	if err := divide(lines, given, old, people); err != nil {
		return nil, "", err
	}
	var all amount
	for _, line := range lines {
		all.add(line, 1)
	}
	for _, i := range longestVoid(given) {
		if all.within(whole) {
			break
		}
		all.add(lines[i], -1)
		lines[i] = nil
	}
	if !all.within(whole) {
		return nil, "", fmt.Errorf("%w: at most %d, of %d bytes, are kept; revoke some with: packs-mcp approvals revoke", ErrFull, whole.grants, whole.bytes)
	}
	lines = slices.DeleteFunc(lines, func(line []byte) bool { return line == nil })
	b := bytes.NewBuffer(make([]byte, 0, frame+all.bytes))
	b.WriteString(head)
	for i, line := range lines {
		b.Write(line)
		if i < len(lines)-1 {
			b.WriteByte(',')
		}
		b.WriteByte('\n')
	}
	b.WriteString(foot)
	seal = sealOf(key, b.Bytes())
	b.WriteString(seal + end)
	return b.Bytes(), seal, nil
}

// linesOf returns the lines of the file, without separators.
func linesOf(given []grants.Grant) ([][]byte, error) {
	lines := make([][]byte, len(given))
	for i := range given {
		line, err := strictjson.Encode(&given[i])
		if err != nil {
			return nil, fmt.Errorf("writing %s: %w", what, err)
		}
		lines[i] = visible(line)
	}
	return lines, nil
}

// longestVoid returns the indexes of the void grants, longest void first.
func longestVoid(given []grants.Grant) []int {
	var places []int
	for i, g := range given {
		if g.Void != nil {
			places = append(places, i)
		}
	}
	slices.SortStableFunc(places, func(a, b int) int {
		return cmp.Or(given[a].Void.At.Compare(given[b].Void.At), given[a].Since.Compare(given[b].Since))
	})
	return places
}

// visible writes invisible and reordering characters as \u escapes: people are told
// to look at the file, and a pack's text in it must not be able to control their
// terminal. In JSON, such characters only occur in strings.
func visible(line []byte) []byte {
	if !bytes.ContainsFunc(line, hidden) {
		return line
	}
	var out []byte
	for _, r := range string(line) {
		switch {
		case !hidden(r):
			out = append(out, string(r)...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

func hidden(r rune) bool { return !unicode.IsPrint(r) }

// clone copies grants, so that a caller's changes affect nobody else.
func clone(given []grants.Grant) []grants.Grant {
	given = slices.Clone(given)
	for i := range given {
		g := &given[i]
		g.Argv, g.Facts, g.Files = slices.Clone(g.Argv), slices.Clone(g.Facts), slices.Clone(g.Files)
		var all []string // one allocation for the values of all facts
		for _, f := range g.Facts {
			all = append(all, f.Values...)
		}
		for j := range g.Facts {
			n := len(g.Facts[j].Values)
			if g.Facts[j].Values != nil {
				g.Facts[j].Values = all[:n:n]
			}
			all = all[n:]
		}
		if g.Void != nil {
			v := *g.Void
			v.Changes = slices.Clone(v.Changes)
			g.Void = &v
		}
	}
	return given
}
