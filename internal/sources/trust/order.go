package trust

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// An Order asks the program to sign an artifact with one of the user's keys.
type Order struct {
	Version  int    `json:"version"`
	Sign     string `json:"sign"` // the digest of the artifact, "sha256:…"
	Key      []byte `json:"key"`  // private, as PEM: cosign's format or PKCS #8
	Password []byte `json:"password,omitempty"`
}

// A Product is the result of an Order.
type Product struct {
	Version int    `json:"version"`
	Sign    string `json:"sign"`   // as in the order
	Bundle  []byte `json:"bundle"` // a Sigstore bundle that vouches for the artifact
	Key     string `json:"key"`    // the public key, as [Key] has it
	Problem string `json:"problem,omitempty"`
}

// Ask encodes an order for the program.
func (o Order) Ask() ([]byte, error) {
	o.Version = protocol
	return json.Marshal(o)
}

// ParseOrder reads an order; ok is false if it is something else, such as a [Question].
func ParseOrder(data []byte) (o Order, ok bool, err error) {
	n, problem := strictjson.Parse(data)
	if problem != nil || !has(n, "sign") {
		return o, false, nil
	}
	if err := decode(data, &o); err != nil {
		return o, true, err
	}
	if o.Version != protocol {
		return o, true, fmt.Errorf("the order has version %d, and this program knows %d", o.Version, protocol)
	}
	return o, true, nil
}

func has(n *strictjson.Node, key string) bool {
	for _, m := range n.Members {
		if m.Key == key {
			return true
		}
	}
	return false
}

// Answer encodes a product for the main program.
func (o Order) Answer(p Product) ([]byte, error) {
	p.Version, p.Sign = protocol, o.Sign
	return json.Marshal(p)
}

// Product reads the answer to the order. Its bundle must still be verified, like any
// other.
func (o Order) Product(data []byte) (Product, error) {
	var p Product
	if err := decode(data, &p); err != nil {
		return p, fmt.Errorf("its answer is not a signature: %w", err)
	}
	switch {
	case p.Version != protocol || p.Sign != o.Sign:
		return p, errors.New("its answer is about something else")
	case p.Problem != "":
		return p, errors.New(p.Problem)
	case len(p.Bundle) == 0 || p.Key == "":
		return p, errors.New("its answer has no signature")
	}
	return p, nil
}
