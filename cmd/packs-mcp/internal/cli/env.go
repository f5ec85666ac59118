// Package cli has what all commands share: the streams, environment and flags of
// one run of the program, its configuration, the packs that it finds, and how it
// reports errors and prints text and JSON.
//
// It has no command of its own and starts no server. A package of commands offers
// Commands, which takes an [Env]; package main puts them together.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/packs-mcp/packs-mcp/internal/config"
)

// An Env is one run of the program: its streams, its environment and its flags.
type Env struct {
	Environ        []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Version        string // what this program calls itself
	Flags          Flags

	shapes map[*cobra.Command]Shape // what --json prints
	keys   *Keyboard                // reads Stdin, for Confirm
}

// Root returns the root command. It has the flags that every command has, and its
// errors are of the kinds that Report knows.
func (env *Env) Root(below ...*cobra.Command) *cobra.Command {
	root := &cobra.Command{
		Use:           "packs-mcp",
		Args:          Needs(0, 0, ""),
		Version:       env.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(flagError)
	flags := root.PersistentFlags()
	addChoice(root, flags, &env.Flags.LogLevel, "log-level", "", "debug, info, warn or error (default info)", "debug", "info", "warn", "error")
	addChoice(root, flags, &env.Flags.LogFormat, "log-format", "", "auto, pretty, text or json (default auto)", config.FormatAuto, config.FormatPretty, config.FormatText, config.FormatJSON)
	addChoice(root, flags, &env.Flags.Color, "color", colorAuto, "auto, always or never", colorAuto, colorAlways, colorNever)
	root.SetHelpCommand(env.helpCommand())
	root.SetHelpFunc(env.help)
	root.AddCommand(below...)
	return root
}

// Run runs the command line args and returns the exit status: 0 done, 1 failed, 2
// misuse, 4 refused by a policy.
func (env *Env) Run(ctx context.Context, root *cobra.Command, args []string) int {
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) { // because of a signal, such as Ctrl-C
		if err = besides(err); err == nil {
			fmt.Fprintln(env.Stderr, "packs-mcp: stopped")
			return 1
		}
	}
	return env.Report(err)
}

// Flags are the flags that several commands share.
type Flags struct {
	Packs     []string
	Attach    []string
	Config    string
	Project   string
	Workspace string
	HTTP      string
	PublicURL string
	Policy    string
	Bundled   bool
	LogLevel  string
	LogFormat string
	Color     string
	Plain     bool
}

// PlainFlag adds the flag for screen readers.
func (env *Env) PlainFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&env.Flags.Plain, "plain", false, "for screen readers: one sentence per line, no colours, nothing drawn or overwritten")
}

// ConfigFlag adds the flag that names the configuration.
func (env *Env) ConfigFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&env.Flags.Config, "config", "", "the configuration `FILE`")
	_ = cmd.MarkFlagFilename("config", "yaml", "yml")
}

// PackFlags adds the flags that select the folders of packs.
func (env *Env) PackFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&env.Flags.Packs, "packs", nil, "a `DIR` that holds packs; their packs are attached (repeatable)")
	env.ConfigFlag(cmd)
	f.StringVar(&env.Flags.Project, "project", "", "the project `DIR` (default: the git root of the working folder; none for several people over HTTP)")
	_ = cmd.MarkFlagDirname("packs")
	_ = cmd.MarkFlagDirname("project")
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Getenv returns the value of a variable of environ.
func Getenv(environ []string, name string) string {
	for _, kv := range slices.Backward(environ) {
		if n, value, ok := strings.Cut(kv, "="); ok && n == name {
			return value
		}
	}
	return ""
}
