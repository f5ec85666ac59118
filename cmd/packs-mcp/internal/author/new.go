package author

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/packs/convert"
	"github.com/packs-mcp/packs-mcp/internal/packs/lint"
	"github.com/packs-mcp/packs-mcp/internal/packs/packname"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/schemas"
)

// A skeleton is what new writes: a working pack to start from.
type skeleton struct {
	files  []skeletonFile
	claims []lint.Profile // profiles under which it is valid
}

type skeletonFile struct {
	name string
	mode fs.FileMode
	text string // with NAME and DESCRIPTION for the given values
}

func (a *app) newCommand() *cobra.Command {
	format := string(convert.ToolPack)
	description := "Greet somebody by name. Use when asked to say hello."
	dir := "."
	asJSON := false
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Create a valid pack that runs, to start from",
		Long: `Write the folder NAME with an entry document, a script, a tool that runs it and a test. No pack is
valid under every specification, since Agent Skills has no version and SKILL.md v1.0 demands
one, so the tool's format is a choice:

  tool-pack   tools/hello.tool.json; valid under all but skill-md
  tools-json  tools.json; valid under agent-skills, capability-pack and skillkit
  markdown    in SKILL.md; valid under skill-md, capability-pack and skillkit`,
		Example: `  packs-mcp new release-notes
  packs-mcp new git-tools --format markdown --description "Look into git. Use for questions about history."`,
		Args: cli.Misuse(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := convert.ParseFormat(format)
			if err != nil {
				return &cli.UsageError{Err: err, Hint: "see: packs-mcp new --help"}
			}
			return a.new(cmd.Context(), args[0], dir, description, f, asJSON)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&format, "format", format, "how the tool is declared: tool-pack, tools-json or markdown")
	cmd.Flags().StringVar(&description, "description", description, "what the pack does, and when to use it")
	cmd.Flags().StringVar(&dir, "dir", dir, "the `DIR` to make the folder in")
	cli.JSONFlag[newPack](a.Env, cmd, &asJSON)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions([]string{string(convert.Markdown), string(convert.ToolPack), string(convert.ToolsJSON)}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

// newPack is what new --json prints.
type newPack struct {
	Folder     string         `json:"folder"`
	Files      []string       `json:"files"`
	ValidUnder []lint.Profile `json:"valid_under"`
}

func (a *app) new(ctx context.Context, name, dir, description string, format convert.Format, asJSON bool) error {
	if !packname.IsValid(name) {
		return &cli.UsageError{Err: fmt.Errorf("%q is not a name for a pack", name), Hint: "use lower-case letters, digits and single hyphens, at most 64, as in release-notes"}
	}
	description = strings.Join(strings.Fields(description), " ")
	if description == "" {
		return &cli.UsageError{Err: errors.New("--description is empty"), Hint: "say what the pack does and when to use it"}
	}
	root := filepath.Join(dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(root, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return cli.WithHint(fmt.Errorf("%q already exists", root), "choose another name, or another --dir")
		}
		return err
	}
	s := skeletonOf(format)
	fill := strings.NewReplacer("NAME", name, "DESCRIPTION", quoteYAML(description))
	folder, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	for _, f := range s.files {
		err = errors.Join(err, writeNew(folder, f.name, []byte(fill.Replace(f.text)), f.mode, false))
	}
	if err := errors.Join(err, folder.Close()); err != nil {
		return err
	}
	if err := a.claim(ctx, root, s.claims); err != nil {
		return errors.Join(err, os.RemoveAll(root))
	}
	out := newPack{Folder: root, Files: []string{}, ValidUnder: s.claims}
	if !cli.IsPath(out.Folder) { // so that it is taken for a folder, and not for an id
		out.Folder = "." + string(filepath.Separator) + out.Folder
	}
	for _, f := range s.files {
		out.Files = append(out.Files, out.Folder+string(filepath.Separator)+filepath.FromSlash(f.name))
	}
	if asJSON {
		return cli.PrintJSON(a.Stdout, out)
	}
	for _, file := range out.Files {
		fmt.Fprintln(a.Stdout, safetext.Line(file))
	}
	var claims []string
	for _, c := range s.claims {
		claims = append(claims, string(c))
	}
	named := safetext.Line(out.Folder)
	fmt.Fprintf(a.Stderr, "It is valid under %s.\nTry it: packs-mcp try %s\nTest it: packs-mcp test %s\n", strings.Join(claims, ", "), named, named)
	return nil
}

// claim checks a new pack against every profile that it claims.
func (a *app) claim(ctx context.Context, root string, claims []lint.Profile) error {
	for _, profile := range append([]lint.Profile{lint.Default}, claims...) {
		report, err := lint.Check(ctx, root, lint.Options{Profile: profile})
		if err != nil {
			return err
		}
		if report.Valid() {
			continue
		}
		for _, r := range report.Packs {
			for _, d := range r.Problems {
				cli.PrintFinding(a.Stderr, d)
			}
		}
		return cli.WithHint(fmt.Errorf("a pack like that is not valid, and was not written"), "choose another name or description")
	}
	return nil
}

// quoteYAML returns a text as a YAML value.
func quoteYAML(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(safetext.Line(s)) + `"`
}

// skeletonOf returns the skeleton for a format.
func skeletonOf(format convert.Format) skeleton {
	script := skeletonFile{"scripts/hello.sh", 0o755, `#!/bin/sh
# hello.sh WHO: prints a greeting. Put here what your pack is for.
printf 'Hello, %s!\n' "$1"
`}
	test := skeletonFile{"tests/hello.yaml", 0o644, `# yaml-language-server: $schema=` + schemas.TestsV1ID + `
# packs-mcp test runs these cases.
cases:
  - name: greets by name
    tool: hello
    arguments: {who: Ada}
    output: {equals: "Hello, Ada!"}
`}
	const head = "---\nname: NAME\ndescription: DESCRIPTION\n---\n"
	const body = `
# NAME

Say here what the pack is for and how to go about it. A model reads this when it opens the
pack, so write it for somebody who has not seen the files.

## Enable the tools

Call ` + "`capability_packs_enable_tools`" + ` for this pack, then ` + "`hello`" + ` with the name to greet.
`
	switch format {
	case convert.Markdown:
		return skeleton{
			files: []skeletonFile{
				{"SKILL.md", 0o644, `---
name: NAME
version: 0.1.0
description: DESCRIPTION
read_only: true
timeout: 10
---
` + body + `
### hello

Print a greeting.

#### Parameters

| Name | Type | Required | Description |
|------|------|----------|-------------|
| who | string | no | Whom to greet (default: world) |

#### Command

` + "```bash" + `
./scripts/hello.sh {{who}}
` + "```" + `
`}, script, test,
			},
			claims: []lint.Profile{lint.SkillMD, lint.CapabilityPack, lint.Skillkit},
		}
	case convert.ToolsJSON:
		return skeleton{
			files: []skeletonFile{
				{"SKILL.md", 0o644, head + body},
				{"tools.json", 0o644, `{
  "$schema": "https://raw.githubusercontent.com/packs-mcp/packs-mcp/main/schemas/tools.v1.json",
  "tools": [
    {
      "name": "hello",
      "description": "Print a greeting.",
      "inputSchema": {
        "type": "object",
        "properties": {
          "who": { "type": "string", "description": "Whom to greet", "default": "world" }
        },
        "additionalProperties": false
      },
      "command": { "program": "./scripts/hello.sh", "args": ["{{who}}"] },
      "policy": { "read_only": true, "timeout_secs": 10 }
    }
  ]
}
`}, script, test,
			},
			claims: []lint.Profile{lint.AgentSkills, lint.CapabilityPack, lint.Skillkit},
		}
	default:
		return skeleton{
			files: []skeletonFile{
				{"SKILL.md", 0o644, head + body},
				{"tools/hello.tool.json", 0o644, `{
  "$schema": "https://raw.githubusercontent.com/packs-mcp/packs-mcp/main/schemas/tool-pack.v1.json",
  "name": "hello",
  "description": "Print a greeting.",
  "version": "0.1.0",
  "parameters": {
    "who": { "type": "string", "description": "Whom to greet", "default": "world" }
  },
  "command": { "program": "./scripts/hello.sh", "args": ["{{who}}"] },
  "policy": { "read_only": true, "timeout_secs": 10 },
  "output": { "speak": false }
}
`}, script, test,
			},
			claims: []lint.Profile{lint.AgentSkills, lint.ToolPack, lint.CapabilityPack, lint.Skillkit},
		}
	}
}
