package strictjson

import (
	"fmt"
	"strings"
	"testing"
)

// Get finds members of small and large objects, whether parsed or extended.
func TestGet(t *testing.T) {
	for _, count := range []int{0, 1, 15, 16, 17, 100} {
		var members []string
		for i := range count {
			members = append(members, fmt.Sprintf(`"k%d": "%d"`, i, i))
		}
		n, e := Parse([]byte("{" + strings.Join(members, ",") + "}"))
		if e != nil {
			t.Fatal(e)
		}
		more := n.With(Member{Key: "more", Value: &Node{Kind: Text, Text: "x"}})
		if n.Get("more") != nil || len(n.Members) != count {
			t.Errorf("of %d members: With changed the object that it was called on", count)
		}
		for i := range count {
			key, want := fmt.Sprintf("k%d", i), fmt.Sprint(i)
			if n.StringAt(key) != want || more.StringAt(key) != want {
				t.Errorf("of %d members: %s is %q, and %q with one more, want %q", count, key, n.StringAt(key), more.StringAt(key), want)
			}
		}
		if got := more.StringAt("more"); got != "x" {
			t.Errorf("of %d members: the one more is %q, want x", count, got)
		}
	}
}

// An empty list is written as [], and values at each level are separated by commas.
func TestWriter(t *testing.T) {
	var w Writer
	w.Open('{')
	w.Key("a")
	w.Open('[')
	w.Close(']')
	w.Member("b", []byte("1"))
	w.Key("c")
	w.Open('[')
	w.Item()
	w.Value([]byte("{}"))
	w.Item()
	w.Open('{')
	w.Member("<", Canonical("&"))
	w.Close('}')
	w.Close(']')
	w.Close('}')
	if got, want := string(w.Bytes()), `{"a":[],"b":1,"c":[{},{"<":"&"}]}`; got != want {
		t.Errorf("the writer wrote %s, want %s", got, want)
	}
}
