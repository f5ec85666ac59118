package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// IsPath reports whether an argument is written as a path. Ids never are.
func IsPath(arg string) bool {
	slashed := filepath.ToSlash(arg)
	return filepath.IsAbs(arg) || slices.Contains([]string{".", "..", "~"}, slashed) ||
		strings.HasPrefix(slashed, "./") || strings.HasPrefix(slashed, "../") || strings.HasPrefix(slashed, "~/")
}

// MissingFolder returns the error for a folder that a person named and that does not
// exist. hint says what else they can name.
func MissingFolder(path, hint string) error {
	err := fmt.Errorf("there is no folder %s", safetext.Quote(path))
	if strings.HasPrefix(path, "~") {
		hint = "the shell replaces ~ only if it is not in quotes; " + hint
	}
	return WithHint(err, "%s", hint)
}

// hintForID returns what a person may have meant who named a pack that does not
// exist.
func hintForID(e *packs.NotFoundError) string {
	if len(e.Near) > 0 {
		return "did you mean " + listOr(e.Near) + "?"
	}
	info, err := os.Stat(e.ID)
	switch {
	case err == nil && info.IsDir():
		return fmt.Sprintf("that is a folder, and a pack's id is needed. To add its packs: packs-mcp folders add %s", safetext.Line(e.ID))
	case IsPath(e.ID):
		return "that is a path, and a pack's id is needed; packs-mcp list --all shows the ids"
	}
	return "packs-mcp list --all shows every pack there is"
}
