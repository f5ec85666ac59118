package packsmcp_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMainProgramHasNoSigstore keeps the verification of Sigstore bundles out of the main
// program: it would double its size, and slow down the start of every server.
func TestMainProgramHasNoSigstore(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "./cmd/packs-mcp")
		cmd.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list for %s: %v", goos, err)
		}
		packages := strings.Fields(string(out))
		if len(packages) < 100 {
			t.Fatalf("go list for %s names %d packages", goos, len(packages))
		}
		for _, p := range packages {
			if strings.HasPrefix(p, "github.com/sigstore/") || strings.HasPrefix(p, "github.com/theupdateframework/") || strings.HasPrefix(p, "github.com/in-toto/") {
				t.Errorf("for %s, the main program has %s", goos, p)
			}
		}
	}
}
