package service

import (
	"context"
	"log/slog"

	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/container"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// containers holds the container runners, one for each image that the configuration
// names.
type containers struct {
	cfg   *config.Sandbox
	image map[string]*boxes // :: image, as the configuration names it → its containers; never modified
}

// boxes are the containers of one image, as the planner and the gate use them.
type boxes struct {
	*container.System
	runner *runner.Runner
}

// Layers says how runs in the containers can change folders.
func (b *boxes) Layers(ctx context.Context, folders []string) []sandbox.Layer {
	return b.runner.Layers(ctx, folders)
}

// openContainers returns the containers. It does not contact an engine yet. o holds
// the options of this machine's runner.
func openContainers(cfg *config.Config, o runner.Options, logger *slog.Logger) *containers {
	c := &containers{cfg: &cfg.Sandbox, image: make(map[string]*boxes)}
	images := cfg.Sandbox.Images()
	if len(images) > 0 {
		images = append(images, "") // for packs without an image, whose runs it refuses
	}
	for _, image := range images {
		s := container.New(container.Options{Socket: cfg.Sandbox.Container.Socket, Image: image, Runtime: cfg.Sandbox.Container.Runtime, Logger: logger})
		o.System = s
		c.image[image] = &boxes{s, runner.New(o)}
	}
	return c
}

// elsewhere returns where a run happens; nil: on this machine. It is never nil if the
// configuration names a container.
func (c *containers) elsewhere(pack *packs.Pack, kind call.Kind, tool string) plan.Elsewhere {
	trusted := pack.Trust == packs.TrustUser || pack.Trust == packs.TrustBundled
	if where, image := c.cfg.RunnerOf(pack.ID, tool, string(kind), trusted); where == config.RunnerContainer {
		return c.image[image]
	}
	return nil
}

// runnerAt returns the runner of a place, or nil if there is none.
func (c *containers) runnerAt(p sandbox.Place) gate.Runner {
	b := c.image[p.Name]
	if b == nil {
		return nil
	}
	if is, err := b.Place(context.Background()); err != nil || is != p {
		return nil // the image or the terms have changed
	}
	return b.runner
}

// close waits until the containers of ended runs are removed.
func (c *containers) close() {
	for _, b := range c.image {
		b.runner.Close()
	}
}
