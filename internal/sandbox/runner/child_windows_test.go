package runner

import (
	"fmt"
	"os"
	"os/exec"
)

// systemChild has the behaviours that only tests on Windows need.
func systemChild(mode string, args []string) int {
	switch mode {
	case "spawn": // COUNT HOW: starts sleepers, prints how many, and sleeps or, with HOW "leave", ends
		started := 0
		for range args[0] {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), childVar+"=sleep")
			cmd.Stdout = os.Stdout
			if cmd.Start() != nil {
				break
			}
			started++
		}
		fmt.Printf("%d\n", started)
		if args[1] != "leave" {
			return child("sleep", nil)
		}
		return 7
	case "burn":
		for n := 0; ; n++ {
			if n < 0 {
				return 0
			}
		}
	}
	return 99
}
