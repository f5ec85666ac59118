package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

const (
	// fresh is how long the provider's keys are used before they are fetched again.
	fresh = 15 * time.Minute
	// stale is how long they are used while the provider does not answer. A withdrawn
	// key is accepted no longer than that.
	stale = time.Hour
	// pause is the least time between two fetches, since strangers' tokens may name
	// unknown keys.
	pause = 5 * time.Second
	// maxDocument bounds the provider's answers, in bytes.
	maxDocument = 1 << 20
	// maxWords bounds the description of a failure, in bytes.
	maxWords = 300
	// maxKeys bounds how many keys are tried for a token that does not name its key.
	maxKeys = 64
)

// keys are the provider's signing keys. The library's own key set is not used, since
// it keeps a withdrawn key as long as tokens name it, and asks the provider once for
// each token that names an unknown key.
type keys struct {
	issuer string
	client *http.Client
	now    func() time.Time

	asking sync.Mutex // held while the provider is asked
	tried  time.Time  // when it was last asked; guarded by asking
	err    error      // why that failed; guarded by asking

	mu    sync.Mutex
	known []jose.JSONWebKey
	at    time.Time // when they were fetched
}

// verify returns the payload of a token that the provider signed.
func (k *keys) verify(ctx context.Context, token string) ([]byte, error) {
	signed, err := jose.ParseSignedCompact(token, algorithms()) // the JSON form has an unsigned header
	if err != nil || len(signed.Signatures) != 1 {
		return nil, errors.New("it is not a token with one signature")
	}
	head := signed.Signatures[0].Header
	if !forAccess(head) {
		return nil, errors.New("the provider signed it for something other than access, as its type (typ) says")
	}
	all, err := k.find(ctx, head.KeyID)
	if err != nil {
		return nil, err
	}
	for _, key := range all {
		if !fits(key, head) {
			continue
		}
		if payload, err := signed.Verify(key); err == nil {
			return payload, nil
		}
	}
	return nil, errors.New("no key of the identity provider made its signature")
}

// forAccess reports whether a token with this header may be an access token: a provider
// signs notices and requests with the same keys, and says so in the type (RFC 8725, 3.11).
// Many providers call an access token a JWT, or nothing (RFC 9068: "at+jwt").
func forAccess(head jose.Header) bool {
	typ, there := head.ExtraHeaders[jose.HeaderType]
	name, _ := typ.(string)
	switch strings.TrimPrefix(strings.ToLower(name), "application/") {
	case "jwt", "at+jwt":
		return true
	}
	return !there
}

// fits reports whether a key may have signed a token with this header.
func fits(key jose.JSONWebKey, head jose.Header) bool {
	return (head.KeyID == "" || key.KeyID == head.KeyID) && (key.Algorithm == "" || key.Algorithm == head.Algorithm) && (key.Use == "" || key.Use == "sig")
}

// find returns the keys. It fetches them if they are old or none has the name. While
// one request fetches old keys, the others use them.
func (k *keys) find(ctx context.Context, name string) ([]jose.JSONWebKey, error) {
	all, has, age := k.current(name)
	if has && age < fresh {
		return all, nil
	}
	if has && age < stale {
		if !k.asking.TryLock() {
			return all, nil
		}
	} else {
		k.asking.Lock()
	}
	defer k.asking.Unlock()
	if all, has, age = k.current(name); has && age < fresh { // another request has asked meanwhile
		return all, nil
	}
	err := k.refresh(ctx)
	if all, has, age = k.current(name); age >= stale || !has && err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAway, err) // it may have a new key
	}
	return all, nil
}

// current returns the keys, whether one has the name, and their age, which is the
// maximum before the first fetch.
func (k *keys) current(name string) (all []jose.JSONWebKey, has bool, age time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.at.IsZero() {
		return nil, false, math.MaxInt64
	}
	has = slices.ContainsFunc(k.known, func(key jose.JSONWebKey) bool { return name == "" || key.KeyID == name })
	return k.known, has, k.now().Sub(k.at)
}

// refresh fetches the keys, unless that was done a moment ago. The caller holds asking.
func (k *keys) refresh(ctx context.Context) error {
	if !k.tried.IsZero() && k.now().Sub(k.tried) < pause {
		return k.err
	}
	// Do not use the request's own context: the answer is for all requests, and a client
	// that leaves must not cancel it.
	all, err := k.fetch(context.WithoutCancel(ctx))
	if err != nil {
		err = errors.New(safetext.Line(strings.ToValidUTF8(err.Error()[:min(len(err.Error()), maxWords)], ""))) // it may quote the answer
	}
	if k.tried, k.err = k.now(), err; err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.known, k.at = all, k.tried
	return nil
}

// fetch asks the provider for the address of its keys, and fetches them.
func (k *keys) fetch(ctx context.Context) ([]jose.JSONWebKey, error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, Bounded(k.client)), k.issuer)
	if err != nil {
		return nil, err
	}
	var about struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&about); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, about.Keys, nil)
	if err != nil {
		return nil, err
	}
	res, err := short{k.client}.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("its keys: %s", res.Status)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(res.Body).Decode(&set); err != nil {
		return nil, fmt.Errorf("its keys: %w", err)
	}
	var all []jose.JSONWebKey
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		// A key of an unknown kind does not affect the others.
		if key.UnmarshalJSON(raw) == nil && key.Valid() && key.IsPublic() && len(all) < maxKeys {
			all = append(all, key)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("it has no keys that can be used here")
	}
	return all, nil
}

// Bounded returns a client that reads no more of an answer than a provider's documents
// need.
func Bounded(c *http.Client) *http.Client {
	return &http.Client{Transport: short{c}, Timeout: c.Timeout}
}

// short bounds what a client reads of an answer.
type short struct{ client *http.Client }

func (s short) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.client.Do(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxDocument), res.Body}
	}
	return res, err
}
