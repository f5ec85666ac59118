package service

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/workspaces"
)

// A workspace that was not changed for long is removed, and the log says which and
// why.
func TestOldWorkspacesAreRemoved(t *testing.T) {
	cfg := config.Default()
	cfg.Paths.Workspaces = filepath.Join(t.TempDir(), "workspaces")
	old := filepath.Join(cfg.Paths.Workspaces, strings.Repeat("a1", 16))
	young := filepath.Join(cfg.Paths.Workspaces, strings.Repeat("b2", 16))
	for _, dir := range []string{old, young} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	then := time.Now().Add(-40 * 24 * time.Hour)
	if err := os.Chtimes(old, then, then); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	sweepWorkspaces(t.Context(), cfg, slog.New(slog.NewTextHandler(&log, nil)))
	if _, err := os.Stat(old); err == nil {
		t.Error("the old workspace is still there")
	}
	if _, err := os.Stat(young); err != nil {
		t.Error("the young one is gone:", err)
	}
	for _, part := range []string{"removed an old workspace", filepath.Base(old), "40 days", "limits.workspaces_age"} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("the log does not say %q: %s", part, &log)
		}
	}
	if strings.Count(log.String(), "\n") != 1 {
		t.Errorf("the log has more than one line: %s", &log)
	}
}

// A running server removes old workspaces with each tick, and keeps those in use.
func TestWorkspacesAreRemovedMeanwhile(t *testing.T) {
	cfg := config.Default()
	cfg.Paths.Workspaces = filepath.Join(t.TempDir(), "workspaces")
	use, err := workspaces.Make(cfg.Paths.Workspaces, strings.Repeat("b2", 16))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ticks, ended := make(chan time.Time), make(chan struct{})
	go func() {
		defer close(ended)
		sweepFrom(ctx, ticks, cfg, slog.New(slog.DiscardHandler))
	}()
	then := time.Now().Add(-40 * 24 * time.Hour)
	for range 2 {
		old := filepath.Join(cfg.Paths.Workspaces, strings.Repeat("a1", 16))
		if err := os.MkdirAll(old, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{old, use.Dir()} {
			if err := os.Chtimes(dir, then, then); err != nil {
				t.Fatal(err)
			}
		}
		ticks <- time.Now()
		ticks <- time.Now() // taken once the sweep before it has ended
		if _, err := os.Stat(old); err == nil {
			t.Error("the old workspace is still there")
		}
		if _, err := os.Stat(use.Dir()); err != nil {
			t.Error("the workspace in use is gone:", err)
		}
	}
	stop()
	<-ended
	if err := use.Leave(); err != nil {
		t.Error(err)
	}
}
