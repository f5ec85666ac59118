//go:build !linux || !(amd64 || arm64)

package container

import (
	"context"
	"errors"
	"log/slog"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// errElsewhere says why there are no containers on this system.
var errElsewhere = errors.New("packs run in containers only on Linux, on amd64 and arm64")

// Candidates returns one that cannot work.
func (s *System) Candidates(*slog.Logger) []level.Candidate {
	return []level.Candidate{{Level: sandbox.LevelFull, Err: errElsewhere}}
}

// Sweep does nothing: there are no containers here.
func (s *System) Sweep() {}

func (s *System) lookup(context.Context, string, string) (program.Program, error) {
	return program.Program{}, errElsewhere
}

func userOf(bool) string { return "" }

func terms() string { return "" }
