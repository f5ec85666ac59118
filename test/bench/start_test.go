// Package bench_test measures packs-mcp beside a bare server on the same
// library, in one run, and prints ratios: machines differ and are shared, and
// ratios last. It asserts nothing.
package bench_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/test/plant"
)

// binaries builds what is measured, the way it is shipped.
func binaries(b *testing.B) (ours, bare string) {
	b.Helper()
	dir := b.TempDir()
	build := func(name, pkg string) string {
		out := filepath.Join(dir, name)
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, pkg)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if text, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("building %s: %v\n%s", pkg, err, text)
		}
		return out
	}
	return build("packs-mcp", "../../cmd/packs-mcp"), build("bare", "./bare")
}

// planted writes n packs in the shape of real ones, and returns their folder.
func planted(b *testing.B, n int) string {
	b.Helper()
	root := b.TempDir()
	if _, err := plant.Write(root, 1, n); err != nil {
		b.Fatal(err)
	}
	return root
}

// a client is one process under test and a pipe to it.
type client struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(b *testing.B, env []string, name string, args ...string) *client {
	b.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = env
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return &client{cmd: cmd, in: in, out: bufio.NewReader(out)}
}

func (c *client) request(b *testing.B, id int, method, params string) json.RawMessage {
	b.Helper()
	fmt.Fprintf(c.in, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		b.Fatalf("%s: %v", method, err)
	}
	var reply struct{ Result, Error json.RawMessage }
	if err := json.Unmarshal(line, &reply); err != nil || reply.Error != nil {
		b.Fatalf("%s: %v %s", method, err, line)
	}
	return reply.Result
}

func (c *client) list(b *testing.B) {
	b.Helper()
	c.request(b, 1, "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}`)
	fmt.Fprintln(c.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	c.request(b, 2, "tools/list", `{}`)
}

func (c *client) stop(b *testing.B) {
	b.Helper()
	c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStart measures from the start of the process to the answer of the
// first tools/list, in turns.
func BenchmarkStart(b *testing.B) {
	ours, bare := binaries(b)
	home := b.TempDir()
	env := append(os.Environ(), "PACKS_MCP_HOME="+home, "PACKS_MCP_LOG_LEVEL=error")
	type subject struct {
		name string
		args []string
	}
	subjects := []subject{{"bare", []string{bare}}}
	for _, n := range []int{0, 10, 100, 1000} {
		subjects = append(subjects, subject{fmt.Sprintf("packs=%d", n), []string{ours, "serve", "--packs", planted(b, n)}})
	}
	times := make(map[string][]time.Duration)
	memory := make(map[string]int64)
	for b.Loop() {
		for _, s := range subjects {
			begin := time.Now()
			c := start(b, env, s.args[0], s.args[1:]...)
			c.list(b)
			times[s.name] = append(times[s.name], time.Since(begin))
			memory[s.name] = max(memory[s.name], resident(c.cmd.Process.Pid))
			c.stop(b)
		}
	}
	b.ReportMetric(0, "ns/op") // the sum of all subjects means nothing
	base := median(times["bare"])
	b.Logf("start → tools/list, median of %d, in turns", len(times["bare"]))
	for _, s := range subjects {
		m := median(times[s.name])
		b.Logf("  %-12s %8.2f ms   %5.2f × bare   %5.1f MiB resident", s.name, ms(m), float64(m)/float64(base), float64(memory[s.name])/(1<<20))
		b.ReportMetric(ms(m), s.name+"-ms")
	}
}

func median(d []time.Duration) time.Duration {
	d = slices.Clone(d)
	slices.Sort(d)
	return d[len(d)/2]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// resident is a process's resident memory in bytes, or 0 where the system has
// no /proc.
func resident(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}
