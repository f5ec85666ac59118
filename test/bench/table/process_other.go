//go:build !linux

package main

import "time"

// cpuTime is not available here.
func cpuTime(int) time.Duration { return 0 }

// memoryOf is not available here.
func memoryOf(int) memory { return memory{} }
