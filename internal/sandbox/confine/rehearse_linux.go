//go:build amd64 || arm64

package confine

import (
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// rehearse plans a job that is never carried out, while the helper is idle. A process
// is slow the first time, since its pages come into memory one by one; that would be
// a fifth of a real job's time.
func rehearse() {
	job, err := parseJob(rehearsal().Message()[HeadSize:])
	if err == nil {
		_ = newFamily(job, nil, ends{stdio: make([]int, stdioCount)})
	}
	_, _ = userMaps()
}

// rehearsal returns a job of about the usual size.
func rehearsal() *Job {
	const binds, links, rules = 32, 16, 192
	j := &Job{
		Path: "/bin/true", Env: slices.Repeat([]string{"NAME=value"}, 32), Dir: "/",
		Files:      []File{{Path: "/bin/true", State: State{Size: 1}}},
		Namespaces: true, Loopback: true, Listen: 1,
		Landlock: Ruleset{FS: unix.LANDLOCK_ACCESS_FS_READ_FILE},
		Limits:   Limits{CPU: 1, Data: 1 << 30, Processes: 1, Files: 1, FileSize: 1},
	}
	name := func(i int) string { return "/rehearsal/" + strconv.Itoa(i) }
	for i := range binds {
		j.Binds = append(j.Binds, Bind{Path: name(i), Writable: i%2 == 0, Layered: i == 0})
	}
	for i := range links {
		j.Links = append(j.Links, Link{Path: name(i), Target: "target"})
	}
	for i := range rules {
		j.Landlock.Rules = append(j.Landlock.Rules, Rule{Path: name(i), Access: unix.LANDLOCK_ACCESS_FS_READ_FILE})
	}
	return j
}
