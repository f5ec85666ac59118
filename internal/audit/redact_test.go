package audit

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Tokens are removed from every member of a line, and the caller's own entry is
// unchanged.
func TestTokensAreTakenOut(t *testing.T) {
	token := "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hI6"
	e := Entry{Event: EventDecision}
	texts := 0
	for field := range reflect.TypeFor[Entry]().Fields() {
		v := reflect.ValueOf(&e).Elem().FieldByIndex(field.Index)
		switch p := v.Addr().Interface().(type) {
		case *string:
			*p = "x " + token
		case *[]string:
			*p = []string{"x", "--a=" + token}
		case *strictjson.Compact:
			*p = strictjson.Write(map[string]any{"a": []any{token}})
		case *[]Contact:
			*p = []Contact{{Host: token + ".example.com:443", Times: 1}}
		case *int, *int64, **int, *bool, *Event, *time.Time, **Limits, **Recovery: // they have no text of others
			continue
		default:
			t.Errorf("%s has type %v, and nothing here says whether it can hold a token", field.Name, field.Type)
			continue
		}
		texts++
	}
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(e); err != nil {
		t.Fatal(err)
	}
	if err := l.AppendLazy(e); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The log sets prev and hash.
	if got, want := strings.Count(string(data), "[redacted]"), 2*(texts-2); strings.Contains(string(data), token) || got != want || texts < 25 {
		t.Errorf("the log has %d marks in %d texts, want %d, and no token:\n%s", got, texts, want, data)
	}
	if e.Argv[1] != "--a="+token || !strings.Contains(e.Args.String(), token) {
		t.Errorf("the caller's entry became %+v", e)
	}
	if r, err := Verify(path); err != nil || !r.OK {
		t.Errorf("Verify() = %+v, %v", r, err)
	}
}
