package main

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/approve"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/auditcmd"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/author"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/catalog"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/changescmd"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/doctor"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/get"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/runcmd"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/scancmd"
	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/setup"
)

// An app is one run of the program. Its methods are the commands that serve.
type app struct{ *cli.Env }

// command returns the tree of commands. Without a command, packs-mcp serves.
func (a *app) command() *cobra.Command {
	root := a.Root(slices.Concat([]*cobra.Command{a.serveCommand()}, runcmd.Commands(a.Env), []*cobra.Command{a.versionCommand(), a.manCommand()})...)
	for _, commands := range []func(*cli.Env) []*cobra.Command{
		catalog.Commands, approve.Commands, author.Commands, scancmd.Commands, changescmd.Commands, auditcmd.Commands, doctor.Commands, setup.Commands, get.Commands,
	} {
		root.AddCommand(commands(a.Env)...)
	}
	root.Short = "Capability packs for any MCP client, each call approved by a person"
	root.Long = `packs-mcp brings capability packs (folders with instructions, files and tools) to any
MCP client. The client's model sees names and descriptions first, opens what it needs, and
a person approves every call. Without a command it serves on standard input and output,
which is how clients start it.`
	root.Example = `  packs-mcp try                          # see it work, with example packs
  packs-mcp setup                        # connect the MCP clients on this machine
  packs-mcp --packs ~/packs              # serve the packs below ~/packs; clients run this
  packs-mcp list --packs ~/packs         # what a model would see
  packs-mcp audit show                   # what was asked, decided and run`
	root.RunE = func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context()) }
	a.PackFlags(root)
	a.serveFlags(root)
	a.completionCommands(root)
	root.InitDefaultVersionFlag()
	return root
}

// completionCommands makes the library's own command match the others: an
// example in its help, and status 2 for misuse.
func (a *app) completionCommands(root *cobra.Command) {
	root.SetOut(a.Stdout) // which the library remembers now
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "completion":
			cmd.Example = `  source <(packs-mcp completion bash)
  packs-mcp completion zsh > "${fpath[1]}/_packs-mcp"
  packs-mcp completion fish > ~/.config/fish/completions/packs-mcp.fish
  packs-mcp completion powershell | Out-String | Invoke-Expression`
			cmd.Args = cli.Misuse(cobra.NoArgs)
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range cmd.Commands() {
				shell.Example = "  packs-mcp completion " + shell.Name()
				shell.Args = cli.Misuse(cobra.NoArgs)
			}
		}
	}
}
