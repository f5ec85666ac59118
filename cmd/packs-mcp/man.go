package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// manCommand writes the manual pages. It is for packagers.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Hidden: true,
		Short:  "Write the manual pages of all commands",
		Long: `Write the manual pages of all commands into DIR, which is made if it is not there. To read
them with man, take a folder man1 of MANPATH.`,
		Example:           "  packs-mcp man ~/.local/share/man/man1",
		Args:              cli.Needs(1, 1, "a folder"),
		ValidArgsFunction: cli.Folders,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("making the folder of the manual: %w", err)
			}
			return a.writeManual(cmd.Root(), args[0])
		},
	}
}

// writeManual writes the page of a command, and of those below it.
func (a *app) writeManual(c *cobra.Command, dir string) error {
	c.InitDefaultHelpFlag()
	file := filepath.Join(dir, manName(c)+".1")
	if err := os.WriteFile(file, []byte(manPage(c, a.Version)), 0o644); err != nil {
		return fmt.Errorf("writing the manual: %w", err)
	}
	fmt.Fprintln(a.Stdout, safetext.Line(file))
	for _, below := range offered(c) {
		if err := a.writeManual(below, dir); err != nil {
			return err
		}
	}
	return nil
}

// offered returns the commands below one that people are told about.
func offered(c *cobra.Command) (all []*cobra.Command) {
	for _, below := range c.Commands() {
		if !below.Hidden {
			all = append(all, below)
		}
	}
	return all
}

// manName is the name of a command's page: "packs-mcp-audit-show".
func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

// manPage returns the page of a command in the language of man.
func manPage(c *cobra.Command, version string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line(`.TH "%s" "1" "" "packs-mcp %s" "packs-mcp"`, strings.ToUpper(roff(manName(c))), roff(version))
	line(".SH NAME\n%s \\- %s", roff(manName(c)), roff(c.Short))
	line(".SH SYNOPSIS\n.B %s", roff(c.UseLine()))
	about := c.Long
	if about == "" {
		about = c.Short + "."
	}
	line(".SH DESCRIPTION")
	b.WriteString(manText(about))
	options := func(title string, flags *pflag.FlagSet) {
		if !flags.HasAvailableFlags() {
			return
		}
		line(".SH %s", title)
		flags.VisitAll(func(f *pflag.Flag) {
			if f.Hidden {
				return
			}
			value, usage := pflag.UnquoteUsage(f)
			name := "--" + f.Name
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + ", " + name
			}
			line(".TP\n\\fB%s\\fR \\fI%s\\fR\n%s", roff(name), roff(value), roffLine(usage))
		})
	}
	options("OPTIONS", c.NonInheritedFlags())
	options("OPTIONS OF EVERY COMMAND", c.InheritedFlags())
	if c.Example != "" {
		line(".SH EXAMPLES\n.nf")
		for text := range strings.SplitSeq(c.Example, "\n") {
			line("%s", roffLine(text))
		}
		line(".fi")
	}
	line(".SH EXIT STATUS\n0 when done, 1 when something failed, 2 for misuse.")
	var also []string
	if c.HasParent() {
		also = append(also, manName(c.Parent()))
	}
	for _, below := range offered(c) {
		also = append(also, manName(below))
	}
	if len(also) > 0 {
		line(".SH SEE ALSO")
		for i, name := range also {
			comma := ","
			if i == len(also)-1 {
				comma = ""
			}
			line(".BR %s (1)%s", roff(name), comma)
		}
	}
	return b.String()
}

// manText returns paragraphs. Lines that are indented stay as they are.
func manText(text string) string {
	var b strings.Builder
	asIs := false
	for line := range strings.SplitSeq(text, "\n") {
		indented := strings.HasPrefix(line, " ")
		if indented != asIs && line != "" {
			asIs = indented
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[asIs])
		}
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(roffLine(line) + "\n")
	}
	if asIs {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// roff escapes text.
func roff(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r == '\'':
			b.WriteString(`\(aq`)
		case r == '`':
			b.WriteString(`\(ga`)
		case r > '~':
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// roffLine escapes a line, which must not begin like a request.
func roffLine(text string) string {
	if strings.HasPrefix(text, ".") {
		return `\&` + roff(text)
	}
	return roff(text)
}
