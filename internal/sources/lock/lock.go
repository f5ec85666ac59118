// Package lock reads and writes packs.lock.json: which packs were added, from where,
// and which bytes each has.
//
// It does not fetch or compare anything. It only checks that the file is well formed.
package lock

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Name is the name of the file.
const Name = "packs.lock.json"

// MaxSize is the largest file that is read, in bytes: some ten thousand packs.
const MaxSize = 16 << 20

// version is the only version of the format so far.
const version = 1

// A Lock is the content of the file.
type Lock struct {
	Packs map[string]Entry // :: id → what was added

	others map[string]json.RawMessage // what another version of this program wrote
}

// An Entry is one pack. Its fields have the order that the file has: that of their names
// there.
type Entry struct {
	ContentDigest string     `json:"contentDigest"`       // as ToolHive has it
	CreatedAt     string     `json:"createdAt,omitempty"` // RFC 3339, from the source
	Digest        string     `json:"digest"`              // of the pack, as grants have it
	Explicit      bool       `json:"explicit,omitempty"`  // a person asked for it by name
	Path          string     `json:"path,omitempty"`      // of the pack inside the source, with slashes
	Pin           string     `json:"pin"`                 // the source's own name for these bytes: "git:" and a commit, "sha256:" of an archive or a manifest
	Requires      []string   `json:"requires,omitempty"`  // sources of packs that it needs
	Resolved      string     `json:"resolved"`            // the source, resolved to a commit or digest
	Scan          *Scan      `json:"scan,omitempty"`      // what the scan found, and what a person accepted of it
	Signature     *Signature `json:"signature,omitempty"` // who signed it
	// SignedAt is when a log or an authority saw the signature, in RFC 3339. An update
	// must have no earlier SignedAt, UpdatedAt or Version.
	SignedAt   string `json:"signedAt,omitempty"`
	Source     string `json:"source"`               // as the person wrote it; an update looks there again
	Unsigned   bool   `json:"unsigned,omitempty"`   // a person took it without a signature
	UpdatedAt  string `json:"updatedAt,omitempty"`  // RFC 3339, from the source
	Version    string `json:"version,omitempty"`    // from the pack or else its source, if it has an order
	Visibility string `json:"visibility,omitempty"` // of a rulebook: who may see it

	others map[string]json.RawMessage
}

// A Signature says who vouches for a pack. An update must have the same one, member
// by member.
type Signature struct {
	Kind       string `json:"kind"`                 // "ssh", "sigstore" or "key"
	Identity   string `json:"identity,omitempty"`   // a workflow, or an address
	Issuer     string `json:"issuer,omitempty"`     // who certified the identity
	Repository string `json:"repository,omitempty"` // that it was built from
	Ref        string `json:"ref,omitempty"`        // of that repository
	Runner     string `json:"runner,omitempty"`     // that it was built on
	Key        string `json:"key,omitempty"`        // the fingerprint
	PublicKey  string `json:"publicKey,omitempty"`  // of kind "key": its DER form in base64, so that others do not need the file
	Bundle     string `json:"bundle,omitempty"`     // the digest of the proof
}

// Same reports whether two signatures are by the same signer. The proof differs from
// version to version.
func (s *Signature) Same(other *Signature) bool {
	if s == nil || other == nil {
		return s == other
	}
	a, b := *s, *other
	a.Bundle, b.Bundle = "", ""
	return a == b
}

// plain reports whether the signer can be shown to a person: it has only short ASCII
// words, so that none looks like another or pushes the following text out of sight.
func (s *Signature) plain() bool {
	const most = 1000
	for _, text := range []string{s.Kind, s.Identity, s.Issuer, s.Repository, s.Ref, s.Runner, s.Key} {
		if len(text) > most || strings.IndexFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) >= 0 {
			return false
		}
	}
	return true
}

