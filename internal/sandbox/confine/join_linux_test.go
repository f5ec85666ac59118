//go:build amd64 || arm64

package confine

import (
	"crypto/rand"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/groups"
)

// A child is a member of its group before its program starts.
func TestJoin(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root makes control groups")
	}
	name := groups.Prefix + rand.Text()
	g, err := groups.New(name, groups.Limits{Processes: 10, Memory: 64 << 20, Processors: 1})
	if err != nil {
		t.Skip("no control group can be made here")
	}
	defer g.Remove()
	var p [2]int
	if err := unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	f := &family{}
	f.join(&f.program, g)
	f.program.call("place standard output", unix.SYS_DUP3, p[1], 1, 0)
	f.program.call(StepStart, unix.SYS_EXECVE, "/bin/cat", f.program.cstrings([]string{"cat", "/proc/self/cgroup"}), f.program.cstrings(nil))
	pid, err := f.fork()
	_ = unix.Close(p[1])
	if err != nil {
		t.Fatal(err)
	}
	out := os.NewFile(uintptr(p[0]), "what cat says")
	defer out.Close()
	text, err := io.ReadAll(out)
	var status unix.WaitStatus
	if _, werr := unix.Wait4(pid, &status, 0, nil); werr != nil || err != nil || status != 0 {
		t.Fatalf("cat ended with %v, %v, status %v", err, werr, status)
	}
	if !strings.Contains(string(text), ":/"+name+"\n") {
		t.Errorf("the child is in\n%s\nand not in %s", text, name)
	}
}
