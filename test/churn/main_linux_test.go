package churn_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/packs-mcp/packs-mcp/test/served"
)

// binDir is where the program is built; TestMain creates and removes it.
var binDir string

func TestMain(m *testing.M) {
	var err error
	if binDir, err = os.MkdirTemp("", "packs-mcp-churn-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(binDir)
	os.Exit(code)
}

var program = sync.OnceValues(func() (string, error) {
	return served.Build(binDir, filepath.Join("..", ".."))
})

func newWorld(t *testing.T) *served.World {
	t.Helper()
	file, err := program()
	if err != nil {
		t.Fatal(err)
	}
	return served.New(t, file)
}
