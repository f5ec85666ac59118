package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// A conformanceFront is a proxy between the suite and the server: the suite cannot send a
// token, and requests tools by names that no pack can have. It adds the token and translates
// names according to the list, so each verdict is about what the server offers under its own
// names. Everything else passes unchanged.
type conformanceFront struct {
	t     *testing.T
	w     *world
	list  *conformanceList
	to    *url.URL
	url   string                                     // for the suite
	spoil func(method string, result map[string]any) // corrupts a result; usually nil
}

// approval is the server's name for its only question.
const approval = "approval"

func newConformanceFront(t *testing.T, w *world, list *conformanceList, address string) *conformanceFront {
	t.Helper()
	to, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	f := &conformanceFront{t: t, w: w, list: list, to: to}
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = to.Scheme, to.Host
			r.Out.Host = r.In.Host // the server must check it
			r.Out.Header.Set("Authorization", "Bearer "+token)
			r.Out = f.request(r.Out)
		},
		ModifyResponse: f.response,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, context.Canceled) {
				t.Logf("a request did not reach the server: %v", err)
			}
			w.WriteHeader(http.StatusBadGateway)
		},
	}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	f.url = front.URL + "/mcp"
	return f
}

// An exchange is what the front remembers of a request until its response.
type exchange struct {
	method  string
	alias   *conformanceAlias // of the tool, prompt or resource; nil if it has none
	allowed bool              // a person's answer was added
}

// exchangeKey is its key in the context of the request.
type exchangeKey struct{}

