package git

import (
	"bytes"
	"errors"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

// Signer returns who signed the tag that named the commit, or the commit. Only SSH
// signatures are known here.
func (r *repository) Signer() (*lock.Signature, error) {
	if r.tag != nil {
		raw, err := r.raw(plumbing.TagObject, r.tag.hash)
		if err != nil {
			return nil, err
		}
		if s, err := signer(cutTag(raw)); s != nil || err != nil {
			if r.tag.target == r.commit.hash {
				r.proof = raw
			}
			return s, err
		}
	}
	raw, err := r.raw(plumbing.CommitObject, r.commit.hash)
	if err != nil {
		return nil, err
	}
	message, signature, err := cutCommit(raw)
	if err != nil {
		return nil, err
	}
	r.proof = raw
	return signer(message, signature)
}

// maxProof is the largest tag or commit that is kept, in bytes.
const maxProof = 1 << 20

// SignerProof implements [sources.Signed]: the signed tag or commit proves it.
func (r *repository) SignerProof() []byte {
	if len(r.proof) > maxProof {
		return nil
	}
	return r.proof
}

// Prove checks the signature of a tag or commit again, for the commit with a pin, and
// returns the fingerprint of the key.
func Prove(raw []byte, pin string) (fingerprint string, err error) {
	if target, _, ok := hashIn(raw, "object"); ok {
		if "git:"+target.String() != pin {
			return "", errors.New("the signature is for another commit")
		}
		message, signature := cutTag(raw)
		return trust.SSH(signature, message, trust.NamespaceGit)
	}
	if "git:"+plumbing.ComputeHash(plumbing.CommitObject, raw).String() != pin {
		return "", errors.New("the signature is for another commit")
	}
	message, signature, err := cutCommit(raw)
	if err != nil {
		return "", err
	}
	return trust.SSH(signature, message, trust.NamespaceGit)
}

func signer(message, signature []byte) (*lock.Signature, error) {
	if len(signature) == 0 {
		return nil, nil
	}
	key, err := trust.SSH(signature, message, trust.NamespaceGit)
	if errors.Is(err, trust.ErrNotSSH) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &lock.Signature{Kind: "ssh", Key: key}, nil
}

// raw returns the bytes of an object: those were signed, not a library's
// interpretation of them.
func (r *repository) raw(kind plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	o, err := objectAt(r.store, kind, h)
	if err != nil {
		return nil, err
	}
	return bytesOf(o)
}

// cutTag separates a tag from the signature at its end.
func cutTag(raw []byte) (message, signature []byte) {
	i := bytes.LastIndex(raw, []byte("\n-----BEGIN "))
	if i < 0 {
		return raw, nil
	}
	return raw[:i+1], raw[i+1:]
}

// cutCommit separates a commit from the signature in its header, as git does: a line
// that begins with a space continues the previous one.
func cutCommit(raw []byte) (message, signature []byte, err error) {
	header, body, _ := bytes.Cut(raw, []byte("\n\n"))
	in, had := false, false
	for line := range bytes.SplitSeq(header, []byte("\n")) {
		if in && bytes.HasPrefix(line, []byte(" ")) {
			signature = append(append(signature, line[1:]...), '\n')
			continue
		}
		value, is := bytes.CutPrefix(line, []byte("gpgsig "))
		if in = is; !in {
			message = append(append(message, line...), '\n')
			continue
		}
		if had {
			return nil, nil, errors.New("the commit has two signatures")
		}
		had = true
		signature = append(append(signature, value...), '\n')
	}
	return append(append(message, '\n'), body...), signature, nil
}
