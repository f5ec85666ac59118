package main

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// The program accepts every one of its command lines in the documents: the command
// exists, and has these flags and this many arguments.
func TestDocumentedCommandsExist(t *testing.T) {
	root := filepath.Join("..", "..")
	documents := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"}
	err := fs.WalkDir(os.DirFS(root), "docs", func(name string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(name) == ".md" {
			documents = append(documents, filepath.FromSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, document := range documents {
		text, err := os.ReadFile(filepath.Join(root, document))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range commandLines(string(text)) {
			seen++
			if problem := misread(line); problem != "" {
				t.Errorf("%s: packs-mcp %s: %s", document, strings.Join(line, " "), problem)
			}
		}
	}
	if seen < 100 {
		t.Errorf("the documents have %d command lines, want at least 100", seen)
	}
	for _, line := range []string{"`packs-mcp lst`", "`packs-mcp list --al`", "`packs-mcp approvals aprove X`", "`packs-mcp version now`"} {
		for _, words := range commandLines(line) {
			if misread(words) == "" {
				t.Errorf("%s is taken for a command line that exists", line)
			}
		}
	}
}

var (
	inText   = regexp.MustCompile("`(?:bin/)?packs-mcp ([^`\n]+)`")
	inBlocks = regexp.MustCompile("(?ms)^ *```(?:sh|shell|text)\n(.*?)^ *```$")
	inBlock  = regexp.MustCompile(`(?:^|[|;&$] ?|[A-Z]=\S+ )(?:bin/|\./cmd/)?packs-mcp +(.*)`)
	word     = regexp.MustCompile(`"[^"]*"|'[^']*'|[^\s"']+`)
)

// commandLines returns the words after packs-mcp of each command line in a document.
func commandLines(text string) (all [][]string) {
	var lines []string
	for _, m := range inBlocks.FindAllStringSubmatch(text, -1) {
		for line := range strings.SplitSeq(m[1], "\n") {
			if m := inBlock.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
				lines = append(lines, m[1])
			}
		}
	}
	for _, m := range inText.FindAllStringSubmatch(text, -1) {
		lines = append(lines, m[1])
	}
	for _, line := range lines {
		var words []string
		for _, w := range word.FindAllString(line, -1) {
			if strings.ContainsAny(w[:1], "#|;&<>()[") || w == "…" || w == "\\" {
				break
			}
			w, _, _ = strings.Cut(w, `\|`) // the first of several, in a table
			words = append(words, strings.Trim(w, `"'`))
		}
		if len(words) > 0 && words[0] == "help" {
			words = words[1:]
		}
		if len(words) > 0 && words[0] != strings.ToUpper(words[0]) { // not COMMAND, which stands for any command
			all = append(all, words)
		}
	}
	return all
}

// misread returns why the program would not take a command line, or "" if it would.
func misread(words []string) string {
	a := &app{&cli.Env{Environ: os.Environ(), Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard}}
	cmd, rest, err := a.command().Find(words)
	if err != nil {
		return err.Error()
	}
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return err.Error()
	}
	if cmd.Flags().Changed("help") {
		return ""
	}
	if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 {
		return "there is no such command below " + cmd.CommandPath()
	}
	// A command that is only mentioned has no arguments here.
	if cmd.Flags().NArg() == 0 {
		return ""
	}
	if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
		return err.Error()
	}
	return ""
}
