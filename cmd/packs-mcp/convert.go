package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/internal/packs/convert"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// maxConverted is how large a file to convert may be, in bytes; the parsers
// have a limit of their own, below it.
const maxConverted = 8 << 20 // 8 MiB

func (a *app) convertCommand() *cobra.Command {
	var to, output string
	var force, strict bool
	cmd := &cobra.Command{
		Use:   "convert FILE --to FORMAT --output DIR",
		Short: "Declare tools in another format",
		Long: `Write the tools of a SKILL.md, a *.tool.json or a tools.json in another format:

  markdown    NAME/SKILL.md, one for tools with the same policy
  tool-pack   NAME.tool.json, one a tool
  tools-json  tools.json

What is written is read again and compared. Whatever the new format cannot say is printed,
tool by tool; with --strict nothing is written then. Scripts are not copied.`,
		Example: `  packs-mcp convert skills/summarize/SKILL.md --to tool-pack --output tools
  packs-mcp convert summarize.tool.json --to tools-json --output my-pack --strict`,
		Args: misuse(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if to == "" || output == "" {
				return &usageError{err: errors.New("--to and --output are needed"), hint: "see: packs-mcp convert --help"}
			}
			format, err := convert.ParseFormat(to)
			if err != nil {
				return &usageError{err: err, hint: "see: packs-mcp convert --help"}
			}
			return a.convert(args[0], format, output, force, strict)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the `FORMAT`: markdown, tool-pack or tools-json")
	cmd.Flags().StringVar(&output, "output", "", "the `DIR` to write into")
	cmd.Flags().BoolVar(&force, "force", false, "write over files that are there")
	cmd.Flags().BoolVar(&strict, "strict", false, "write nothing when something would get lost")
	var formats []string
	for _, f := range convert.Formats() {
		formats = append(formats, string(f))
	}
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagDirname("output")
	return cmd
}

func (a *app) convert(file string, to convert.Format, output string, force, strict bool) error {
	if convert.FormatOf(file) == "" {
		return &usageError{err: fmt.Errorf("%q is in no format that is known", file), hint: "name a SKILL.md, a tools.json or a NAME.tool.json"}
	}
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("reading %q: not a regular file", file)
	}
	if err == nil && info.Size() > maxConverted {
		err = fmt.Errorf("reading %q: too large: %d bytes, and the limit is %d", file, info.Size(), maxConverted)
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	loader := &tools.Loader{}
	source, problems := convert.Read(loader, file, text)
	for _, d := range problems {
		printFinding(a.stderr, d)
	}
	if source == nil {
		if diag.HasErrors(problems) {
			return errSaid
		}
		return withHint(fmt.Errorf("%q declares no tool", file), "a tool in Markdown is a heading ### tool_name with #### Command and a fenced block")
	}
	files, problems := convert.Write(loader, source, to)
	lost := 0
	for _, d := range problems {
		printFinding(a.stderr, d)
		if d.Severity == diag.Warning {
			lost++
		}
	}
	switch {
	case files == nil:
		return errSaid
	case strict && lost > 0:
		return withHint(fmt.Errorf("nothing is written: %s cannot say %s", to, count(lost, "thing")), "leave --strict out to write the rest")
	}
	return a.place(output, files, force)
}

// place writes the files below a directory, and their paths to standard
// output. It writes none of them when one is there already.
func (a *app) place(output string, files []convert.File, force bool) error {
	for _, f := range files {
		path := filepath.Join(output, filepath.FromSlash(f.Name))
		if _, err := os.Lstat(path); err == nil && !force {
			return withHint(fmt.Errorf("%q is there already", path), "name another --output, or write over it with --force")
		}
	}
	for _, f := range files {
		path := filepath.Join(output, filepath.FromSlash(f.Name))
		if err := writeNew(path, f.Data, 0o644, force); err != nil {
			return err
		}
		fmt.Fprintln(a.stdout, path)
	}
	return nil
}

// writeNew writes a file and makes the folders above it. Without replace, a
// file that is there already is an error.
func writeNew(path string, data []byte, mode fs.FileMode, replace bool) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if !replace {
		flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	}
	f, err := os.OpenFile(path, flags, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
