package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// fields calls f for every field of a request that holds a value, however
// deep, with its path and a way to change it.
func fields(v reflect.Value, path string, f func(path string, change func())) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fields(v.Field(i), strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), f)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fields(v.Elem(), path, f)
		}
	case reflect.String:
		f(path, func() { v.SetString(v.String() + "\xff") })
	case reflect.Bool:
		f(path, func() { v.SetBool(!v.Bool()) })
	case reflect.Int, reflect.Int64:
		f(path, func() { v.SetInt(v.Int() + 1) })
	case reflect.Slice:
		f(path, func() {
			switch v.Type().Elem().Kind() {
			case reflect.Uint8:
				v.SetBytes(append(v.Bytes(), '1'))
			case reflect.Struct:
				v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
			default:
				v.Set(reflect.Append(v, reflect.ValueOf("\xff")))
			}
		})
		for i := range v.Len() {
			if v.Type().Elem().Kind() == reflect.Struct {
				fields(v.Index(i), fmt.Sprintf("%s[%d]", path, i), f)
			}
		}
	case reflect.Interface:
		// What a folder is on this machine: the runner compares it, and it has no
		// bytes that an answer could be bound to.
	case reflect.Func:
		// Who is told that the run waits, which changes nothing that it does.
	default:
		panic(fmt.Sprintf("a field of kind %v is new here: %s", v.Kind(), path))
	}
}

// unbound returns the paths of the fields that a digest of a request does not
// cover.
func unbound(of func() Request, digest func(*Request, sandbox.Level) string) []string {
	var free, all []string
	r := of()
	before := digest(&r, sandbox.LevelNone)
	fields(reflect.ValueOf(&r), "", func(path string, _ func()) { all = append(all, path) })
	for _, path := range all {
		r := of()
		fields(reflect.ValueOf(&r), "", func(p string, change func()) {
			if p == path {
				change()
			}
		})
		if digest(&r, sandbox.LevelNone) == before {
			free = append(free, path)
		}
	}
	return free
}

// grantDigest is what a grant for the like of r is bound to.
func grantDigest(r *Request, level sandbox.Level) string { return digestOf(r.facts(level)) }

// TestEveryFieldIsBound: a field that is added to a request, a command or a
// policy has to be added to the digests, or to these lists on purpose.
func TestEveryFieldIsBound(t *testing.T) {
	free := []string{"Caller.Client", "Caller.Call", "Caller.CanAsk", "Caller.Carries", "Pack.Files", "Logged"}
	for name, of := range map[string]func() Request{"tool": toolRun, "granted": grantedRun, "exec": execRun, "open": openCall, "read": readCall, "enable": enableCall} {
		free := free
		if of().Run != nil {
			// What runs of the same chat write is no reason to ask again about one of
			// them; see Run.Reads. OnceOnly is about the answers that are offered.
			free = append(slices.Clone(free), "Run.Reads", "Run.OnceOnly", "Run.Logged")
		}
		if diff := cmp.Diff(free, unbound(of, (*Request).callDigest)); diff != "" {
			t.Errorf("%s: fields that an answer does not bind differ (-want +got):\n%s", name, diff)
		}
	}
	// What a grant leaves open, which is what its choice says.
	call := []string{
		"Caller.Chat", "Caller.Client", "Caller.Call", "Caller.CanAsk", "Caller.Carries", "Caller.ChatEnd", "Caller.Act", "Method",
		"Pack.About", "Pack.Files", "Path", "Hidden", "Tools", "Fields", "Arguments", "Logged", "AlwaysAsk",
	}
	words := []string{
		"Run.About", "Run.Command.Pack", "Run.Command.RunID", "Run.Command.Tool", "Run.Env", "Run.Logged",
		"Run.OnceOnly",   // no grant covers what is asked about once only
		"Run.ReviewRule", // Policy.Review is what counts, whichever rule says so
	}
	for _, c := range []struct {
		name string
		of   func() Request
		want []string
	}{
		{"open", openCall, call},
		{"read", readCall, call},
		{"enable", enableCall, call},
		{"exec", execRun, slices.Concat(call, words)},
		{"tool", toolRun, slices.Concat(call, words, []string{"Run.Command.Args", "Run.Command.Stdin"})},
		{"granted", grantedRun, slices.Concat(call, words, []string{
			"Run.Command.Args", "Run.Command.Stdin",
			"Run.Policy.Layers[0].Reason", "Run.Policy.Layers[1].Reason", "Run.Policy.Layers[2].Reason",
		})},
	} {
		got := unbound(c.of, grantDigest)
		slices.Sort(got)
		slices.Sort(c.want)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: fields that a grant leaves open differ (-want +got):\n%s", c.name, diff)
		}
	}
}

