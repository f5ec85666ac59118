package lint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Nesting and long keys cost no time: a file is checked much faster than it would
// take to examine every path in it.
func TestHostileJSON(t *testing.T) {
	for name, src := range map[string]string{
		"lists":     strings.Repeat("[", 200_000),
		"objects":   strings.Repeat(`{"a":`, 100_000) + "1" + strings.Repeat("}", 100_000),
		"long keys": `{"` + strings.Repeat("A", 400_000) + `": [` + strings.Repeat("1,", 40_000) + "1]}",
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "tools.json")
			if err := os.WriteFile(file, []byte(src), 0o600); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				report, err := Check(t.Context(), file, Options{})
				if err == nil && report.Valid() {
					t.Error("Check says that it is valid")
				}
				done <- err
			}()
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("Check does not end")
			}
		})
	}
}
