package seatbelt

import (
	"slices"
	"testing"
)

// p makes a process for the cases: 100 is the supervisor, 101 the program. The
// numbers are pid, parent, group, session and start.
func p(pid, ppid, pgid, sid int, start int64) proc {
	return proc{pid: pid, ppid: ppid, pgid: pgid, sid: sid, start: start}
}

func TestTree(t *testing.T) {
	others := []proc{p(1, 0, 1, 1, 0), p(50, 1, 50, 50, 5), p(100, 50, 100, 100, 10), p(101, 100, 101, 101, 11), p(900, 50, 900, 50, 99)}
	for _, tt := range []struct {
		name  string
		looks [][]proc // the processes besides others, one entry for each look
		gone  []int    // of others, at the last look
		want  []int    // at the last look
	}{
		{"alone", [][]proc{{}}, nil, []int{101}},
		{"a child", [][]proc{{p(102, 101, 101, 101, 12)}}, nil, []int{101, 102}},
		{"a group of its own", [][]proc{{p(102, 101, 102, 101, 12)}}, nil, []int{101, 102}},
		{"listed before its parent", [][]proc{{p(103, 102, 102, 102, 13), p(102, 101, 102, 102, 12)}}, nil, []int{101, 102, 103}},
		{"orphaned in the group", [][]proc{{p(103, 1, 101, 101, 13)}}, nil, []int{101, 103}},
		{"orphaned in the session", [][]proc{{p(103, 1, 103, 101, 13)}}, nil, []int{101, 103}},
		{"a daemon whose first half was seen", [][]proc{{p(102, 101, 102, 102, 12)}, {p(103, 1, 102, 102, 13)}}, nil, []int{101, 103}},
		{"a daemon of a session that was seen", [][]proc{{p(102, 101, 102, 102, 12)}, {p(103, 1, 103, 102, 13)}}, nil, []int{101, 103}},
		{"a daemon that was seen", [][]proc{{p(103, 101, 103, 103, 13)}, {p(103, 1, 103, 103, 13)}}, nil, []int{101, 103}},
		{"a daemon nobody saw", [][]proc{{p(103, 1, 103, 103, 13)}}, nil, []int{101}},
		{"the program is gone", [][]proc{{p(102, 101, 102, 102, 12)}, {p(102, 1, 102, 102, 12)}}, []int{101}, []int{102}},
		{"a number given again", [][]proc{{p(102, 101, 102, 102, 12)}, {}, {p(102, 50, 102, 102, 20), p(103, 102, 102, 102, 21)}}, nil, []int{101}},
		{"a number given again at once", [][]proc{{p(102, 101, 102, 101, 12)}, {p(102, 50, 900, 50, 20)}}, nil, []int{101}},
		{"older than the program", [][]proc{{p(80, 101, 80, 80, 9)}}, nil, []int{101}},
		{"in the supervisor's group at first", [][]proc{{p(102, 101, 100, 100, 12)}, {p(102, 101, 102, 102, 12), p(104, 50, 100, 100, 14)}}, nil, []int{101, 102}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tree := newTree(101, 100)
			var found []proc
			for i, look := range tt.looks {
				all := slices.Concat(others, look)
				if i == len(tt.looks)-1 {
					all = slices.DeleteFunc(all, func(x proc) bool { return slices.Contains(tt.gone, x.pid) })
				}
				found = tree.see(all, nil)
			}
			var got []int
			for _, x := range found {
				got = append(got, x.pid)
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("see = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestTreeAlso(t *testing.T) {
	all := []proc{p(1, 0, 1, 1, 0), p(100, 1, 100, 100, 10), p(101, 100, 101, 101, 11), p(103, 1, 103, 103, 13), p(104, 103, 104, 104, 14), p(99, 1, 99, 99, 9)}
	asked := []int{}
	got := newTree(101, 100).see(all, func(x proc) bool {
		asked = append(asked, x.pid)
		return x.pid == 103 || x.pid == 99 || x.pid == 100
	})
	if len(got) != 3 || got[1].pid != 103 || got[2].pid != 104 {
		t.Errorf("see = %v, want 101, 103 and its child 104", got)
	}
	if slices.Contains(asked, 1) || slices.Contains(asked, 100) {
		t.Errorf("asked for %v, want neither the first process nor the supervisor", asked)
	}
}

func TestTreeNeverSeesTheFirstProcess(t *testing.T) {
	tree := newTree(101)
	got := tree.see([]proc{p(1, 101, 101, 101, 99), p(0, 101, 101, 101, 99)}, func(proc) bool { return true })
	if len(got) > 0 {
		t.Errorf("see = %v, want none", got)
	}
}
