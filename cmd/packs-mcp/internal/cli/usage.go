package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/packs-mcp/packs-mcp/internal/packs/near"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// maxMeant is how many names a hint suggests.
const maxMeant = 3

// didYouMean returns a question that suggests the names nearest to a mistyped one;
// empty if none is near.
func didYouMean(name string, names []string) string {
	meant := near.Names(name, names, maxMeant)
	if len(meant) == 0 {
		return ""
	}
	return "did you mean " + listOr(meant) + "?"
}

// Meant returns hint, after a question that suggests the names nearest to a mistyped
// one, if there are any.
func Meant(name string, names []string, hint string) string {
	if meant := didYouMean(name, names); meant != "" {
		return meant + " " + hint
	}
	return hint
}

// listOr lists words: "a", "a or b", "a, b or c".
func listOr(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// seeHelp returns a hint that ends with where the command is explained. If hint is
// empty, it uses an example of the command.
func seeHelp(cmd *cobra.Command, hint string) string {
	see := fmt.Sprintf("see: %s --help", cmd.CommandPath())
	if hint == "" {
		hint = exampleOf(cmd)
	}
	if hint == "" {
		return see
	}
	return hint + " " + see
}

// exampleOf returns the first example of a command, without its explanation; empty if
// the command has none.
func exampleOf(cmd *cobra.Command) string {
	for line := range strings.Lines(cmd.Example) {
		example, _, _ := strings.Cut(strings.TrimSpace(line), "  #")
		if strings.HasPrefix(example, cmd.CommandPath()+" ") {
			return "for example: " + strings.TrimSpace(example) + ";"
		}
	}
	return ""
}

// Needs checks that a command gets from least to most arguments; -1 for most means
// any number. what describes them to a person: "a pack's id".
func Needs(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return &UsageError{Err: fmt.Errorf("%s needs %s", nameOf(cmd), what), Hint: seeHelp(cmd, "")}
		case most >= 0 && len(args) > most:
			return tooMany(cmd, args, most)
		}
		return nil
	}
}

// nameOf returns a command's name for people: "changes show".
func nameOf(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// tooMany returns an error about the first argument that a command does not take. If
// the command has subcommands, the argument was meant as one of them.
func tooMany(cmd *cobra.Command, args []string, most int) error {
	extra := args[most]
	err, hint := fmt.Errorf("unknown argument %q: %s takes no more than %d", extra, nameOf(cmd), most), ""
	switch {
	case cmd.HasAvailableSubCommands():
		err, hint = fmt.Errorf("unknown command %q for %q", extra, cmd.CommandPath()), didYouMean(extra, commandNames(cmd))
		if add, _, err := cmd.Find([]string{"add"}); hint == "" && err == nil && add != cmd && IsPath(extra) {
			hint = fmt.Sprintf("for a folder: %s %s;", add.CommandPath(), safetext.Line(extra))
		}
	case most == 0:
		err = fmt.Errorf("unknown argument %q: %s takes none", extra, nameOf(cmd))
	}
	return &UsageError{Err: err, Hint: seeHelp(cmd, hint)}
}

// commandNames returns the names of a command's subcommands.
func commandNames(cmd *cobra.Command) (names []string) {
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(append(names, c.Name()), c.Aliases...)
		}
	}
	return names
}

// Misuse turns the errors of an argument check into usage errors.
func Misuse(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		err := check(cmd, args)
		if err == nil {
			return nil
		}
		if len(args) == 0 {
			return &UsageError{Err: fmt.Errorf("%s needs %s", nameOf(cmd), needed(cmd.Use)), Hint: seeHelp(cmd, "")}
		}
		for most := range slices.Backward(args) {
			if check(cmd, args[:most]) == nil {
				return tooMany(cmd, args, most)
			}
		}
		return &UsageError{Err: err, Hint: seeHelp(cmd, "")}
	}
}

// needed returns in words what the first placeholder of a usage line stands for.
func needed(use string) string {
	_, rest, _ := strings.Cut(use, " ")
	placeholder, _, _ := strings.Cut(strings.Trim(rest, "[]"), " ")
	placeholder = strings.TrimSuffix(placeholder, "...")
	words := map[string]string{"ID": "an id", "PATH": "a path", "FILE": "a file", "NAME": "a name", "DIR": "a folder", "CODE": "a code", "PATH|ID": "a path or an id"}
	if word, ok := words[placeholder]; ok {
		return word
	}
	return placeholder
}

// flagError explains an error about a flag.
func flagError(cmd *cobra.Command, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if e.GetSpecifiedShortnames() != "" {
			return &UsageError{Err: fmt.Errorf("unknown flag: -%s", e.GetSpecifiedName()), Hint: seeHelp(cmd, "")}
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		})
		return &UsageError{
			Err:  fmt.Errorf("unknown flag: --%s", e.GetSpecifiedName()),
			Hint: seeHelp(cmd, didYouMean("--"+e.GetSpecifiedName(), names)),
		}
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		name, _ := pflag.UnquoteUsage(e.GetFlag())
		return &UsageError{Err: fmt.Errorf("--%s needs a value: %s", e.GetFlag().Name, name), Hint: seeHelp(cmd, "")}
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := e.GetFlag()
		hint := ""
		if one, ok := f.Value.(*choice); ok {
			hint = one.hint(e.GetValue())
		} else if f.Value.Type() == "int" {
			hint = "it must be a whole number;"
		}
		return &UsageError{Err: fmt.Errorf("--%s is %q", f.Name, e.GetValue()), Hint: seeHelp(cmd, hint)}
	}
	return &UsageError{Err: err, Hint: seeHelp(cmd, "")}
}

// A choice is the value of a flag that accepts only a few words.
type choice struct {
	to      *string
	allowed []string
}

// ChoiceVar adds a flag that accepts one of the allowed words, and completes them. If
// usage has no backquotes, the value is called WORD.
func ChoiceVar(cmd *cobra.Command, to *string, name, usual, usage string, allowed ...string) {
	addChoice(cmd, cmd.Flags(), to, name, usual, usage, allowed...)
}

func addChoice(cmd *cobra.Command, flags *pflag.FlagSet, to *string, name, usual, usage string, allowed ...string) {
	*to = usual
	flags.Var(&choice{to, allowed}, name, usage)
	_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(allowed, cobra.ShellCompDirectiveNoFileComp))
}

func (c *choice) String() string { return *c.to }

func (c *choice) Type() string { return "WORD" }

// errNoChoice is the error for any other word; flagError lists the allowed ones.
var errNoChoice = errors.New("it is none of the words")

func (c *choice) Set(word string) error {
	if !slices.Contains(c.allowed, word) {
		return errNoChoice
	}
	*c.to = word
	return nil
}

func (c *choice) hint(word string) string {
	return Meant(word, c.allowed, "it must be "+listOr(c.allowed)+";")
}
