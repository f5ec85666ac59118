package prompt

import (
	"strings"
	"testing"
)

// The first line of a form is the command in a code span that nothing in it can end.
// If it is cut, it shows the command's length.
func TestFormFirstLine(t *testing.T) {
	for command, want := range map[string]string{
		"git log":                           "`git log`",
		"sh -c 'a`b`'":                      "``sh -c 'a`b`'``",
		"echo '``'":                         "```echo '``'```",
		"echo '```'":                        "`echo '\\140\\140\\140'`",
		"x '" + strings.Repeat("`", 50):     "`x '" + strings.Repeat(`\140`, 12) + "… (203 characters)`",
		"git " + strings.Repeat("A", 5_000): "`git " + strings.Repeat("A", 46) + "… (5004 characters)`",
	} {
		got := (&Form{Card: Card{Title: "T", Command: command}}).first()
		if got != want || columns(got) > formWidth {
			t.Errorf("first() of %q = %q, want %q", cut(command, 40), got, want)
		}
	}
	if got := (&Form{Card: Card{Title: "Open the documents of pack x?"}}).first(); got != "Open the documents of pack x?" {
		t.Errorf("first() without a command = %q", got)
	}
}

// However many marks there are, all dangerous ones are on the second line, and the
// ones left out are counted.
func TestFormMatters(t *testing.T) {
	f := &Form{Card: Card{Marks: []Mark{
		{RoleTrust, "not trusted", Danger}, {RoleChange, "changed since your answer of 2 January 2006, 15:04", Danger},
		{RoleHidden, "hidden text", Danger}, {RoleNetwork, "network not blocked", Danger},
		{RoleSandbox, "partly confined", Notice}, {RoleWrites, "changes the project and 12 folders", Notice},
	}}}
	const want = "NOT TRUSTED, CHANGED, HIDDEN TEXT, NETWORK NOT BLOCKED, and 2 more"
	if got := f.matters(); got != want || columns(marker+" "+got) > formWidth {
		t.Errorf("matters() = %q, want %q", got, want)
	}
	f.Marks = f.Marks[1:2]
	if got := f.matters(); got != "CHANGED since your answer" {
		t.Errorf("matters() = %q", got)
	}
}