// TestDigestsAreUnambiguous: facts that differ only in where one ends and the
// next begins, or in bytes that are not text, have different digests.
func TestDigestsAreUnambiguous(t *testing.T) {
	args := [][]string{
		nil, {""}, {"", ""}, {"a", "b"}, {"a b"}, {"ab"}, {"a", "", "b"}, {"a\nb"}, {"a\x00b"}, {`a","b`},
		{"\xff"}, {"\xfe"}, {"\ufffd"}, {`\xff`}, {"1:b"}, {"a\n1:b"}, {"environment 0"},
	}
	seen := make(map[string]string)
	for _, field := range []string{"args", "env", "both"} {
		for _, a := range args {
			r := execRun()
			r.Run.Command.Args, r.Run.Command.Env = nil, nil
			switch {
			case field == "args":
				r.Run.Command.Args = a
			case a == nil:
				continue
			case field == "env":
				r.Run.Command.Env = a
			default:
				r.Run.Command.Args, r.Run.Command.Env = a, a
			}
			for kind, digest := range map[string]string{"call": r.callDigest(0), "grant": grantDigest(&r, 0)} {
				says := fmt.Sprintf("%s of %s %q", kind, field, a)
				if other, ok := seen[digest]; ok {
					t.Errorf("%s and %s have the same digest", says, other)
				}
				seen[digest] = says
			}
		}
	}
	// The same bytes in another field.
	r, s := readCall(), readCall()
	r.Path, r.Hidden = "x", ""
	s.Path, s.Hidden = "", "x"
	if r.callDigest(0) == s.callDigest(0) {
		t.Error("path and hidden are the same fact")
	}
}

func TestCanonical(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{``, ``},
		{`{}`, `{}`},
		{` { "b" : [ 1 , 2.50 , -0 , 1e3 ] , "a" : null }`, `{"a":null,"b":[1,2.50,-0,1e3]}`},
		{`{"a":12345678901234567890.10}`, `{"a":12345678901234567890.10}`},
		{`{"\u0061":"\u003c\u00e9\/"}`, `{"a":"<é/"}`},
		{`{"a":[],"b":{}}`, `{"a":[],"b":{}}`},
		{`[true,false,"x"]`, `[true,false,"x"]`},
		{`{"a":1,"a":1}`, `{"a":1,"a":1}`},
		{`{"a":`, `{"a":`},
		{`{} {}`, `{} {}`},
	} {
		if got := string(canonical(json.RawMessage(c.in))); got != c.want {
			t.Errorf("canonical(%s) = %s, want %s", c.in, got, c.want)
		}
	}
}

func TestDecodeDepth(t *testing.T) {
	for _, deep := range []string{strings.Repeat("[", 1_000_000), strings.Repeat(`{"a":`, 1_000_000)} {
		if v, err := decode([]byte(deep)); err == nil {
			t.Errorf("decode(deep) = %v, want an error", v)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":null}],"c":"\ud800"}`, `{"a":1,"a":2}`, `[[[]]]`, `"x"`, `1e400`, ` `, `{"":""}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := decode(raw)
		if err != nil {
			if v != nil {
				t.Errorf("decode(%q) = %v with %v, want nil", raw, v, err)
			}
			return
		}
		once := canonical(raw)
		if !json.Valid(once) {
			t.Errorf("canonical(%q) = %q, which is not JSON", raw, once)
		}
		if again := canonical(once); string(again) != string(once) {
			t.Errorf("canonical(%q) = %q, want it unchanged", once, again)
		}
		var want any
		d := json.NewDecoder(strings.NewReader(string(raw)))
		d.UseNumber()
		if err := d.Decode(&want); err != nil || !reflect.DeepEqual(v, want) {
			t.Errorf("decode(%q) = %v, want what encoding/json reads, %v (%v)", raw, v, want, err)
		}
	})
}

// Grants on disk hold digests of before: the bytes that are digested stay the same.
func TestSumBytes(t *testing.T) {
	want := sha256.New()
	got := newSum("test")
	io.WriteString(want, "packs-mcp 1\n4:test\n")
	got.add("none")
	io.WriteString(want, "none 0\n")
	long := strings.Repeat("x", 1000)
	got.add("some", "", "a\nb", long)
	fmt.Fprintf(want, "some 3\n0:\n3:a\nb\n1000:%s\n", long)
	if sum := hex.EncodeToString(want.Sum(nil)); got.String() != sum {
		t.Errorf("the digest is %s, want %s", got, sum)
	}
}
