package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what the linker puts in; see the Makefile.
var version = "devel"

// versionName is what this program calls itself.
func versionName() string {
	if version != "devel" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return version
}

// buildName tells this program from others, of the same version too: those that
// somebody builds while they change how packs are read. It is empty when that is
// not known.
func buildName() string {
	file, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(file)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s, %d bytes of %d", versionName(), info.Size(), info.ModTime().UnixNano())
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  packs-mcp version",
		Args:    misuse(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintf(a.stdout, "packs-mcp %s (%s, %s/%s)\n", versionName(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
