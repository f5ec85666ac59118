package chains

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// Entries returns the intact entries of all chains of an export, in the order of their
// times. It does not judge; see [Verify].
func Entries(dir string) ([]audit.Line, error) {
	files, err := os.ReadDir(filepath.Join(dir, chainsDir))
	if err != nil {
		return nil, fmt.Errorf("reading the export %q: %w", dir, err)
	}
	v := &verifier{dir: dir}
	var all []audit.Line
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), chainEnding) {
			continue
		}
		file := filepath.Join(chainsDir, f.Name())
		err := v.lines(file, func(n int, line []byte, _ bool) {
			if bytes.HasPrefix(line, []byte(sealPrefix)) {
				return
			}
			if e, intact := audit.ParseLine(line); intact {
				all = append(all, audit.Line{File: file, Number: n, Entry: e})
			}
		})
		if err != nil {
			return nil, fmt.Errorf("reading the export %q: %w", dir, err)
		}
	}
	slices.SortStableFunc(all, func(a, b audit.Line) int { return a.Entry.Time.Compare(b.Entry.Time) })
	return all, nil
}
