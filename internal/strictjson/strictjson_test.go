package strictjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

func ExampleDecode() {
	v, err := strictjson.Decode([]byte(`{"b": 1.0, "a": "<x>"}`))
	fmt.Println(strictjson.Format(v), err)
	_, err = strictjson.Decode([]byte(`{"a": 1, "\u0061": 2}`))
	fmt.Println(err)
	// Output:
	// {"a":"<x>","b":1.0} <nil>
	// "a" is there twice
}

func TestRefused(t *testing.T) {
	for in, twice := range map[string]string{
		``: "", ` `: "", `{`: "", `{} {}`: "", `{"a":1,}`: "", `nul`: "", `{"a":1,"a":2}`: "a", `{"x":[{"a":1,"b":{},"a":2}]}`: "a", `{"":0,"":0}`: "",
	} {
		v, err := strictjson.Decode([]byte(in))
		if v != nil || err == nil {
			t.Errorf("Decode(%s) = %v, %v, want an error", in, v, err)
			continue
		}
		e, isTwice := errors.AsType[*strictjson.DuplicateError](err)
		if isTwice == errors.Is(err, strictjson.ErrNotJSON) || isTwice && e.Key != twice {
			t.Errorf("Decode(%s) = %v, want either no JSON, or the key %q twice", in, err, twice)
		}
	}
}

func TestDecodeDepth(t *testing.T) {
	for _, deep := range []string{strings.Repeat("[", 1_000_000), strings.Repeat(`{"a":`, 1_000_000)} {
		if v, err := strictjson.Decode([]byte(deep)); err == nil {
			t.Errorf("Decode(deep) = %v, want an error", v)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":null}],"c":"\ud800"}`, `{"a":1,"a":2}`, `[[[]]]`, `"x"`, `1e400`, ` `, `{"":""}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := strictjson.Decode(raw)
		if err != nil {
			if v != nil {
				t.Errorf("Decode(%q) = %v with %v, want nil", raw, v, err)
			}
			return
		}
		text := strictjson.Format(v)
		if again, err := strictjson.Decode([]byte(text)); err != nil || !reflect.DeepEqual(again, v) || strictjson.Format(again) != text {
			t.Errorf("Decode(%q) = %v, %v, want %v, and the same text", text, again, err, v)
		}
		var want any
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		if err := d.Decode(&want); err != nil || !reflect.DeepEqual(v, want) {
			t.Errorf("Decode(%q) = %v, want what encoding/json reads, %v (%v)", raw, v, want, err)
		}
	})
}
