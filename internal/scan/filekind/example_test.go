package filekind_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/scan/filekind"
)

func Example() {
	fmt.Println(filekind.Of([]byte("\x7fELF")) == filekind.Program, filekind.Of([]byte("PK\x03\x04")) == filekind.Archive)
	fmt.Println(filekind.LangOf("install", []byte("#!/usr/bin/env python3\n")), filekind.LangOf("notes.md", nil) == "")
	fmt.Println(filekind.Autorun("a/.git/hooks/post-checkout", "post-checkout"), filekind.LooksLikeDocument(".exe", ".pdf"))
	// Output:
	// true true
	// python true
	// post-checkout is for git true
}
