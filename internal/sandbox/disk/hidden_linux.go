//go:build amd64 || arm64

package disk

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/processes"
)

// maxHiddenProcesses is how many processes of a run are examined.
const maxHiddenProcesses = 1024

// HiddenBelow returns how many bytes on disk the processes below pid hold in open but
// unlinked files; if self, pid's own count too. Files that are only mapped, or in
// flight in a socket, are not counted, but the log's reserve still bounds them.
func HiddenBelow(pid int, self bool) int64 {
	var total int64
	seen := map[fileID]bool{}
	pids := processes.Children(pid)
	if self {
		pids = append(pids, pid)
	}
	for i := 0; i < len(pids) && i < maxHiddenProcesses; i++ {
		pids = append(pids, processes.Children(pids[i])...)
		dir := "/proc/" + strconv.Itoa(pids[i]) + "/fd"
		f, err := os.Open(dir)
		if err != nil {
			continue // gone, or not ours to examine
		}
		names, _ := f.Readdirnames(-1)
		_ = f.Close()
		for _, name := range names {
			var st unix.Stat_t
			if unix.Stat(dir+"/"+name, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 0 || inMemory(dir+"/"+name) {
				continue
			}
			if id := (fileID{uint64(st.Dev), st.Ino}); !seen[id] {
				seen[id] = true
				total += st.Blocks * 512
			}
		}
	}
	return total
}

// inMemory reports whether a file is on a file system in memory, which bounds it.
func inMemory(path string) bool {
	var st unix.Statfs_t
	return unix.Statfs(path, &st) != nil || st.Type == unix.TMPFS_MAGIC || st.Type == unix.HUGETLBFS_MAGIC
}
