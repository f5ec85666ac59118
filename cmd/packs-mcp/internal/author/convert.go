package author

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/packs/convert"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// maxConverted is how large a file to convert may be, in bytes; the parsers have
// their own, lower limit.
const maxConverted = 8 << 20 // 8 MiB

func (a *app) convertCommand() *cobra.Command {
	var to, output string
	var force, strict, split, asJSON bool
	cmd := &cobra.Command{
		Use:   "convert FILE [--to FORMAT] --output DIR",
		Short: "Declare tools in another format",
		Long: `Write the tools of a SKILL.md, a *.tool.json or a tools.json in another format:

  markdown    NAME/SKILL.md; with --split, one for each policy that its tools have
  tool-pack   NAME.tool.json, one a tool; of a SKILL.md without --to
  tools-json  tools.json

What is written is read again and compared. Whatever the new format cannot say is printed,
in one line a kind; with --strict nothing is written then. Scripts are not copied.`,
		Example: `  packs-mcp convert skills/summarize/SKILL.md --output tools
  packs-mcp convert summarize.tool.json --to tools-json --output my-pack --strict`,
		Args: cli.Misuse(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			if output == "" {
				return &cli.UsageError{Err: errors.New("--output is needed"), Hint: "name the folder to write into: --output DIR"}
			}
			from := convert.FormatOf(args[0])
			format, err := convert.Target(from), error(nil)
			switch {
			case to != "":
				format, err = convert.ParseFormat(to)
			case format == "" && from != "":
				err = errors.New("--to is needed: this file can become several formats")
			}
			if err != nil {
				return &cli.UsageError{Err: err, Hint: "name one: --to markdown, tool-pack or tools-json"}
			}
			return a.convert(args[0], format, output, convert.Options{Split: split}, force, strict, asJSON)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the `FORMAT`: markdown, tool-pack or tools-json; tool-pack when FILE is a SKILL.md")
	cmd.Flags().StringVar(&output, "output", "", "the `DIR` to write into")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite existing files")
	cmd.Flags().BoolVar(&strict, "strict", false, "write nothing if something would be lost")
	cmd.Flags().BoolVar(&split, "split", false, "write several packs if one SKILL.md cannot express the policies of all tools")
	cli.JSONFlag[converted](a.Env, cmd, &asJSON)
	var formats []string
	for _, f := range convert.Formats() {
		formats = append(formats, string(f))
	}
	_ = cmd.RegisterFlagCompletionFunc("to", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagDirname("output")
	return cmd
}

// converted is what convert --json prints.
type converted struct {
	Files    []string          `json:"files"`    // the files that were written
	Problems []diag.Diagnostic `json:"problems"` // problems of the file, and what the new format cannot express
}

func (a *app) convert(file string, to convert.Format, output string, o convert.Options, force, strict, asJSON bool) (err error) {
	if convert.FormatOf(file) == "" {
		return &cli.UsageError{Err: fmt.Errorf("%q is in no known format", file), Hint: "name a SKILL.md, a tools.json or a NAME.tool.json"}
	}
	info, err := os.Stat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("reading %q: not a regular file", file)
	}
	if err == nil && info.Size() > maxConverted {
		err = fmt.Errorf("reading %q: too large: %d bytes; the limit is %d", file, info.Size(), maxConverted)
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	out := converted{Files: []string{}, Problems: []diag.Diagnostic{}}
	if asJSON {
		defer func() { err = errors.Join(cli.PrintJSON(a.Stdout, out), err) }()
	}
	say := func(problems []diag.Diagnostic) {
		out.Problems = append(out.Problems, problems...)
		for _, d := range problems {
			if !asJSON {
				cli.PrintFinding(a.Stderr, d)
			}
		}
	}
	source, problems := convert.Read(file, text)
	say(problems)
	if source == nil {
		if diag.HasErrors(problems) {
			return cli.ErrSaid
		}
		return cli.WithHint(fmt.Errorf("%q declares no tool", file), "a tool in Markdown is a heading ### tool_name with #### Command and a fenced block")
	}
	files, problems := convert.Write(source, to, o)
	say(problems)
	lost := 0
	for _, d := range problems {
		if d.Severity == diag.Warning {
			lost++
		}
	}
	switch {
	case files == nil:
		return cli.ErrSaid
	case strict && lost > 0:
		return cli.WithHint(fmt.Errorf("nothing was written: %s cannot express %s", to, diag.Count(lost, "thing")), "leave --strict out to write the rest")
	}
	out.Files, err = writeAll(output, files, force)
	for _, path := range out.Files {
		if !asJSON {
			fmt.Fprintln(a.Stdout, safetext.Line(path))
		}
	}
	return err
}

// writeAll writes the files below a directory, and returns the paths of those that it
// wrote. If one of them already exists, it writes none, unless force is set. It does
// not write through a link that leads out of the directory.
func writeAll(output string, files []convert.File, force bool) (written []string, err error) {
	written = []string{}
	for _, f := range files {
		path := filepath.Join(output, filepath.FromSlash(f.Name))
		if _, err := os.Lstat(path); err == nil && !force {
			return written, cli.WithHint(fmt.Errorf("%q already exists", path), "name another --output, or write over it with --force")
		}
	}
	if err := os.MkdirAll(output, 0o755); err != nil {
		return written, err
	}
	root, err := os.OpenRoot(output)
	if err != nil {
		return written, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, f := range files {
		if err := writeNew(root, f.Name, f.Data, 0o644, force); err != nil {
			return written, err
		}
		written = append(written, filepath.Join(output, filepath.FromSlash(f.Name)))
	}
	return written, nil
}

// writeNew writes a file below root and makes the folders above it. An existing file
// is an error or, with replace, is replaced as a whole. It is never written through.
func writeNew(root *os.Root, name string, data []byte, mode fs.FileMode, replace bool) error {
	name = filepath.FromSlash(name)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if replace {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
