package gate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// fields calls f for every field of a request that holds a value, at any depth, with
// its path and a function that changes it.
func fields(v reflect.Value, path string, f func(path string, change func())) {
	switch v.Kind() {
	case reflect.Struct:
		if text, ok := reflect.TypeAssert[strictjson.Compact](v); ok {
			f(path, func() { v.Set(reflect.ValueOf(strictjson.Write(text.String() + "1"))) })
			return
		}
		for i := range v.NumField() {
			if v.Type() == reflect.TypeFor[sandbox.Layer]() && v.Type().Field(i).Name == "Looked" {
				continue // how the folder was when its layer was chosen: if it is unchanged, the run need not choose again
			}
			fields(v.Field(i), strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), f)
		}
	case reflect.Pointer:
		if args, ok := reflect.TypeAssert[*call.Arguments](v); ok {
			f(path, func() { v.Set(reflect.ValueOf(call.ParseArguments([]byte(args.Canonical() + "1")))) })
		} else if !v.IsNil() {
			fields(v.Elem(), path, f)
		}
	case reflect.String:
		f(path, func() { v.SetString(v.String() + "\xff") })
	case reflect.Bool:
		f(path, func() { v.SetBool(!v.Bool()) })
	case reflect.Int, reflect.Int64:
		f(path, func() { v.SetInt(v.Int() + 1) })
	case reflect.Uint16:
		f(path, func() { v.SetUint(v.Uint() + 1) })
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
		// The identity of a folder on this machine: the runner compares it, and it
		// has no bytes that an answer could be bound to.
	case reflect.Func:
		// A callback for when the run waits, which does not affect what it does.
	default:
		panic(fmt.Sprintf("a field of kind %v is new here: %s", v.Kind(), path))
	}
}

// unbound returns the paths of the fields that a digest of a request does not
// cover.
func unbound(of func() call.Request, digest func(*call.Request, sandbox.Level) string) []string {
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

// grantDigest returns what a grant for calls like r is bound to.
func grantDigest(r *call.Request, level sandbox.Level) string {
	return grants.New(call.Freeze(*r, level)).Digest
}

// callDigest returns what an answer to the question about r is bound to.
func callDigest(r *call.Request, level sandbox.Level) string { return call.Freeze(*r, level).Digest() }

// TestEveryFieldIsBound: a field that is added to a request, a command or a policy
// must be added to the digests, or deliberately to these lists.
func TestEveryFieldIsBound(t *testing.T) {
	free := []string{"Caller.Shared", "Caller.Groups", "Caller.Client", "Caller.Call", "Caller.CanAsk", "Caller.Cards", "Caller.Carries", "Caller.Wait", "Pack.From.Updated", "Pack.Files", "Logged"}
	for name, of := range map[string]func() call.Request{"tool": toolRun, "hosts": func() call.Request { return with(toolRun(), reachesHosts) }, "granted": grantedRun, "exec": execRun, "open": openCall, "read": readCall, "enable": enableCall} {
		free := free
		if of().Run != nil {
			// What other runs of the chat write is no reason to ask about a run
			// again; see Run.Reads. OnceOnly concerns the answers that are offered.
			free = append(slices.Clone(free), "Run.Reads", "Run.OnceOnly", "Run.Logged")
		}
		if diff := cmp.Diff(free, unbound(of, callDigest)); diff != "" {
			t.Errorf("%s: fields that an answer does not bind differ (-want +got):\n%s", name, diff)
		}
	}
	// What a grant leaves open, as its choice says.
	open := []string{
		"Caller.Chat", "Caller.Shared", "Caller.Groups", "Caller.Client", "Caller.Call", "Caller.CanAsk", "Caller.Cards", "Caller.Carries", "Caller.ChatEnd", "Caller.Wait", "Caller.Act", "Method",
		"Pack.About", "Pack.Files", "Pack.From.Source", "Pack.From.Signer", "Pack.From.Differs", "Pack.From.Updated", "Path", "Hidden", "Tools", "Fields", "Arguments", "Logged", "AlwaysAsk",
	}
	words := []string{
		"Run.About", "Run.Command.Pack", "Run.Command.RunID", "Run.Command.Tool", "Run.Env", "Run.Logged",
		"Run.DeclaresReadOnly", // whose word Run.ReadOnly is: no grant for a run depends on it
		"Run.OnceOnly",         // no grant covers what is only asked about once
		"Run.ReviewRule",       // Policy.Review counts, whichever rule sets it
	}
	for _, c := range []struct {
		name string
		of   func() call.Request
		want []string
	}{
		{"open", openCall, open},
		{"read", readCall, open},
		{"enable", enableCall, open},
		{"exec", execRun, slices.Concat(open, words)},
		{"tool", toolRun, slices.Concat(open, words, []string{"Run.Command.Args", "Run.Command.Stdin"})},
		{"granted", grantedRun, slices.Concat(open, words, []string{
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

// TestDigestsAreUnambiguous: facts that differ only in where one ends and the next
// begins, or in bytes that are not text, have different digests.
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
			for kind, digest := range map[string]string{"call": callDigest(&r, 0), "grant": grantDigest(&r, 0)} {
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
	if callDigest(&r, 0) == callDigest(&s, 0) {
		t.Error("path and hidden are the same fact")
	}
}
