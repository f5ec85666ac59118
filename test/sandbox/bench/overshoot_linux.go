package main

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// overshootBound is the limit on written bytes in this measurement.
const overshootBound = 64 << 20

// mostWritten is where a program in this measurement stops by itself: 16 files of the maximum
// file size.
const mostWritten = 16 * 256 << 20

// measureOvershoot prints how far a run exceeds its limit if it fills a folder on disk as
// fast as possible, and only periodic checks enforce the limit.
func measureOvershoot(w io.Writer) error {
	dir, err := os.MkdirTemp("", "bench-overshoot-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	kept, err := changes.Open(context.Background(), changes.Options{Dir: filepath.Join(dir, "changes")})
	if err != nil {
		return err
	}
	const loop = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do %s; done; sleep 20"
	programs := []struct{ name, script string }{
		{"dd", fmt.Sprintf(loop, "dd if=/dev/zero of=$i bs=1M count=256 2>&1 || exit")},
		{"dd, ignoring SIGTERM", "trap '' TERM; " + fmt.Sprintf(loop, "dd if=/dev/zero of=$i bs=1M count=256 2>&1")},
	}
	if _, err := exec.LookPath("fallocate"); err == nil {
		// Without fallocate(2), the C library writes a byte to each block.
		programs = append(programs, struct{ name, script string }{"fallocate", fmt.Sprintf(loop, "fallocate -l 256M $i || fallocate -x -l 256M $i || exit")})
	}
	fmt.Fprintf(w, "How far past a bound of %d MiB a run gets; programs stop at %d MiB by themselves\n", overshootBound>>20, mostWritten>>20)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "on disk at most\tpast the bound\tended after\tbecause\t \t")
	for i, level := range []sandbox.Level{sandbox.LevelFull, sandbox.LevelPartial} {
		r := runner.New(runner.Options{
			Skip: []sandbox.Level{sandbox.LevelFull, sandbox.LevelPartial}[:i], Changes: kept, CopyDir: dir, TempDir: dir,
		})
		if report := r.Probe(context.Background()); report.Level != level {
			fmt.Fprintf(w, "skipped: level %s is not on this machine\n", level)
			continue
		} else {
			for _, trial := range report.Trials {
				for _, gap := range trial.Gaps {
					if trial.Level == level && i > 0 {
						fmt.Fprintf(w, "level %s: %s\n", level, gap)
					}
				}
			}
		}
		for _, folder := range []string{"workspace", "layer"} {
			for _, p := range programs {
				if err := overshoot(tab, r, dir, level, folder, p.name, p.script); err != nil {
					return fmt.Errorf("%s, %s, level %s: %w", p.name, folder, level, err)
				}
			}
		}
		r.Close()
	}
	return tab.Flush()
}

// overshoot runs one program in an empty workspace, or in the layer of an empty project.
func overshoot(tab io.Writer, r *runner.Runner, dir string, level sandbox.Level, folder, name, script string) error {
	workspace, project := filepath.Join(dir, "workspace"), filepath.Join(dir, "project")
	for _, d := range []string{workspace, project} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
		defer os.RemoveAll(d)
	}
	sh, err := program.Lookup("/bin/sh", program.LookupOptions{})
	if err != nil {
		return err
	}
	limits := sandbox.Limits{Workspace: overshootBound, Layer: overshootBound}
	policy := sandbox.Policy{Writable: []string{workspace}, Limits: limits}
	command := sandbox.Command{
		Program: sh, Args: []string{"-c", script}, Dir: workspace, Workspace: workspace, RunID: "overshoot",
		Env: sandbox.BaseEnv(os.Environ(), sandbox.EnvOptions{Home: workspace}),
	}
	where := folder
	if folder == "layer" {
		policy.Layers = r.Layers(context.Background(), []string{project})
		if kind := policy.Layers[0].Kind; kind == sandbox.LayerOverlay || kind == sandbox.LayerReadOnly {
			return nil // the kernel enforces it, or there is nothing to fill
		}
		where = fmt.Sprintf("layer (%s)", policy.Layers[0].Kind)
		command.Dir = project
	}
	before := onDisk(dir)
	stop, done := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		for {
			most = max(most, onDisk(dir)-before)
			select {
			case <-stop:
				done <- most
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	res, err := r.Run(context.Background(), policy, command)
	close(stop)
	most := <-done
	if err != nil {
		return err
	}
	fmt.Fprintf(tab, "%d MiB\t%d MiB\t%.2f s\t%s\t  %s: %s, %s\n", most>>20, (most-overshootBound)>>20, res.Duration.Seconds(), res.Cause, level, where, name)
	return nil
}

// onDisk returns how many bytes a folder takes.
func onDisk(dir string) (n int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // removed meanwhile
		}
		if info, err := d.Info(); err == nil {
			if st, ok := info.Sys().(*syscall.Stat_t); ok {
				n += st.Blocks * 512
			}
		}
		return nil
	})
	return n
}
