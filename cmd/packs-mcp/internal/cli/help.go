package cli

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// helpCommand returns the command help. Unlike the library's own, it fails for a
// command that does not exist.
func (env *Env) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND...]",
		Short:   "Explain a command",
		Example: "  packs-mcp help try\n  packs-mcp help audit show",
		RunE: func(cmd *cobra.Command, args []string) error {
			at, err := find(cmd.Root(), args)
			if err != nil {
				return err
			}
			at.InitDefaultHelpFlag()
			return at.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			at, err := find(cmd.Root(), args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, c := range at.Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name()+"\t"+c.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// find returns the command below root with these names.
func find(root *cobra.Command, names []string) (*cobra.Command, error) {
	at := root
names:
	for _, name := range names {
		for _, c := range at.Commands() {
			if c.Name() == name || c.HasAlias(name) {
				at = c
				continue names
			}
		}
		return nil, &UsageError{
			Err:  fmt.Errorf("unknown command %q for %q", name, at.CommandPath()),
			Hint: seeHelp(at, didYouMean(name, commandNames(at))),
		}
	}
	return at, nil
}

// help prints the help of a command on standard output. On a terminal, paragraphs are
// rewrapped to fit.
func (env *Env) help(cmd *cobra.Command, _ []string) {
	s := env.Screen(env.Stdout)
	var b bytes.Buffer
	about := cmd.Long
	if about == "" {
		about = cmd.Short
	}
	if s.Width() > 0 {
		about = reflow(about)
	}
	fmt.Fprintf(&b, "%s\n\n%s", about, cmd.UsageString())
	for line := range strings.Lines(b.String()) {
		text := strings.TrimRight(line, "\n")
		if !strings.HasPrefix(text, " ") && strings.HasSuffix(text, ":") && !strings.Contains(text, ". ") {
			text = s.Style(Bold, text)
		}
		if fitted := fit(text, s.Width()); !strings.HasPrefix(text, " ") {
			text = strings.ReplaceAll(fitted, "\n  ", "\n") // a paragraph
		}
		fmt.Fprintln(s, text)
	}
}

// reflow joins the lines of each paragraph. Indented lines stay as they are.
func reflow(text string) string {
	var b strings.Builder
	before := ""
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case b.Len() == 0:
		case before != "" && line != "" && before[0] != ' ' && line[0] != ' ':
			b.WriteByte(' ')
		default:
			b.WriteByte('\n')
		}
		b.WriteString(line)
		before = line
	}
	return b.String()
}
