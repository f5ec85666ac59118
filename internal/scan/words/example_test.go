package words_test

import (
	"fmt"

	"github.com/packs-mcp/packs-mcp/internal/scan/words"
)

func Example() {
	f := words.New([][]string{{"curl", "wget"}, {"sudo"}})
	marks := make([]uint64, 1)
	fmt.Println(f.Mark("SUDO apt install", marks), marks[0] == 1<<1, f.Has("nothing"))
	state, found := f.After(0, "cu")
	fmt.Println(found)
	_, found = f.After(state, "rl")
	fmt.Println(found)
	// Output:
	// true true false
	// false
	// true
}