// A Scan records which of the scan's findings a person accepted.
type Scan struct {
	Rules    string   `json:"rules"`              // the version of the rules
	Accepted []string `json:"accepted,omitempty"` // the hashes of findings, sorted
}

// ErrNewer says that a newer version of the program wrote the file.
var ErrNewer = errors.New("a newer version of packs-mcp wrote it; update this one")

// isDigest reports whether text is a kind of digest, a colon and one of some numbers of
// hexadecimal digits.
func isDigest(text, kind string, lengths ...int) bool {
	digits, ok := strings.CutPrefix(text, kind+":")
	return ok && slices.Contains(lengths, len(digits)) && strings.Trim(digits, "0123456789abcdef") == ""
}

func isPin(text string) bool {
	return isDigest(text, "sha256", 64) || isDigest(text, "git", 40, 64) || isDigest(text, "skill", 64)
}

// Parse reads the file. Empty data is an empty lock. Unknown members are kept for
// [Lock.Marshal]. A server reads the file when it starts and for each question, so each
// byte is read few times.
func Parse(data []byte) (*Lock, error) {
	l := &Lock{Packs: map[string]Entry{}}
	if len(bytes.TrimSpace(data)) == 0 {
		return l, nil
	}
	root, problem := strictjson.Parse(data)
	if problem != nil {
		return nil, fmt.Errorf("at byte %d: %s", problem.Offset, problem.Problem)
	}
	if root.Kind != strictjson.Object {
		return nil, errors.New("it is not an object")
	}
	is := root.Get("version")
	if is == nil || is.Kind != strictjson.Number {
		return nil, errors.New(`it has no "version"`)
	}
	switch n, err := strconv.Atoi(is.Text); {
	case err != nil || n < 1:
		return nil, errors.New(`it has no "version"`)
	case n > version:
		return nil, ErrNewer
	}
	l.others = map[string]json.RawMessage{}
	for _, m := range root.Members {
		if m.Key != "version" && m.Key != "packs" {
			l.others[m.Key] = rawOf(data, m.Value)
		}
	}
	all := root.Get("packs")
	if all == nil {
		return l, nil
	}
	if all.Kind != strictjson.Object {
		return nil, errors.New(`"packs" is not an object`)
	}
	known := keys()
	for _, m := range all.Members {
		var e Entry
		err := json.Unmarshal(data[m.Value.Start:m.Value.End], &e)
		if err == nil {
			err = e.check(m.Key)
		}
		if err == nil {
			e.others, err = unknown(data, m.Value, known)
		}
		if err != nil {
			return nil, fmt.Errorf("%q: %w", m.Key, err)
		}
		l.Packs[m.Key] = e
	}
	return l, nil
}

// rawOf copies a value as it is written.
func rawOf(data []byte, n *strictjson.Node) json.RawMessage {
	return bytes.Clone(data[n.Start:n.End])
}

// keys returns the keys of an entry.
func keys() []string {
	var all []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Entry]()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			all = append(all, name)
		}
	}
	return all
}

// unknown returns the members of an entry that are not known. It refuses a key such as
// "Source" or "DIGEST": the JSON library accepts it as the known key, but people and
// other programs do not.
func unknown(data []byte, entry *strictjson.Node, known []string) (map[string]json.RawMessage, error) {
	var others map[string]json.RawMessage
	for _, m := range entry.Members {
		if slices.Contains(known, m.Key) {
			continue
		}
		if i := slices.IndexFunc(known, func(name string) bool { return strings.EqualFold(m.Key, name) }); i >= 0 {
			return nil, fmt.Errorf("its key %q looks like %q", m.Key, known[i])
		}
		if others == nil {
			others = map[string]json.RawMessage{}
		}
		others[m.Key] = rawOf(data, m.Value)
	}
	return others, nil
}

