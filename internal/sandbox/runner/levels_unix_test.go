//go:build linux && (amd64 || arm64)

package runner

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"testing"
)

// progressLine matches lines that do not concern a failure.
var progressLine = regexp.MustCompile(`(?m)^\s*(=== |--- PASS).*\n`)

// The package's promises about runs hold at every level, so the tests are repeated
// without the best levels.
func TestEveryLevel(t *testing.T) {
	if os.Getenv(skipVar) != "" {
		t.Skip("this is the run with a level left out")
	}
	for _, skip := range []string{"full", "full partial"} {
		t.Run("without "+skip, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.v", "-test.run=^(TestRun|TestArtifacts|TestWorkspace|TestServer|TestShutdown|Example)")
			cmd.Env = append(os.Environ(), skipVar+"="+skip, "GORACE=atexit_sleep_ms=0")
			out, err := cmd.CombinedOutput()
			if passed := bytes.Count(out, []byte("\n--- PASS: TestRun")); err != nil || passed < 20 {
				t.Errorf("the tests of runs = %v, %d passed\n%s", err, passed, progressLine.ReplaceAll(out, nil))
			}
		})
	}
}
