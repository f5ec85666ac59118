package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// tree returns an app and its commands, without those that are hidden.
func tree() (*app, []*cobra.Command) {
	a := &app{&cli.Env{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: io.Discard, Version: "devel"}}
	var all []*cobra.Command
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		if c.Hidden {
			return
		}
		all = append(all, c)
		for _, below := range c.Commands() {
			add(below)
		}
	}
	root := a.command()
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	add(root)
	return a, all
}

// words returns the words that call a command: none for packs-mcp alone.
func words(c *cobra.Command) []string { return strings.Fields(c.CommandPath())[1:] }

// ended is how a command line ended.
type ended struct {
	code     int
	out, err string
}

func ran(t *testing.T, args ...string) ended {
	t.Helper()
	home := t.TempDir()
	var out, errs bytes.Buffer
	environ := []string{"HOME=" + home, "PACKS_MCP_HOME=" + home, "USERPROFILE=" + home}
	code := run(t.Context(), args, environ, strings.NewReader(""), &out, &errs)
	return ended{code, out.String(), errs.String()}
}

// isMisuse reports whether a command line was refused as one: status 2, nothing on
// standard output, and an error and a hint.
func (e ended) isMisuse() bool {
	lines := strings.Split(strings.TrimRight(e.err, "\n"), "\n")
	return e.code == 2 && e.out == "" && len(lines) == 2 &&
		strings.HasPrefix(lines[0], "packs-mcp: error: ") && strings.HasPrefix(lines[1], "packs-mcp: hint: ")
}

// arguments returns how many arguments a command takes; most is -1 for any number.
func arguments(c *cobra.Command) (least, most int) {
	const enough = 6
	fits := func(n int) bool {
		return c.Args == nil || c.Args(c, slices.Repeat([]string{"no-such-thing"}, n)) == nil
	}
	least = -1
	for n := range enough {
		if fits(n) {
			if least < 0 {
				least = n
			}
			most = n
		}
	}
	if most == enough-1 {
		most = -1
	}
	return least, most
}

// Every command explains itself, and reports errors in its command line, in the same
// way.
func TestTree(t *testing.T) {
	t.Chdir(t.TempDir())
	// The statuses of commands that fail without arguments here although they need none.
	bare := map[string]int{
		"approvals open": 1, "audit show": 1, "audit verify": 1, "sandbox explain": 1,
		"approvals revoke": 2, "logout": 2, // these need one of several selections
	}
	// Commands that must not run here: they serve, ask, wait, look at the whole
	// machine, or contact other machines.
	skip := []string{"", "serve", "try", "audit follow", "doctor", "setup", "test", "search"}
	// Commands that take any number of arguments, of any kind: the status for a wrong
	// one.
	wrong := map[string]int{"help": 2, "setup": 2, "add": 2, "index": 2}
	_, all := tree()
	for _, c := range all {
		name := strings.Join(words(c), " ")
		t.Run(name, func(t *testing.T) {
			if c.Example == "" || c.Short == "" {
				t.Errorf("%q has no example, or is not described", name)
			}
			if e := ran(t, append(words(c), "--help")...); e.code != 0 || e.err != "" || !strings.Contains(e.out, "\nUsage:\n") || !strings.Contains(e.out, "\nExamples:\n") {
				t.Errorf("%s --help = %+v, want help on standard output and 0", name, e)
			}
			if e := ran(t, append(words(c), "--no-such-flag")...); !e.isMisuse() || !strings.Contains(e.err, "unknown flag: --no-such-flag") {
				t.Errorf("%s --no-such-flag = %+v, want misuse", name, e)
			}
			least, most := arguments(c)
			if name == "setup" { // it checks each of any number of arguments
				most = -1
			}
			if least > 0 {
				if e := ran(t, words(c)...); !e.isMisuse() || !strings.Contains(e.err, " needs ") {
					t.Errorf("%s = %+v, want misuse that says what it needs", name, e)
				}
			} else if !slices.Contains(skip, name) {
				if e := ran(t, words(c)...); e.code != bare[name] || e.code != 0 && e.out != "" {
					t.Errorf("%s = %+v, want %d", name, e, bare[name])
				}
			}
			switch {
			case most >= 0:
				args := append(words(c), slices.Repeat([]string{"no-such-thing"}, most+1)...)
				if e := ran(t, args...); !e.isMisuse() || !strings.Contains(e.err, "unknown ") {
					t.Errorf("%q = %+v, want misuse", args, e)
				}
			case slices.Contains(skip, name) && wrong[name] == 0:
			default:
				want := max(wrong[name], 1)
				if e := ran(t, append(words(c), "no-such-thing")...); e.code != want || e.err == "" || e.out != "" && name != "validate" { // validate prints its findings
					t.Errorf("%s no-such-thing = %+v, want %d and an error", name, e, want)
				}
			}
		})
	}
}

// The shell completes every argument and every flag's value, except those that only
// the person can know.
func TestEverythingCompletes(t *testing.T) {
	free := []string{ // text that only the person knows
		"approvals approve --set", "new --description", "new", "setup --name",
		"call --arg", "call --args", "call --context",
		"approvals --server", "approvals approve --server", "approvals deny --server", "approvals list --server", "approvals show --server",
	}
	files := []string{"convert", "validate", "add"} // the shell completes files by itself
	_, all := tree()
	for _, c := range all {
		name := strings.Join(words(c), " ")
		if _, most := arguments(c); most != 0 && c.ValidArgsFunction == nil && len(c.ValidArgs) == 0 && !slices.Contains(free, name) && !slices.Contains(files, name) {
			t.Errorf("%s: its arguments are not completed", name)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			_, known := c.GetFlagCompletionFunc(f.Name)
			_, file := f.Annotations[cobra.BashCompFilenameExt]
			_, folder := f.Annotations[cobra.BashCompSubdirsInDir]
			if f.NoOptDefVal == "" && !known && !file && !folder && !slices.Contains(free, strings.TrimSpace(name+" --"+f.Name)) {
				t.Errorf("%s --%s: its value is not completed", name, f.Name)
			}
		})
	}
}

// Commands that print facts also print them as JSON, in a documented shape.
func TestJSONHasShapes(t *testing.T) {
	a, all := tree()
	for _, c := range all {
		name := strings.Join(words(c), " ")
		if _, ok := a.ShapeOf(c); ok != (c.Flags().Lookup("json") != nil) {
			t.Errorf("%s: --json and its shape do not go together; use cli.JSONFlag", name)
		}
		s, _ := a.ShapeOf(c)
		for _, w := range s.With {
			if c.Flags().Lookup(strings.TrimPrefix(w.Flag, "--")) == nil {
				t.Errorf("%s: has a shape for %s, which it does not take", name, w.Flag)
			}
		}
	}
}
