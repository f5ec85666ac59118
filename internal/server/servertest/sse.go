package servertest

import "strings"

// An SSE is a client of HTTP+SSE.
type SSE struct {
	*Client
	Stream *Stream
	Path   string // where it posts messages
}

// SSE connects a client of HTTP+SSE.
func (s *Site) SSE(token string) *SSE {
	s.T.Helper()
	o := &SSE{Client: s.Client(token)}
	o.Stream = o.Open("GET", "/sse", nil)
	first := o.Stream.Next()
	path, _ := first["data"].(string)
	if first["event"] != "endpoint" || !strings.HasPrefix(path, "/message?sessionId=") {
		s.T.Fatalf("the stream begins with %v, want the endpoint", first)
	}
	o.Path = path
	return o
}

// Post posts a message and returns the status.
func (o *SSE) Post(m map[string]any) int {
	o.T.Helper()
	code, _, _ := o.Status(o.Request(o.T.Context(), "POST", o.Path, o.Encode(m)))
	return code
}

// Send posts a message that must be accepted.
func (o *SSE) Send(m map[string]any) {
	o.T.Helper()
	if code := o.Post(m); code != 202 {
		o.T.Fatalf("%v = %d, want 202", m, code)
	}
}

// Reply returns the next message that is not a notification, answering questions
// on the way.
func (o *SSE) Reply() map[string]any {
	o.T.Helper()
	for {
		m := o.Stream.Next()
		switch {
		case m == nil:
			o.T.Fatal("the stream ended")
		case m["method"] == "elicitation/create":
			o.Asked = append(o.Asked, m["params"].(map[string]any)["message"].(string))
			o.Send(map[string]any{"id": m["id"], "result": o.Answer("", nil)})
		case m["method"] != nil:
			o.notes = append(o.notes, m)
		default:
			return m
		}
	}
}

// Initialize does the handshake.
func (o *SSE) Initialize() {
	o.T.Helper()
	caps := map[string]any{}
	if o.Answer != nil {
		caps["elicitation"] = map[string]any{}
	}
	o.Send(map[string]any{"id": 0, "method": "initialize", "params": map[string]any{
		"protocolVersion": "2024-11-05", "capabilities": caps, "clientInfo": map[string]any{"name": "old", "version": "1"},
	}})
	if m := o.Reply(); Result(o.T, m)["protocolVersion"] != "2024-11-05" || m["id"] != 0.0 {
		o.T.Errorf("initialize = %v", m)
	}
	o.Send(map[string]any{"method": "notifications/initialized"})
}

// Call calls a tool and returns the reply.
func (o *SSE) Call(id any, name string, args map[string]any) map[string]any {
	o.T.Helper()
	o.Send(map[string]any{"id": id, "method": "tools/call", "params": map[string]any{"name": name, "arguments": args}})
	return o.Reply()
}
