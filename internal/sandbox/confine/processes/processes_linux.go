package processes

import (
	"os"
	"strconv"
	"strings"
)

// Descendants returns the descendants of this process, parents before their children.
func Descendants() []int {
	children := Children
	if _, err := os.Stat("/proc/thread-self/children"); err != nil {
		children = childrenByParent() // a kernel without CONFIG_PROC_CHILDREN
	}
	all := children(os.Getpid())
	for i := 0; i < len(all); i++ {
		all = append(all, children(all[i])...)
	}
	return all
}

// Children returns the children of a process, if the kernel lists them
// (CONFIG_PROC_CHILDREN).
func Children(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	tasks, _ := names(dir)
	var pids []int
	for _, task := range tasks {
		list, _ := os.ReadFile(dir + "/" + task + "/children")
		for field := range strings.FieldsSeq(string(list)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// childrenByParent returns a function like Children, made from the parents of all
// processes.
func childrenByParent() func(int) []int {
	parents := map[int][]int{}
	all, _ := names("/proc")
	for _, name := range all {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // gone
		}
		// pid (command) state ppid …; the command may hold anything.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) > 1 {
			if ppid, err := strconv.Atoi(fields[1]); err == nil {
				parents[ppid] = append(parents[ppid], pid)
			}
		}
	}
	return func(pid int) []int { return parents[pid] }
}

func names(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}
