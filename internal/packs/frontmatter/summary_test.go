package frontmatter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSummary(t *testing.T) {
	for _, src := range []string{
		"---\nname: a\ndescription: b\n---\n",
		"---\n# x\ndescription: long\n\nname: a\nargument-hint: \"[x]\"\ntags: [a, b]\nmodes: [Dev]\nuser-invocable: false\ndisable-model-invocation: true\n---\n",
		"---\nuser-invocable: true\n---\n",
		"---\nname: ä: b\n---\n",
	} {
		doc, _ := Inspect("f", []byte(src), MaxSize)
		s := doc.Summary()
		if s.Name != doc.Name || s.Description != doc.Description || s.NameLine() != doc.KeyLine("name") || s.DescriptionLine() != doc.KeyLine("description") {
			t.Errorf("Summary of %q = %+v", src, s)
		}
		raw, err := s.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := FromBinary(string(raw))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(s, got, cmp.AllowUnexported(Summary{})); diff != "" {
			t.Errorf("%q (-before +after):\n%s", src, diff)
		}
		for n := range raw {
			if _, err := FromBinary(string(raw[:n])); err == nil {
				t.Errorf("%q: the first %d of %d bytes are a summary", src, n, len(raw))
			}
		}
		if _, err := FromBinary(string(raw) + "x"); err == nil {
			t.Errorf("%q: a byte more is a summary", src)
		}
	}
}
