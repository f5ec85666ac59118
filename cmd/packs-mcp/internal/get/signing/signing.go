// Package signing finds out who signed a pack, compares that with the signer whom the flags
// demand, and signs what a person publishes. It leaves Sigstore bundles, and keys other than
// SSH keys, to packs-mcp-sigstore. It neither adds a pack nor refuses one; its caller does.
package signing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/launch"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/git"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

// checkTime is how long checking all signatures of a pack may take. Each takes some
// milliseconds.
const checkTime = time.Minute

// A Demand says who must have signed what is added. The zero value makes no demand.
type Demand struct {
	signer, issuer string
	key            string // in the form of [trust.Key]
	file           string // the file that holds the key
}

// NewDemand reads the flags.
func NewDemand(signer, issuer, file string) (Demand, error) {
	d := Demand{signer: signer, issuer: issuer, file: file}
	switch {
	case issuer != "" && signer == "":
		return d, &cli.UsageError{Err: errors.New("--issuer needs --signer"), Hint: "name both as the certificate has them"}
	case file == "":
		return d, nil
	case signer != "":
		return d, &cli.UsageError{Err: errors.New("--key names the signer, and so does --signer"), Hint: "leave out one of them"}
	}
	const most = 64 << 10
	text, err := readSmall(file, most)
	if err == nil {
		d.key, err = trust.Key(text)
	}
	if err != nil {
		return d, fmt.Errorf("reading the public key %q: %w", file, err)
	}
	return d, nil
}

