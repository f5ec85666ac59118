package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

const (
	// maxAnswer bounds how much of a response is read, in bytes.
	maxAnswer = 1 << 20
	// maxToken is the maximum length of a token, in bytes.
	maxToken = 64 << 10
)

// answer is a response of the token endpoint.
type answer struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token"`
	Kind    string `json:"token_type"`
	Seconds int64  `json:"expires_in"`
}

// Renew returns new tokens in place of expiring ones. A [*RefusedError] means that the
// person must log in again.
func (p *Provider) Renew(ctx context.Context, t Tokens) (Tokens, error) {
	got, err := p.redeem(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {t.Refresh}})
	if err != nil {
		return Tokens{}, err
	}
	renewed := got.tokens()
	if renewed.Refresh == "" {
		renewed.Refresh = t.Refresh // the provider issued no new one
	}
	return renewed, nil
}

// Revoke makes tokens useless to everyone. It returns no error if the provider does not
// support revocation.
func (p *Provider) Revoke(ctx context.Context, t Tokens) error {
	if p.about.Revoke == "" {
		return nil
	}
	form := url.Values{"token": {t.Access}, "token_type_hint": {"access_token"}}
	if t.Refresh != "" {
		form = url.Values{"token": {t.Refresh}, "token_type_hint": {"refresh_token"}}
	}
	return p.post(ctx, p.about.Revoke, form, nil)
}

// redeem exchanges the form's grant for tokens.
func (p *Provider) redeem(ctx context.Context, form url.Values) (answer, error) {
	if p.o.Resource != "" {
		form.Set("resource", p.o.Resource)
	}
	var got answer
	if err := p.post(ctx, p.about.Token, form, &got); err != nil {
		return answer{}, err
	}
	switch {
	case got.Access == "" || !strings.EqualFold(got.Kind, "Bearer"):
		return answer{}, errors.New("the identity provider gives no bearer token")
	case max(len(got.Access), len(got.Refresh), len(got.ID)) > maxToken:
		return answer{}, errors.New("the identity provider's token is too long")
	}
	return got, nil
}

func (a answer) tokens() Tokens {
	t := Tokens{Access: a.Access, Refresh: a.Refresh}
	if a.Seconds > 0 {
		t.Until = time.Now().Add(time.Duration(min(a.Seconds, int64(time.Hour*24*366/time.Second))) * time.Second)
	}
	return t
}

// post sends a form and decodes the response into out unless that is nil. Its errors
// never contain the form.
func (p *Provider) post(ctx context.Context, address string, form url.Values, out any) error {
	byPost := p.o.Secret == "" || slices.Contains(p.about.AuthMethods, "client_secret_post") && !slices.Contains(p.about.AuthMethods, "client_secret_basic")
	if byPost {
		form.Set("client_id", p.o.Client)
		if p.o.Secret != "" {
			form.Set("client_secret", p.o.Secret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("asking the identity provider: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if !byPost {
		req.SetBasicAuth(url.QueryEscape(p.o.Client), url.QueryEscape(p.o.Secret))
	}
	res, err := p.o.HTTP.Do(req)
	if err != nil {
		return fmt.Errorf("asking the identity provider: %w", err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("asking the identity provider: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		var refused struct {
			Code  string `json:"error"`
			Words string `json:"error_description"`
		}
		if json.Unmarshal(body, &refused) == nil && refused.Code != "" && res.StatusCode < 500 {
			return newRefused(refused.Code, refused.Words)
		}
		return fmt.Errorf("the identity provider answered %s", res.Status)
	}
	if out == nil {
		return nil
	}
	if json.Unmarshal(body, out) != nil {
		return errors.New("the identity provider's answer cannot be read")
	}
	return nil
}
