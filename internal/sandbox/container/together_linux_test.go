package container_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/container"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// fill writes more to /tmp, which is in memory, than a container of 64 MiB and its helper may
// have.
const fill = "dd if=/dev/zero of=/tmp/full bs=1048576 count=256"

// A run whose processes and files in memory take more than the container may have ends as one
// with too much memory, even if the kernel ended a process that the program could do without.
func TestOutOfMemory(t *testing.T) {
	r := sharedRunner(t)
	for name, script := range map[string]string{
		"the program":               "exec " + fill,
		"a child of it":             fill + "; echo it goes on; sleep 1000",
		"a child that it waits for": fill + " & wait; exit 0",
	} {
		t.Run(name, func(t *testing.T) {
			res := run(t, r, sandbox.Policy{Limits: sandbox.Limits{Memory: 64 << 20}}, "/", script)
			if res.Cause != sandbox.CauseMemoryLimit {
				t.Errorf("Cause = %q (%d %s), want %q\n%s", res.Cause, res.ExitCode, res.Signal, sandbox.CauseMemoryLimit, res.Stderr.Bytes())
			}
		})
	}
	if res := run(t, r, sandbox.Policy{}, "/", fill); res.Cause != sandbox.CauseExit || res.ExitCode != 0 {
		t.Errorf("with enough memory, Cause = %q (%d %s)\n%s", res.Cause, res.ExitCode, res.Signal, res.Stderr.Bytes())
	}
}

// Memory and processors of all processes together are bounded where the engine can do that, and
// a run that asks for it happens nowhere else.
func TestTogether(t *testing.T) {
	sh := shell(t)
	together := sandbox.Together{Memory: 64 << 20, Processors: 1}
	var drops atomic.Bool
	socket := dropping(t, func(_, host map[string]any) {
		if drops.Load() {
			delete(host, "NanoCpus")
		}
	})
	newRunner := func() (*runner.Runner, sandbox.Report) {
		r := runner.New(runner.Options{System: container.New(container.Options{Socket: socket, Image: podman.Image}), Together: together})
		t.Cleanup(r.Close)
		return r, r.Probe(t.Context())
	}
	r, report := newRunner()
	if report.Together != "" {
		if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "groups") {
			t.Fatalf("%s, though groups are required", report.Together)
		}
		t.Skipf("groups: %s", report.Together)
	}
	start := func(script string) (*sandbox.Result, error) {
		return r.Run(t.Context(), sandbox.Policy{Together: together}, sandbox.Command{Program: sh, Args: []string{"-c", script}, Dir: "/", Env: []string{"PATH=/bin"}})
	}
	// One of two processors is as much as the period in which it is counted.
	res, err := start("cd /sys/fs/cgroup; if [ -e cpu.max ]; then cat cpu.max; else cat cpu/cpu.cfs_quota_us cpu/cpu.cfs_period_us; fi")
	if err != nil {
		t.Fatal(err)
	}
	if share := strings.Fields(string(res.Stdout.Bytes())); len(share) != 2 || share[0] != share[1] {
		t.Errorf("the container's share of the processors is %q, want one\n%s", share, res.Stderr.Bytes())
	}
	if res, err := start(fill); err != nil || res.Cause != sandbox.CauseMemoryLimit {
		t.Errorf("Run = %+v, %v, want the cause %q", res, err, sandbox.CauseMemoryLimit)
	}
	drops.Store(true)
	const want = "did not bound the container's processors"
	if res, err := start("exit 0"); !errors.As(err, new(*sandbox.ConfineError)) || !strings.Contains(err.Error(), want) {
		t.Errorf("where the engine drops the bound, Run = %+v, %v, want %q", res, err, want)
	}
	if _, report := newRunner(); report.Level != sandbox.LevelFull || !strings.Contains(report.Together, want) {
		t.Errorf("where the engine drops the bound, Probe = %+v, want %q", report, want)
	}
}

// If memory runs out and the helper is what the kernel ends, the engine says so.
func TestHelperOutOfMemory(t *testing.T) {
	needsPodman(t)
	socket := between(t, func(*httputil.ProxyRequest) {}, func(resp *http.Response) error {
		at := resp.Request.URL.Path // …/containers/ID/json
		if !strings.HasSuffix(at, "/json") || !strings.HasSuffix(path.Dir(path.Dir(at)), "/containers") || resp.StatusCode != http.StatusOK {
			return nil
		}
		text := altered(t, resp.Body, func(all map[string]any) { all["State"].(map[string]any)["OOMKilled"] = true })
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		resp.Header.Set("Content-Length", strconv.Itoa(len(text)))
		return nil
	})
	kept, err := changes.Open(t.Context(), changes.Options{Dir: filepath.Join(t.TempDir(), "changes")})
	if err != nil {
		t.Fatal(err)
	}
	r := runner.New(runner.Options{System: container.New(container.Options{Socket: socket, Image: podman.Image}), Changes: kept, TempDir: t.TempDir(), CopyDir: t.TempDir()})
	t.Cleanup(r.Close)
	done := sleeper(t, t.Context(), r, project(t))
	for _, id := range left(t) {
		_ = podman.Podman(t.Context(), "kill", "--signal", "KILL", id).Run()
	}
	if res := <-done; res == nil || res.Cause != sandbox.CauseMemoryLimit || res.Signal != "SIGKILL" || len(res.Changes) != 1 || res.Changes[0].Changes[0].State != changes.Held {
		t.Errorf("Result = %+v, want the cause %q, and what it changed held", res, sandbox.CauseMemoryLimit)
	}
}
