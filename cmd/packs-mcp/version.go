package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// The linker sets these; see the Makefile and .goreleaser.yaml. Without them, a build uses
// what Go recorded in the program.
var (
	version = "devel"
	commit  string // the full hash
	date    string // date of the commit, so that builds are reproducible
)

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
	Version string        `json:"version"`
	Commit  string        `json:"commit,omitempty"`
	Date    string        `json:"date,omitempty"`
	Go      string        `json:"go"`
	OS      string        `json:"os"`
	Arch    string        `json:"arch"`
	Modules []builtModule `json:"modules"`
}

// builtModule is a module that is compiled in. Sum is its hash from go.sum.
type builtModule struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum,omitempty"`
}

// built returns what is known about this program. If Go recorded nothing, it lists no
// modules.
func (a *app) built() builtProgram {
	b := builtProgram{a.Version, commit, date, runtime.Version(), runtime.GOOS, runtime.GOARCH, []builtModule{}}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		b.Modules = append(b.Modules, builtModule{m.Path, m.Version, m.Sum})
	}
	if b.Commit == "" { // "go install" from a clone; commit and date come from the same source
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			}
		}
	}
	return b
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Long:    "Print the version. --json adds the commit, its date, and the modules that are compiled in.",
		Example: "  packs-mcp version\n  packs-mcp version --json",
		Args:    cli.Misuse(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return cli.PrintJSON(a.Stdout, a.built())
			}
			fmt.Fprintf(a.Stdout, "packs-mcp %s (%s, %s/%s)\n", a.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	cli.JSONFlag[builtProgram](a.Env, cmd, &asJSON)
	return cmd
}
