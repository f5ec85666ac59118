package service

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/workspaces"
)

// sweepEvery is how often a running server removes old workspaces. They are kept for
// days, so an hour more does not matter.
const sweepEvery = time.Hour

// Tend removes old workspaces from time to time, until ctx ends.
func Tend(ctx context.Context, cfg *config.Config, logger *slog.Logger) {
	ticks := time.NewTicker(sweepEvery)
	defer ticks.Stop()
	sweepFrom(ctx, ticks.C, cfg, logger)
}

// sweepFrom removes old workspaces with each tick, until ctx ends.
func sweepFrom(ctx context.Context, ticks <-chan time.Time, cfg *config.Config, logger *slog.Logger) {
	for {
		select {
		case <-ticks:
			sweepWorkspaces(ctx, cfg, logger)
		case <-ctx.Done():
			return
		}
	}
}

// sweepWorkspaces removes old workspaces, and logs which and why.
func sweepWorkspaces(ctx context.Context, cfg *config.Config, logger *slog.Logger) {
	limits := workspaces.Limits{Age: cfg.Limits.WorkspacesAge, Bytes: cfg.Limits.Workspaces}
	removed, err := workspaces.Sweep(ctx, cfg.Paths.Workspaces, limits)
	for _, r := range removed {
		why := "limits.workspaces_age"
		if r.Room {
			why = "limits.workspaces"
		}
		days := int(time.Since(r.Used) / (24 * time.Hour))
		logger.Info("removed an old workspace", "dir", r.Dir, "bytes", r.Bytes, "unchanged", fmt.Sprintf("%d days", days), "because", why)
	}
	if err != nil && ctx.Err() == nil {
		logger.Warn("could not remove all old workspaces", "err", err)
	}
}
