// Package sources finds the packs of a source, and puts one of them into a stage.
//
// A source is a [Snapshot]: the entries of one fixed state, and the source's own name
// for that state. A folder on this machine is one; the packages below have the other
// kinds. A site or server that lists its packs is a [Catalog], which is also a Snapshot
// and fetches each pack separately. A repository's marketplace only adds information
// about the packs found there.
//
// Package stage decides which files may come in, and package store keeps them. This
// package asks no person and no server, and starts no program.
package sources

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/byname"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packname"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// A Snapshot is a source in one state, which no longer changes.
type Snapshot interface {
	// Resolved returns the address of exactly this state.
	Resolved() string
	// Pin returns the source's own name for the state: "git:" and a commit, or "sha256:"
	// and a digest of the fetched bytes.
	Pin() string
	// Signer returns who signed the state, or nil if nobody did or the kind of signature
	// is unknown. A signature that does not match is an error.
	Signer() (*lock.Signature, error)
	// Walk calls do for each entry below a folder of the source, with paths relative to
	// it; "" is all of it. The reader has a file's content, and is valid until do
	// returns.
	Walk(ctx context.Context, under string, do func(stage.Entry, io.Reader) error) error
	// Close releases the fetched data.
	Close() error
}

// A Past is a Snapshot of a source that has a history.
type Past interface {
	// Fixed reports whether its name is meant to denote one state for ever, as a tag
	// does.
	Fixed() bool
	// Follows reports whether the state with a pin is in its history.
	Follows(ctx context.Context, pin string) (bool, error)
	// Precedes reports whether it is in the history of the state with a pin. Not every
	// source still has that; then it is an error.
	Precedes(ctx context.Context, pin string) (bool, error)
}

// A Bundled is a Snapshot that may have detached signatures.
type Bundled interface {
	// Proofs returns the signatures of the state that Pin names.
	Proofs(ctx context.Context) ([]Proof, error)
}

// A Proof is a detached signature. One member is set.
type Proof struct {
	Bundle []byte          // a Sigstore bundle, which nobody has verified
	SSH    *lock.Signature // the signer of an SSH signature that matches
	Kept   []byte          // beside SSH: what [ProveFile] needs to check it again; nil for what is too large to be kept
	Wrong  string          // why an SSH signature does not match
}

// A Signed is a Snapshot whose Signer can be proved later, without the source.
type Signed interface {
	// SignerProof returns what proves the signature that Signer returned; nil for none.
	SignerProof() []byte
}

// maxKept is the largest message that is kept with its signature, in bytes.
const maxKept = 2 << 20

// fileProof is a signed file with its signature, as it is kept.
type fileProof struct{ Signature, Message []byte }

// SSHProof checks an armored SSH signature of a message.
func SSHProof(armored, message []byte) Proof {
	key, err := trust.SSH(armored, message, trust.NamespaceFile)
	if err != nil {
		return Proof{Wrong: err.Error()}
	}
	out := Proof{SSH: &lock.Signature{Kind: trust.KindSSH, Key: key}}
	if len(message) <= maxKept {
		if out.Kept, err = json.Marshal(fileProof{armored, message}); err != nil {
			return Proof{Wrong: err.Error()}
		}
	}
	return out
}

// ProveFile checks again what [SSHProof] kept, for the state of a source with a pin, and
// returns the fingerprint of the key.
func ProveFile(kept []byte, pin string) (fingerprint string, err error) {
	var p fileProof
	if err := strictjson.Unmarshal(kept, &p); err != nil {
		return "", fmt.Errorf("its proof is damaged: %w", err)
	}
	if Digest(p.Message) != pin {
		return "", errors.New("the signature is for something else")
	}
	return trust.SSH(p.Signature, p.Message, trust.NamespaceFile)
}

// At returns the snapshot that has the pack at a path. Most sources have one for all.
func At(ctx context.Context, s Snapshot, under string) (Snapshot, error) {
	c, ok := s.(*Catalog)
	if !ok {
		return s, nil
	}
	one, _, err := c.find(ctx, under)
	return one, err
}

// A PinError says that a source's bytes are not the ones that were named.
type PinError struct{ At, Want, Got string }

func (e *PinError) Error() string {
	return fmt.Sprintf("%s is not what it should be\n  expected %s\n  found    %s", e.At, e.Want, e.Got)
}

// A Pack is a pack that a source offers.
type Pack struct {
	Path        string // of its folder inside the source, with slashes; "" for all of it
	Name        string // the last part of its id
	Description string
	Tags        []string
	Valid       bool
	Problems    []string // why it is not valid
	Plugin      string   // of the repository's own list that it belongs to, or ""
	Elsewhere   bool     // the list names it, but it is not in this source; never valid
}

