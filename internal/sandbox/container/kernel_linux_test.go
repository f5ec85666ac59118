//go:build amd64 || arm64

package container

import (
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine"
)

// A container counts as one with a kernel of its own only if nothing says otherwise.
func TestKernelDiffers(t *testing.T) {
	here := kernelAt("/proc/self/exe")
	if here.differs(kernelAt("/proc/self/exe")) || here.Name == "" || here.File == (confine.ID{}) {
		t.Errorf("this machine's kernel, %+v, differs from itself, or shows nothing", here)
	}
	for name, c := range map[string]struct {
		other kernel
		want  bool
	}{
		"another name and another number": {kernel{"4.19.0-gvisor #1", confine.ID{Dev: 1, Ino: 2}}, true},
		"only another name":               {kernel{"4.19.0-gvisor #1", here.File}, false},
		"only another number":             {kernel{here.Name, confine.ID{Dev: 1, Ino: 2}}, false},
		"no name":                         {kernel{"", confine.ID{Dev: 1, Ino: 2}}, false},
		"no number":                       {kernel{"4.19.0-gvisor #1", confine.ID{}}, false},
		"nothing":                         {kernel{}, false},
	} {
		if got := here.differs(c.other); got != c.want {
			t.Errorf("%s: differs = %v", name, got)
		}
	}
}

// Control groups that can be written are accepted from a kernel that only the container has, and
// a volume of the image from none.
func TestMountsOfAnotherKernel(t *testing.T) {
	const root = "16 15 0:17 / / ro - 9p none ro\n"
	g := &given{Alone: true}
	for name, c := range map[string]struct {
		table   string
		foreign bool
		want    string // part of the error; empty: there is none
	}{
		"its control groups":         {root + "29 28 0:9 /x /sys/fs/cgroup/cpu rw - cgroup none rw,cpu\n", true, ""},
		"this machine's":             {root + "29 28 0:9 /x /sys/fs/cgroup/cpu rw - cgroup none rw,cpu\n", false, "/sys/fs/cgroup/cpu"},
		"this machine's, version 2":  {root + "29 28 0:9 / /sys/fs/cgroup rw - cgroup2 none rw\n", true, "/sys/fs/cgroup"},
		"its settings":               {root + "21 16 0:21 / /sys rw - sysfs none rw\n", true, "/sys"},
		"its devices":                {root + "20 16 0:20 / /dev rw - dev none rw\n", true, ""},
		"devices of this machine":    {root + "20 16 0:20 / /dev rw - dev none rw\n", false, "/dev"},
		"a volume":                   {root + "20 16 0:20 / /data rw - 9p none rw\n", true, "/data"},
		"a root that can be written": {"16 15 0:17 / / rw - 9p none rw\n", true, "root folder"},
	} {
		err := g.compare(c.table, c.foreign)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: compare = %v, want %q", name, err, c.want)
		}
	}
}