// request translates the suite's request for the server.
func (f *conformanceFront) request(r *http.Request) *http.Request {
	if r.Body == nil || r.Method != http.MethodPost {
		return r
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return r
	}
	var x exchange
	var message map[string]any
	if json.Unmarshal(raw, &message) == nil {
		x.method, _ = message["method"].(string)
		if x.alias = f.rename(r, message); x.alias != nil {
			x.allowed = f.answer(r, x.alias, message)
			raw = marshal(message)
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	r.Header.Set("Content-Length", strconv.Itoa(len(raw)))
	return r.WithContext(context.WithValue(r.Context(), exchangeKey{}, &x))
}

// rename changes a request and returns the alias that it used, or nil.
func (f *conformanceFront) rename(r *http.Request, message map[string]any) *conformanceAlias {
	params, _ := message["params"].(map[string]any)
	ref, _ := params["ref"].(map[string]any)
	argument, _ := params["argument"].(map[string]any)
	name, _ := params["name"].(string)
	uri, _ := params["uri"].(string)
	prompt, _ := ref["name"].(string)
	var now string
	alias := f.list.Aliases[name]
	switch resource, completion := f.list.Aliases[uri], f.list.Aliases["ref "+prompt]; {
	case alias != nil:
		now, params["name"], params["arguments"] = alias.Name, alias.Name, alias.next()
	case resource != nil:
		alias, now, params["uri"] = resource, resource.URI, resource.URI
	case completion != nil && argument != nil:
		alias, ref["name"], argument["name"] = completion, completion.Name, completion.Argument
	default:
		return nil
	}
	if sent := r.Header.Get("Mcp-Name"); sent != "" && (sent == name || sent == uri) {
		r.Header.Set("Mcp-Name", now)
	}
	if len(alias.Person) > 0 {
		if out, err := f.w.command(append(alias.Person, "--packs", f.w.packs)...).CombinedOutput(); err != nil {
			f.t.Errorf("%q: %v\n%s", alias.Person, err, out)
		}
	}
	return alias
}

// answer adds a person's input to the suite's answer, and the server's state if the suite has
// skipped the question. It reports whether there was such an answer.
func (f *conformanceFront) answer(r *http.Request, alias *conformanceAlias, message map[string]any) bool {
	params, _ := message["params"].(map[string]any)
	answers, _ := params["inputResponses"].(map[string]any)
	given, _ := answers[alias.Input].(map[string]any)
	if given["action"] != "accept" {
		return false
	}
	delete(answers, alias.Input)
	answers[approval] = map[string]any{"action": "accept", "content": alias.Answer}
	if _, ok := params["requestState"]; !ok {
		delete(params, "inputResponses")
		params["requestState"] = f.call(r.Header, message)["requestState"]
		params["inputResponses"] = answers
	}
	return true
}

// response translates the server's names for the suite.
func (f *conformanceFront) response(r *http.Response) error {
	x, _ := r.Request.Context().Value(exchangeKey{}).(*exchange)
	switch {
	case x == nil:
		return nil
	case x.method == "notifications/initialized":
		f.enable(r.Request.Header)
		return nil
	case x.method == "tools/list", x.alias != nil && x.alias.Input != "", f.spoil != nil && x.method != "subscriptions/listen":
	default:
		return nil
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	_ = r.Body.Close()
	raw = eachMessage(r.Header, raw, func(message map[string]any) {
		result, _ := message["result"].(map[string]any)
		if result == nil {
			return
		}
		for _, item := range anyList(result["tools"]) {
			tool, _ := item.(map[string]any)
			for name, alias := range f.list.Aliases {
				if alias.Listed && tool["name"] == alias.Name {
					tool["name"] = name
				}
			}
		}
		if requests, _ := result["inputRequests"].(map[string]any); requests[approval] != nil && x.alias != nil && x.alias.Input != "" {
			request := requests[approval]
			delete(requests, approval)
			requests[x.alias.Input] = request
		}
		// The suite accepts any end of a call as success.
		if x.allowed && (result["isError"] == true || result["inputRequests"] != nil) {
			f.t.Errorf("a call that a person allowed has the result %v", result)
		}
		if f.spoil != nil {
			f.spoil(x.method, result)
		}
	})
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(raw)), int64(len(raw))
	r.Header.Set("Content-Length", strconv.Itoa(len(raw)))
	return nil
}

// enable enables the fixtures' tools in the chat of a client with these headers.
func (f *conformanceFront) enable(header http.Header) {
	params := map[string]any{"name": "capability_packs_enable_tools", "arguments": map[string]any{"pack_id": "fixtures"}}
	if header.Get("Mcp-Session-Id") == "" {
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion":    v20260728,
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}
	}
	header = header.Clone()
	header.Set("Mcp-Method", "tools/call")
	header.Set("Mcp-Name", "capability_packs_enable_tools")
	if result := f.call(header, map[string]any{"jsonrpc": "2.0", "id": "of the front", "method": "tools/call", "params": params}); result["isError"] == true {
		f.t.Errorf("the fixtures cannot be enabled: %v", result)
	}
}

// call sends a request of the front's own to the server, and returns the result.
func (f *conformanceFront) call(header http.Header, message map[string]any) (result map[string]any) {
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPost, f.to.String(), bytes.NewReader(marshal(message)))
	if err != nil {
		f.t.Error(err)
		return nil
	}
	r.Header = header.Clone()
	r.Header.Del("Content-Length")
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Error(err)
		return nil
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	eachMessage(answer.Header, raw, func(message map[string]any) { result, _ = message["result"].(map[string]any) })
	if err != nil || result == nil {
		f.t.Errorf("the server answers %v of the front with %s, %v\n%s", message["params"], answer.Status, err, raw)
	}
	return result
}

// eachMessage changes the messages in a body, which is JSON or a stream of events.
func eachMessage(header http.Header, raw []byte, change func(map[string]any)) []byte {
	changed := func(raw []byte) []byte {
		var message map[string]any
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&message) != nil {
			return raw
		}
		change(message)
		return marshal(message)
	}
	if !strings.HasPrefix(header.Get("Content-Type"), "text/event-stream") {
		return changed(raw)
	}
	lines := bytes.SplitAfter(raw, []byte("\n"))
	for i, line := range lines {
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok && len(bytes.TrimSpace(data)) > 0 {
			lines[i] = append(append([]byte("data: "), changed(data)...), '\n')
		}
	}
	return bytes.Join(lines, nil)
}

func anyList(v any) []any {
	list, _ := v.([]any)
	return list
}

// marshal encodes a message that was decoded from JSON.
func marshal(message map[string]any) []byte {
	raw, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	return raw
}
