package lint

import "testing"

func TestAddName(t *testing.T) {
	for _, tc := range []struct{ src, want string }{
		{"---\ndescription: d\n---\nbody\n", "---\nname: my-pack\ndescription: d\n---\nbody\n"},
		{"---\r\ndescription: d\r\n---\r\nbody\r\n", "---\r\nname: my-pack\r\ndescription: d\r\n---\r\nbody\r\n"},
		{"\ufeff---\ndescription: d\nname:\n---\n", "\ufeff---\ndescription: d\nname: my-pack\n---\n"},
		{"---\nname: \"\"\ndescription: d\n---\n", "---\nname: my-pack\ndescription: d\n---\n"},
		{"---\nx: 1\nname: ~\n---\n", "---\nx: 1\nname: my-pack\n---\n"},
		{"---\n---\n", "---\nname: my-pack\n---\n"},
		{"---\ndescription: see: this\n---\n", "---\nname: my-pack\ndescription: see: this\n---\n"},

		{"---\nname: other\ndescription: d\n---\n", ""},
		{"---\nname: [a]\ndescription: d\n---\n", ""},
		{"---\nname:\n  - a\ndescription: d\n---\n", ""},
		{"---\nname: #1 of all\ndescription: d\n---\n", ""}, // somebody wrote something
		{"---\n- a\n---\n", ""},
		{"---\ndescription: d\n", ""},
		{"# no frontmatter\n", ""},
		{"---\ndescription: caf\xe9s\n---\n", ""},
		{"", ""},
	} {
		got, ok := AddName([]byte(tc.src), "my-pack")
		if ok != (tc.want != "") || ok && string(got) != tc.want {
			t.Errorf("AddName(%q) = %q, %v, want %q", tc.src, got, ok, tc.want)
		}
	}
	if got, ok := AddName([]byte("---\ndescription: d\n---\n"), "no: name"); ok {
		t.Errorf("AddName of what is not a name = %q", got)
	}
}