// Bounds of a survey. Larger files are not read.
const (
	surveyFiles = 100_000
	surveyBytes = 256 << 20
)

// MaxDocument is the largest file that is read to find packs, in bytes: no larger file
// is an entry document or declares tools.
const MaxDocument = 2 << 20

// Survey finds the packs of a source at and below a folder. It skips files that may not
// come in: they matter when a pack with them is chosen. Until then, it trusts a
// source's own list of packs.
func Survey(ctx context.Context, s Snapshot, under string) ([]Pack, error) {
	if c, ok := s.(*Catalog); ok {
		return c.packs(under), nil
	}
	files := packfs.NewMemory(surveyed)
	st := stage.New(stage.Into{Memory: files}, stage.Limits{Files: surveyFiles, Bytes: surveyBytes})
	skills := map[string]bool{} // :: folder → it has a SKILL.md
	inPack := func(dir string) bool {
		for dir != "." && dir != "/" {
			if dir = path.Dir(dir); skills[dir] {
				return true
			}
		}
		return false
	}
	err := s.Walk(ctx, under, func(e stage.Entry, r io.Reader) error {
		if e.Kind != stage.File || !byname.Matters(e.Path, inPack(path.Dir(e.Path))) {
			return nil
		}
		in, ok := r.(sized)
		if !ok {
			data, err := io.ReadAll(io.LimitReader(r, MaxDocument+1))
			if err != nil {
				return err
			}
			in = bytes.NewReader(data)
		}
		if in.Len() > MaxDocument {
			return nil
		}
		err := st.Add(e, in)
		if re, ok := errors.AsType[*stage.RefusedError](err); ok && !errors.Is(re, stage.ErrTooLarge) {
			return nil
		}
		if err == nil && byname.IsSkill(path.Base(e.Path)) {
			skills[path.Dir(e.Path)] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	found, err := packsIn(ctx, packs.Root{Dir: surveyed, Memory: files}, under)
	if err == nil && under == "" {
		found = merge(files, found)
	}
	return found, err
}

// A sized is a reader that knows how many bytes are left, such as a [bytes.Reader].
type sized interface {
	io.Reader
	Len() int
}

// surveyed is the path of the folder in memory that a survey fills.
const surveyed = "/source"

// packsIn finds the packs of a folder.
func packsIn(ctx context.Context, root packs.Root, under string) ([]Pack, error) {
	root.Source = "survey"
	found, err := packs.Scan(ctx, packs.Options{Roots: []packs.Root{root}, Patient: true})
	if err != nil {
		return nil, err
	}
	dir := root.Dir
	if root.Memory == nil {
		if dir, err = filepath.EvalSymlinks(dir); err != nil {
			return nil, err
		}
	}
	var all []Pack
	for _, p := range found.All() {
		if p.Loose {
			continue
		}
		rel, err := filepath.Rel(dir, p.Dir)
		if err != nil {
			return nil, err
		}
		at := path.Join(under, filepath.ToSlash(rel))
		if at == "." {
			at = ""
		}
		out := Pack{Path: at, Name: path.Base(p.ID), Description: p.Description, Tags: p.Tags(), Valid: p.Valid}
		for _, d := range p.Problems {
			if !p.Valid {
				out.Problems = append(out.Problems, d.Message)
			}
		}
		if rel == "." && p.Frontmatter.Name() == "" { // this folder's name means nothing
			out.Name = packname.Nearest(path.Base(under))
		}
		all = append(all, out)
	}
	return all, nil
}

// Fill puts the pack at a path of the source into a stage.
func Fill(ctx context.Context, s Snapshot, under string, st *stage.Stage) error {
	n := 0
	err := s.Walk(ctx, under, func(e stage.Entry, r io.Reader) error {
		n++
		return st.Add(e, r)
	})
	if err == nil && n == 0 {
		err = fmt.Errorf("there is nothing at %q in %s", under, s.Resolved())
	}
	return err
}

// Below returns a path relative to a folder, and reports whether it is inside.
func Below(name, under string) (string, bool) {
	if under == "" {
		return name, true
	}
	return strings.CutPrefix(name, under+"/")
}

// Digest returns the digest of bytes: "sha256:" and 64 hexadecimal digits.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// IsDigest reports whether a text is such a digest.
func IsDigest(text string) bool {
	sum, ok := strings.CutPrefix(text, "sha256:")
	return ok && len(sum) == 64 && strings.Trim(sum, "0123456789abcdef") == ""
}
