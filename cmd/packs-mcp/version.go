package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// version is set by the linker; see the Makefile.
var version = "devel"

// versionName returns the version that this program reports.
func versionName() string {
	if version != "devel" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return version
}

// builtProgram is what version --json prints.
type builtProgram struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  packs-mcp version",
		Args:    cli.Misuse(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return cli.PrintJSON(a.Stdout, builtProgram{a.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH})
			}
			fmt.Fprintf(a.Stdout, "packs-mcp %s (%s, %s/%s)\n", a.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	cli.JSONFlag[builtProgram](a.Env, cmd, &asJSON)
	return cmd
}
