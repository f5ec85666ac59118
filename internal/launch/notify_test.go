package launch

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

// hostile is text that escapes from any context in which it is not plain text.
const hostile = `<b>x</b> & "; do shell script "touch /tmp/x" -- $(id) '` + "`id`"

func TestNotifyPlan(t *testing.T) {
	const escaped = `&lt;b&gt;x&lt;/b&gt; &amp; "; do shell script "touch /tmp/x" -- $(id) '` + "`id`"
	for _, tc := range []struct {
		name, goos string
		there      []string
		want       []string
	}{
		{"Linux", "linux", []string{"/usr/bin/notify-send", "/usr/bin/busctl"},
			[]string{"/usr/bin/notify-send", "--app-name=packs-mcp", "--", "--title", escaped}},
		{"Linux without notify-send", "linux", []string{"/usr/bin/busctl"},
			[]string{"/usr/bin/busctl", "--user", "--quiet", "call", "--", "org.freedesktop.Notifications", "/org/freedesktop/Notifications",
				"org.freedesktop.Notifications", "Notify", "susssasa{sv}i", "packs-mcp", "0", "", "--title", escaped, "0", "0", "-1"}},
		{"NixOS", "linux", []string{"/run/current-system/sw/bin/notify-send"},
			[]string{"/run/current-system/sw/bin/notify-send", "--app-name=packs-mcp", "--", "--title", escaped}},
		{"macOS", "darwin", []string{"/usr/bin/osascript"},
			[]string{"/usr/bin/osascript", "-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run", "--", "--title", hostile}},
		{"nothing", "linux", nil, nil},
		{"nothing on macOS", "darwin", []string{"/usr/bin/notify-send"}, nil},
		{"nothing on Windows", "windows", nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			exists := func(name string) bool { return slices.Contains(tc.there, name) }
			got, add := notifyPlan(tc.goos, variable(tc.goos, nil), "--title", hostile, exists)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("notifyPlan differs (-want +got):\n%s", d)
			}
			if len(add) > 0 {
				t.Errorf("notifyPlan adds the variables %q", add)
			}
		})
	}
}

// PowerShell gets a script that never changes; the texts are variables.
func TestNotifyPlanWindows(t *testing.T) {
	exists := func(string) bool { return true }
	argv, add := notifyPlan("windows", variable("windows", nil), "t", hostile, exists)
	other, _ := notifyPlan("windows", variable("windows", nil), "x", "y", exists)
	if d := cmp.Diff(argv, other); d != "" {
		t.Errorf("the command depends on the texts:\n%s", d)
	}
	if want := []string{"PACKS_TOAST_TITLE=t", "PACKS_TOAST_TEXT=" + hostile}; !slices.Equal(add, want) {
		t.Errorf("the variables are %q, want %q", add, want)
	}
	b, err := base64.StdEncoding.DecodeString(argv[len(argv)-1])
	if err != nil {
		t.Fatal(err)
	}
	var units []uint16
	for i := 0; i+1 < len(b); i += 2 {
		units = append(units, uint16(b[i])|uint16(b[i+1])<<8)
	}
	script := string(utf16.Decode(units))
	for _, want := range []string{"CreateTextNode($env:PACKS_TOAST_TITLE)", "CreateTextNode($env:PACKS_TOAST_TEXT)"} {
		if !strings.Contains(script, want) {
			t.Errorf("the script lacks %s:\n%s", want, script)
		}
	}
}
