package login

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	tokens "github.com/packs-mcp/packs-mcp/internal/oidc"
)

// A Prompt tells a person how to log in on another device.
type Prompt struct {
	URL   string    // where they log in; safe to show
	Code  string    // what they type there; safe to show
	Until time.Time // when Code expires
}

const (
	// usualInterval is the time between two polls if the provider gives none.
	usualInterval = 5 * time.Second
	// slower is what RFC 8628 adds to the interval when the provider asks to slow down.
	slower = 5 * time.Second
	// maxInterval and maxDevice bound the times that a provider may give.
	maxInterval = time.Minute
	maxDevice   = 30 * time.Minute
)

// ErrLate means that the person did not log in before the code expired.
var ErrLate = errors.New("nobody logged in in time")

// Device returns the tokens of a person who logs in on another device. It calls show
// once, then waits for the person.
func (p *Provider) Device(ctx context.Context, show func(Prompt)) (Tokens, error) {
	form := url.Values{"scope": {strings.Join(p.scopes, " ")}}
	if p.o.Resource != "" {
		form.Set("resource", p.o.Resource)
	}
	var begun struct {
		Device   string `json:"device_code"`
		User     string `json:"user_code"`
		URL      string `json:"verification_uri"`
		Seconds  int64  `json:"expires_in"`
		Interval int64  `json:"interval"`
	}
	if !p.HasDevice() {
		return Tokens{}, errors.New("the identity provider lets nobody log in on another device")
	}
	if err := p.post(ctx, p.about.Device, form, &begun); err != nil {
		return Tokens{}, err
	}
	if u, err := url.Parse(begun.URL); err != nil || !tokens.Trusted(u) || begun.Device == "" || begun.User == "" || len(begun.User) > 64 || begun.Seconds <= 0 {
		return Tokens{}, errors.New("the identity provider's answer cannot be used")
	}
	left := min(time.Duration(min(begun.Seconds, 86400))*time.Second, maxDevice)
	ctx, cancel := context.WithTimeoutCause(ctx, left, ErrLate)
	defer cancel()
	show(Prompt{URL: shown(begun.URL), Code: shown(begun.User), Until: time.Now().Add(left)})
	interval := usualInterval
	if begun.Interval > 0 {
		interval = time.Duration(min(begun.Interval, 60)) * time.Second
	}
	for {
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			return Tokens{}, context.Cause(ctx)
		}
		got, err := p.redeem(ctx, url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "device_code": {begun.Device}})
		refused, ok := errors.AsType[*RefusedError](err)
		switch {
		case err == nil:
			return got.tokens(), nil
		case ok && refused.Code == "authorization_pending":
		case ok && refused.Code == "expired_token":
			return Tokens{}, ErrLate
		case ok && refused.Code == "slow_down", !ok && ctx.Err() == nil: // also if the provider cannot be reached for a moment
			interval = min(interval+slower, maxInterval)
		case ctx.Err() != nil:
			return Tokens{}, context.Cause(ctx)
		default:
			return Tokens{}, err
		}
	}
}
