// Command bench measures a run of /bin/true in a container beside "podman run" with the same
// options, alternating. Build it without cgo, since it is also the helper in the containers.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/container"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
	"github.com/packs-mcp/packs-mcp/test/engine"
)

func main() {
	n := flag.Int("n", 30, "how many runs of each")
	flag.Parse()
	if err := measure(*n); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func measure(n int) error {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "packs-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	podman, err := engine.Start(ctx, dir, "runc")
	if err != nil {
		return err
	}
	defer podman.Close()
	system := container.New(container.Options{Socket: podman.Socket, Image: podman.Image})
	r := runner.New(runner.Options{System: system})
	defer r.Close()
	if report := r.Probe(ctx); report.Level != sandbox.LevelFull {
		return errors.New(report.Problem())
	}
	nothing, err := system.Lookup(ctx, "true", "", "")
	if err != nil {
		return err
	}
	ours := func() error {
		res, err := r.Run(ctx, sandbox.Policy{}, sandbox.Command{Program: nothing, Dir: "/", Env: []string{"PATH=/bin"}})
		if err == nil && res.ExitCode != 0 {
			err = fmt.Errorf("exit status %d %s", res.ExitCode, res.Signal)
		}
		return err
	}
	theirs := func() error {
		cmd := podman.Podman(ctx, "run", "--rm", "--network", "none", "--ipc", "private", "--cgroupns", "private", "--read-only", "--read-only-tmpfs=false",
			"--cap-drop", "all", "--security-opt", "no-new-privileges", "--pids-limit", "288", "--memory", "2112m", "--memory-swap", "2112m",
			"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=16384:16384", "--log-driver", "none", "--user", "0:0",
			"--tmpfs", "/tmp:rw,nosuid,nodev,mode=1777,size=1073741824", podman.Image, "/bin/true")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("podman run: %w\n%s", err, out)
		}
		return nil
	}
	var took [2][]time.Duration
	for range n {
		for i, do := range []func() error{ours, theirs} {
			begin := time.Now()
			if err := do(); err != nil {
				return err
			}
			took[i] = append(took[i], time.Since(begin))
		}
	}
	var median [2]time.Duration
	for i, name := range []string{"packs-mcp", "podman run"} {
		slices.Sort(took[i])
		median[i] = took[i][n/2]
		fmt.Printf("%-11s median %6.1f ms, quickest %6.1f ms\n", name, ms(median[i]), ms(took[i][0]))
	}
	ratio := float64(median[0]) / float64(median[1])
	fmt.Printf("ratio       %.2f\n", ratio)
	if ratio > 1.5 {
		return errors.New("a run takes more than 1.5 times as long as podman run")
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
