//go:build darwin || freebsd || netbsd

package tree

import "syscall"

func changed(st *syscall.Stat_t) int64 { return st.Ctimespec.Nano() }