// check refuses an unusable entry. The file comes with a project, so it is not
// trusted.
func (e *Entry) check(id string) error {
	switch {
	case !ValidID(id):
		return errors.New("this is not the id of a pack")
	case e.Source == "" || e.Resolved == "":
		return errors.New("it does not say where it comes from")
	case !isDigest(e.Digest, "sha256", 64) || !isDigest(e.ContentDigest, "sha256", 64):
		return errors.New("it has no digest")
	case !isPin(e.Pin):
		return errors.New(`its "pin" is neither a commit nor a digest`)
	case e.Signature != nil && e.Unsigned:
		return errors.New("it is both signed and unsigned")
	case e.Signature == nil && !e.Unsigned:
		return errors.New("it says neither who signed it nor that nobody did")
	case !isDate(e.CreatedAt) || !isDate(e.UpdatedAt) || !isDate(e.SignedAt):
		return errors.New("its date is none")
	case !ValidVisibility(e.Visibility):
		return errors.New(`its "visibility" is not a word`)
	case e.Signature != nil && !e.Signature.plain():
		return errors.New("it names a signer as none is named")
	case e.Signature != nil && e.Signature.Bundle != "" && !isDigest(e.Signature.Bundle, "sha256", 64):
		return errors.New("the proof of its signature has no digest")
	case e.Signature != nil && e.Signature.Kind == "key" && e.Signature.Key != fingerprint(e.Signature.PublicKey):
		return errors.New("its key has another fingerprint")
	}
	return nil
}

// isDate reports whether text is a time or empty. It is checked since models read it.
func isDate(text string) bool {
	if text == "" {
		return true
	}
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// ValidVisibility reports whether text can be the visibility of a rulebook: a word or
// empty.
func ValidVisibility(text string) bool {
	return len(text) <= 32 && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_") == ""
}

// fingerprint returns the fingerprint of a key in base64, as OpenSSH writes it.
func fingerprint(key string) string {
	der, err := base64.StdEncoding.DecodeString(key)
	if err != nil || len(der) == 0 {
		return "none"
	}
	sum := sha256.Sum256(der)
	return "SHA256:" + base64.RawStdEncoding.EncodeToString(sum[:])
}

// ValidID reports whether a pack can be added under an id: one to four names, with
// slashes, of lower-case letters, digits, dots and hyphens.
func ValidID(id string) bool {
	parts := strings.Split(id, "/")
	return len(parts) <= 4 && !slices.ContainsFunc(parts, func(s string) bool { return !validSegment(s) })
}

func validSegment(s string) bool {
	const punctuation = ".-"
	if s == "" || len(s) > 64 || strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789"+punctuation) != "" {
		return false
	}
	if strings.Trim(s, punctuation) != s {
		return false
	}
	for i := 1; i < len(s); i++ {
		if strings.IndexByte(punctuation, s[i]) >= 0 && strings.IndexByte(punctuation, s[i-1]) >= 0 {
			return false
		}
	}
	return true
}

// Marshal writes the file: keys sorted and no timestamp, so that a diff shows only real
// changes.
func (l *Lock) Marshal() ([]byte, error) {
	all := maps.Clone(l.others)
	if all == nil {
		all = map[string]json.RawMessage{}
	}
	entries := map[string]any{}
	for id, e := range l.Packs {
		if len(e.others) == 0 {
			entries[id] = &e
			continue
		}
		known, err := members(e)
		if err != nil {
			return nil, err
		}
		for key, value := range e.others {
			if _, ok := known[key]; !ok {
				known[key] = value
			}
		}
		entries[id] = known
	}
	var err error
	if all["packs"], err = json.Marshal(entries); err != nil {
		return nil, err
	}
	all["version"] = json.RawMessage(fmt.Sprint(version))
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(all)
	return out.Bytes(), err
}

// members returns the entry's members that are not empty.
func members(e Entry) (map[string]json.RawMessage, error) {
	data, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	var m map[string]json.RawMessage
	return m, json.Unmarshal(data, &m)
}
