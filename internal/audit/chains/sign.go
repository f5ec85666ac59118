package chains

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/store"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Keys sign seals and checkpoints. The first key signs; signatures with any of them
// are accepted.
type Keys struct {
	signer ed25519.PrivateKey
	public []string // in hexadecimal
}

// KeysOf derives the keys from those that the replicas share. The result of
// [Keys.Public] does not reveal the secret.
func KeysOf(shared store.Keys) Keys {
	var k Keys
	for _, seed := range shared.Derive("audit log v1") {
		private := ed25519.NewKeyFromSeed(seed)
		if k.signer == nil {
			k.signer = private
		}
		public, _ := private.Public().(ed25519.PublicKey)
		k.public = append(k.public, hex.EncodeToString(public))
	}
	return k
}

// Public returns the public keys, in hexadecimal.
func (k Keys) Public() []string { return slices.Clone(k.public) }

// ParseKey reads a public key as [Keys.Public] returns it.
func ParseKey(text string) (string, error) {
	key, err := hex.DecodeString(text)
	if err != nil || len(key) != ed25519.PublicKeySize {
		return "", errors.New("a key of the audit log is 64 hexadecimal digits")
	}
	return hex.EncodeToString(key), nil
}

// sealed is the content of a block's last line.
type sealed struct {
	Chain string `json:"seal"`
	Seq   int64  `json:"seq"`  // of the entry before it
	Last  string `json:"last"` // the hash of that entry
}

// A head is the newest entry of a chain.
type head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// A checkpoint records how far the chains have grown.
type checkpoint struct {
	Number int64     `json:"checkpoint"` // 1 is the first
	Time   time.Time `json:"time"`
	By     string    `json:"by"` // the server
	// Whole says that Heads has all chains that there ever were, and that the
	// checkpoints before this one may have been removed.
	Whole bool            `json:"whole,omitempty"`
	Heads map[string]head `json:"heads"` // of the chains that have grown
	// Pruned says up to which entry each chain may have been removed.
	Pruned map[string]head `json:"pruned,omitempty"`
	Prev   string          `json:"prev"` // hash of the line of the checkpoint before; zeros in the first
}

const (
	sealPrefix       = `{"seal":`
	checkpointPrefix = `{"checkpoint":`
	keyMember        = `,"key":"`
	signatureMember  = `","signature":"`
	// maxSeal is more bytes than any seal has.
	maxSeal = 1 << 10
	// signedPrefix is what a signature covers besides the line.
	signedPrefix = "audit log of packs-mcp\n"
)

// zeroHash is the Prev of the first checkpoint.
const zeroHash = "0000000000000000000000000000000000000000000000000000000000000000"

// hashOf returns the hash of a line without its line feed.
func hashOf(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

// sign returns v as a line that ends with the key and a signature of the text before
// it.
func (k Keys) sign(v any) []byte {
	line, err := strictjson.Encode(v)
	if err != nil {
		panic(err) // seals and checkpoints always encode
	}
	line = append(line[:len(line)-1], keyMember...)
	line = append(line, k.public[0]...)
	signature := ed25519.Sign(k.signer, append([]byte(signedPrefix), line...))
	line = append(line, signatureMember...)
	line = append(line, hex.EncodeToString(signature)...)
	return append(line, "\"}\n"...)
}

// errSignature means that a line was not signed by one of the keys.
var errSignature = errors.New("the signature is not one of the replicas'")

// unsign reads a line without its line feed into v, if one of the keys has signed it.
func unsign(line []byte, keys []string, v any) error {
	at := bytes.LastIndex(line, []byte(signatureMember))
	text, whole := bytes.CutSuffix(line, []byte(`"}`))
	if at < 0 || !whole || at+len(signatureMember) > len(text) {
		return errSignature
	}
	signature, err := hex.DecodeString(string(text[at+len(signatureMember):]))
	body := line[:at]
	named := bytes.LastIndex(body, []byte(keyMember))
	if err != nil || named < 0 {
		return errSignature
	}
	name := string(body[named+len(keyMember):])
	key, err := hex.DecodeString(name)
	if err != nil || len(key) != ed25519.PublicKeySize || !slices.Contains(keys, name) ||
		!ed25519.Verify(key, append([]byte(signedPrefix), body...), signature) {
		return errSignature
	}
	return json.Unmarshal(line, v)
}

// keyOf returns the key that a signed line names; "" if it names none. It does not check
// the signature.
func keyOf(line []byte) string {
	var named struct{ Key string }
	_ = json.Unmarshal(line, &named)
	return named.Key
}

// lastSeal returns the content of the seal at the end of a block.
func lastSeal(block []byte, keys []string, chain string) (sealed, error) {
	line := bytes.TrimSuffix(block, []byte("\n"))
	line = line[bytes.LastIndexByte(line, '\n')+1:]
	var s sealed
	if !bytes.HasPrefix(line, []byte(sealPrefix)) {
		return sealed{}, errUnsealed
	}
	if err := unsign(line, keys, &s); err != nil {
		return sealed{}, err
	}
	if s.Chain != chain {
		return sealed{}, errors.New("it is the seal of another chain")
	}
	return s, nil
}

// errUnsealed means that a block does not end with a seal: its writer was stopped in the
// middle of a long line.
var errUnsealed = errors.New("the block has no seal")
