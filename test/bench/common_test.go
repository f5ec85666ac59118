// Package bench_test contains micro benchmarks for finding packs, searching, following edits
// and validating, each in one process. They assert nothing. The command table measures a
// complete server beside well-known baselines.
package bench_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// binary builds the program as it is shipped.
func binary(b *testing.B) string {
	b.Helper()
	out := filepath.Join(b.TempDir(), "packs-mcp")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, "../../cmd/packs-mcp")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("building packs-mcp: %v\n%s", err, text)
	}
	return out
}

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
