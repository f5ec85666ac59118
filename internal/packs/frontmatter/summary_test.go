package frontmatter

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestSummary(t *testing.T) {
	for _, src := range []string{
		"---\nname: a\ndescription: b\n---\n",
		"---\n# x\ndescription: long\n\nname: a\nargument-hint: \"[x]\"\ntags: [a, b]\nmodes: [Dev]\nuser-invocable: false\ndisable-model-invocation: true\n---\n",
		"---\nuser-invocable: true\n---\n",
		"---\nname: ä: b\n---\n",
	} {
		doc, _ := Inspect("f", []byte(src), MaxSize)
		s := doc.Summary(nil)
		want := []any{doc.Name, doc.Description, doc.ArgumentHint, doc.Tags, doc.Modes, doc.UserInvocable == nil || *doc.UserInvocable,
			doc.DisableModelInvocation, doc.KeyLine("name"), doc.KeyLine("description"), false}
		got := []any{s.Name(), s.Description(), s.ArgumentHint(), s.Tags(), s.Modes(), s.UserInvocable(),
			s.DisableModelInvocation(), s.NameLine(), s.DescriptionLine(), s.IsZero()}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("Summary of %q (-want +got):\n%s", src, diff)
		}
		text := s.Text()
		if again, err := SummaryOf(text); err != nil || again != s {
			t.Errorf("%q: SummaryOf(Text) = %+v, %v", src, again, err)
		}
		for n := 1; n < len(text); n++ {
			if _, err := SummaryOf(text[:n]); err == nil {
				t.Errorf("%q: the first %d of %d bytes are a summary", src, n, len(text))
			}
		}
		if _, err := SummaryOf(text + "x"); err == nil {
			t.Errorf("%q: a byte more is a summary", src)
		}
	}
}

func TestSummaryOfNothing(t *testing.T) {
	s, err := SummaryOf("")
	if err != nil || !s.IsZero() || s.Name() != "" || s.Tags() != nil || s.NameLine() != 0 || s.DisableModelInvocation() || !s.UserInvocable() {
		t.Errorf("SummaryOf(\"\") = %+v, %v", s, err)
	}
}