func readSmall(file string, most int64) ([]byte, error) {
	info, err := os.Stat(file)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > most) {
		err = fmt.Errorf("it is not a file of at most %d KiB", most>>10)
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// is reports whether a signature is by the demanded signer.
func (d Demand) is(s *lock.Signature) bool {
	switch {
	case s == nil:
		return d == Demand{}
	case d.key != "":
		return s.Kind == trust.KindKey && s.PublicKey == d.key
	case d.signer == "":
		return true
	case s.Identity == "":
		return s.Key == d.signer && d.issuer == ""
	}
	return s.Identity == d.signer && s.Issuer == d.issuer
}

// Check refuses a pack with this signature if somebody else had to sign it. unchecked is why
// the signature was not checked; "": it was. An identity counts only together with its
// issuer: another issuer can give anybody the same name.
func (d Demand) Check(id string, s *lock.Signature, unchecked string) error {
	if d.is(s) {
		return nil
	}
	want := d.signer
	switch {
	case d.key != "":
		want = "the key in " + d.file
	case d.issuer != "":
		want += ", " + d.issuer
	}
	by := safetext.Line(trust.Words(s))
	if unchecked != "" {
		by = "somebody who was not checked: " + cli.OneLine(unchecked, 400)
	}
	err := error(&cli.StatusError{Err: fmt.Errorf("%s is signed by %s, and not by %s", safetext.Line(id), by, safetext.Line(want)), Status: cli.StatusRefused})
	if s != nil && s.Identity == d.signer && d.issuer == "" {
		err = cli.WithHint(err, "name with --issuer who identified this signer")
	}
	return err
}

// An UncheckedError says that a signature that must be checked could not be checked.
type UncheckedError struct{ error }

func (e *UncheckedError) Unwrap() error { return e.error }

// A Signed is what was found out about a pack's signature.
type Signed struct {
	By        *lock.Signature // nil: nobody signed, or no signature was checked
	Proof     []byte
	At        string // when a log or an authority saw the signature; "": unknown
	Unchecked string // why an existing signature was not checked
}

// A Verifier finds out who signed packs. The zero value makes no demand and trusts the
// authorities of the public service.
type Verifier struct {
	Demand      Demand
	Authorities string // the file that names those of a Sigstore service; "": the public ones
}

// Why a signature was not checked, and what to do.
const (
	noProgram = "This pack is signed with Sigstore. Install " + trust.Program + " beside packs-mcp to check it"
	noKey     = "This pack is signed with a key. Name the file of the public key with --key to check it"
)

// Signed finds out who signed a snapshot.
func (v *Verifier) Signed(ctx context.Context, snap sources.Snapshot, path, id string, before *lock.Entry) (Signed, error) {
	refused := func(reason string) error {
		return &trust.Refusal{Reason: safetext.Line(id + ": " + reason), Old: "a signature", New: "one that does not fit"}
	}
	snap, err := sources.At(ctx, snap, path)
	if err != nil {
		return Signed{}, err
	}
	by, err := snap.Signer()
	if err != nil {
		return Signed{}, refused(err.Error())
	}
	if by != nil {
		var proof []byte
		if s, ok := snap.(sources.Signed); ok {
			proof = s.SignerProof()
		}
		return bySSH(by, proof), nil
	}
	beside, ok := snap.(sources.Bundled)
	if !ok {
		return Signed{}, nil
	}
	proofs, err := beside.Proofs(ctx)
	if err != nil || len(proofs) == 0 {
		return Signed{}, err
	}
	unchecked := func(why string) (Signed, error) {
		if before != nil && before.Signature != nil {
			return Signed{}, &trust.Refusal{Reason: safetext.Line(id) + ": the signature was not checked", Old: trust.Words(before.Signature), New: why}
		}
		return Signed{Unchecked: why}, nil
	}
	c, err := v.checker(before)
	absent := errors.Is(err, launch.ErrNotBeside)
	if err != nil && !absent {
		return Signed{}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, checkTime, fmt.Errorf("it took longer than %s", checkTime))
	defer cancel()
	var good []Signed
	why, wrong := "", ""
	for _, one := range proofs {
		switch {
		case one.SSH != nil:
			good = append(good, bySSH(one.SSH, one.Kept))
			continue
		case one.Wrong != "":
			wrong = one.Wrong
			continue
		case absent:
			why = noProgram
			continue
		}
		verdict, err := c.judge(ctx, snap.Pin(), one.Bundle)
		if err != nil {
			return Signed{}, &UncheckedError{fmt.Errorf("%s: the signature was not checked: %w", safetext.Line(id), err)}
		}
		switch verdict.State {
		case trust.Verified, trust.OtherOne:
			good = append(good, Signed{By: verdict.Signer, Proof: one.Bundle, At: verdict.Time})
		case trust.NoKey:
			why = noKey
		case trust.Unfounded:
			wrong = verdict.Reason
		}
	}
	switch {
	case len(good) > 0:
		return v.Demand.choose(good, before)
	case wrong != "":
		return Signed{}, refused("the signature does not fit: " + cli.OneLine(wrong, 400))
	case why != "":
		return unchecked(why)
	}
	return Signed{}, nil // the signature is for something else
}

// bySSH is what an SSH signature comes to; proof may be nil.
func bySSH(by *lock.Signature, proof []byte) Signed {
	if proof != nil {
		with := *by
		with.Bundle = sources.Digest(proof)
		by = &with
	}
	return Signed{By: by, Proof: proof}
}

// choose returns one of several valid signatures: the one by the previous signer, the
// one by the demanded signer, or the only one.
func (d Demand) choose(good []Signed, before *lock.Entry) (Signed, error) {
	words := func(s Signed) string { return trust.Words(s.By) }
	slices.SortFunc(good, func(a, b Signed) int { return strings.Compare(words(a), words(b)) })
	if before != nil && before.Signature != nil {
		for _, s := range good {
			if before.Signature.Bundle == s.By.Bundle && before.Signature.Same(s.By) {
				return s, nil
			}
		}
		for _, s := range good {
			if before.Signature.Same(s.By) {
				return s, nil
			}
		}
	}
	for _, s := range good {
		if d != (Demand{}) && d.is(s.By) {
			return s, nil
		}
	}
	if words(good[0]) == words(good[len(good)-1]) {
		return good[0], nil
	}
	var all []string
	for _, s := range good {
		all = append(all, safetext.Line(words(s)))
	}
	err := fmt.Errorf("several have signed it:\n  %s", strings.Join(slices.Compact(all), "\n  "))
	return Signed{}, cli.WithHint(&cli.StatusError{Err: err, Status: cli.StatusRefused}, "say with --signer and --issuer, or with --key, whom you trust")
}

// A checker asks the program that verifies bundles.
type checker struct {
	program string
	root    []byte // the authorities; nil: those of the public service
	key     string
	want    *lock.Signature
	only    bool // the key was demanded: no other signer counts
}

// checker finds the program, and reads what it needs. For a known pack, the lock file
// says how to verify it, not the pack itself.
func (v *Verifier) checker(before *lock.Entry) (*checker, error) {
	program, err := launch.Beside(trust.Program)
	if err != nil {
		return nil, err
	}
	c := &checker{program: program, key: v.Demand.key, only: v.Demand.key != ""}
	if file := v.Authorities; file != "" {
		const most = 1 << 20
		if c.root, err = readSmall(file, most); err != nil {
			return nil, fmt.Errorf("reading %q, which sources.sigstore names: %w", file, err)
		}
	}
	if before != nil && before.Signature != nil {
		c.want = before.Signature
		if c.key == "" && c.want.Kind == trust.KindKey {
			c.key = c.want.PublicKey
		}
	}
	return c, nil
}

// judge checks one bundle. A bundle that is not by the key of before may be by
// somebody with a certificate, whom a person then sees beside the key.
func (c *checker) judge(ctx context.Context, digest string, bundle []byte) (trust.Verdict, error) {
	v, err := c.ask(ctx, trust.Question{Digest: digest, Bundle: bundle, Key: c.key, Root: c.root, Want: c.want})
	if err == nil && v.State == trust.Unfounded && c.key != "" && !c.only {
		if other, err := c.ask(ctx, trust.Question{Digest: digest, Bundle: bundle, Root: c.root, Want: c.want}); err != nil || other.State == trust.OtherOne {
			return other, err
		}
	}
	return v, err
}

func (c *checker) ask(ctx context.Context, q trust.Question) (trust.Verdict, error) {
	question, err := q.Ask()
	if err != nil {
		return trust.Verdict{}, err
	}
	answer, err := launch.Answer(ctx, c.program, question, trust.MaxVerdict)
	if err != nil {
		return trust.Verdict{}, errors.New(safetext.Line(err.Error()))
	}
	v, err := q.Verdict(answer)
	if err != nil {
		err = fmt.Errorf("%s: %w", trust.Program, err)
	}
	return v, err
}

// Proven verifies the signature of an entry again, with the proof that kept
// returns. It uses no network. An SSH signature without a proof is verified again by sync only.
func (v *Verifier) Proven(ctx context.Context, e lock.Entry, kept func(digest string) ([]byte, error)) error {
	if e.Signature == nil || e.Signature.Kind == trust.KindSSH && e.Signature.Bundle == "" {
		return nil
	}
	proof, err := kept(e.Signature.Bundle)
	if err != nil {
		return &UncheckedError{fmt.Errorf("the signature was not checked: %w", err)}
	}
	if e.Signature.Kind == trust.KindSSH {
		return provenSSH(e, proof)
	}
	c, err := v.checker(&e)
	if errors.Is(err, launch.ErrNotBeside) {
		err = fmt.Errorf("it is signed with Sigstore: install %s beside packs-mcp to check it", trust.Program)
	}
	var verdict trust.Verdict
	if err == nil {
		ctx, cancel := context.WithTimeoutCause(ctx, checkTime, fmt.Errorf("it took longer than %s", checkTime))
		defer cancel()
		verdict, err = c.judge(ctx, e.Pin, proof)
	}
	switch {
	case err != nil:
		return &UncheckedError{fmt.Errorf("the signature was not checked: %w", err)}
	case verdict.State == trust.OtherOne:
		return &trust.Refusal{Reason: "another signer than the lock file says", Old: trust.Words(e.Signature), New: trust.Words(verdict.Signer)}
	case verdict.State != trust.Verified:
		return &trust.Refusal{Reason: "the signature does not fit: " + cli.OneLine(verdict.Reason, 400), Old: trust.Words(e.Signature), New: "nobody"}
	}
	return nil
}

// provenSSH is proven for an SSH signature.
func provenSSH(e lock.Entry, proof []byte) error {
	prove := git.Prove
	if bytes.HasPrefix(proof, []byte("{")) { // a tag or commit begins with a word
		prove = sources.ProveFile
	}
	key, err := prove(proof, e.Pin)
	switch {
	case err != nil:
		return &trust.Refusal{Reason: "the signature does not fit: " + cli.OneLine(err.Error(), 400), Old: trust.Words(e.Signature), New: "nobody"}
	case key != e.Signature.Key:
		return &trust.Refusal{Reason: "another signer than the lock file says", Old: trust.Words(e.Signature), New: key}
	}
	return nil
}
