package store

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
)

// proofs is the folder with the proofs of signatures, each named by its digest.
const proofs = inner + "/proofs"

// maxProof is more than any fetched proof has.
const maxProof = 4 << 20

func proofName(digest string) (string, error) {
	digits, ok := strings.CutPrefix(digest, "sha256:")
	if raw, err := hex.DecodeString(digits); !ok || err != nil || len(raw) != sha256.Size {
		return "", errors.New("the lock file does not name its proof")
	}
	return strings.ToLower(digits) + ".json", nil
}

// KeepProofs stores the proofs of packs that are about to come in, and removes proofs
// that no signature needs.
func (t *Tx) KeepProofs(all ...[]byte) error {
	if err := t.root.Mkdir(proofs, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if info, err := t.root.Lstat(proofs); err != nil || !info.IsDir() { // a project may have put a link here
		return errors.Join(err, fmt.Errorf("%q is not a folder", t.s.in("proofs")))
	}
	if err := t.forgetProofs(); err != nil {
		return err
	}
	for _, data := range all {
		sum := sha256.Sum256(data)
		if err := writeIn(t.root, path.Join(proofs, hex.EncodeToString(sum[:])+".json"), data); err != nil {
			return err
		}
	}
	return nil
}

// forgetProofs removes the proofs that neither the lock file nor a previous version
// names.
func (t *Tx) forgetProofs() error {
	used := map[string]bool{}
	use := func(e lock.Entry) {
		if e.Signature == nil {
			return
		}
		if name, err := proofName(e.Signature.Bundle); err == nil {
			used[name] = true
		}
	}
	for _, e := range t.l.Packs {
		use(e)
	}
	olds, err := fs.Glob(t.root.FS(), path.Join(inner, "before", "*", "entry.json"))
	if err != nil {
		return err
	}
	for _, name := range olds {
		data, err := t.root.ReadFile(name)
		var e lock.Entry
		if err == nil {
			err = json.Unmarshal(data, &e)
		}
		if err != nil {
			return nil // the proofs that it needs are not known
		}
		use(e)
	}
	all, err := fs.ReadDir(t.root.FS(), proofs)
	if err != nil {
		return err
	}
	for _, d := range all {
		if !used[d.Name()] && d.Type().IsRegular() {
			if err := t.root.Remove(path.Join(proofs, d.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Proof returns the proof of a signature by its digest, byte for byte as it came in.
func (s *Store) Proof(digest string) ([]byte, error) {
	name, err := proofName(digest)
	if err != nil {
		return nil, err
	}
	data, err := readFile(s.in("proofs", name), maxProof)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("its proof is not kept here")
	}
	if err != nil {
		return nil, fmt.Errorf("reading its proof: %w", err)
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:])+".json" != name {
		return nil, errors.New("its proof was changed here")
	}
	return data, nil
}
