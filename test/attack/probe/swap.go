//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// swap MILLIS TARGET PATH... swaps each folder, for that long, with a link to the entry of
// its name in TARGET, and prints how often. It recreates what others remove meanwhile.
func swap(args []string) int {
	exchanged := 0
	for until := time.Now().Add(time.Duration(number(args, 0)) * time.Millisecond); time.Now().Before(until); {
		for _, path := range args[2:] {
			link := path + ".link"
			for range 2 { // a folder again after each link
				err := unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
				if err == nil {
					exchanged++
					continue
				}
				_ = unix.Mkdir(path, 0o700)
				_ = unix.Symlink(filepath.Join(args[1], filepath.Base(path)), link)
			}
		}
	}
	say(fmt.Sprintln(exchanged))
	return 0
}

// mess BYTES PATH... changes the files at the paths in every way, and prints that many
// bytes.
func mess(args []string) int {
	for _, path := range args[1:] {
		_ = os.WriteFile(path, []byte("changed"), 0o600)
		_ = unix.Rename(path, path+".old")
		_ = os.WriteFile(path, []byte("made anew"), 0o600)
		_ = os.WriteFile(path+".more", []byte("new"), 0o600)
	}
	return flood([]string{"out", args[0], "y\n"})
}
