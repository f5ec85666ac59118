package program

import (
	"strings"
	"testing"
)

func TestWindowsNames(t *testing.T) {
	for _, name := range []string{
		"git", "git.exe", "python3.12", "node", ".hidden", "a.b.c", "Ünïcode", "名前.exe", "com", "com10", "console", "nullify.exe", "lpt", "a b.exe",
		`C:\Program Files\Git\bin\git.exe`, "C:/tools/jq.exe", `d:\x`, "./tools/run.exe", `.\x.exe`, "../x", "my.bat.exe",
	} {
		if got := windowsNameProblem(name); got != "" {
			t.Errorf("windowsNameProblem(%q) = %q, want none", name, got)
		}
	}
	const (
		script  = "only .exe"
		colon   = "colon"
		ending  = "dot or a space"
		device  = "device"
		network = "another computer"
		char    = "control characters"
		unicode = "Unicode"
	)
	for _, c := range []struct{ name, want string }{
		{"build.bat", script},
		{"BUILD.CmD", script},
		{`C:\x\y.com`, script},
		{"./go.ps1", script},
		{"a.vbs", script},
		{"a.js", script},
		{"a.wsf", script},
		{"a.hta", script},
		{"a.msc", script},
		{"a.lnk", script},
		{"a.scr", script},
		{"x.exe.bat", script},
		{"run.bat.", ending},
		{"run.bat ", ending},
		{"run.bat. .", ending},
		{"./dir./x.exe", ending},
		{`C:\dir \x.exe`, ending},
		{"...", ending},
		{"x.exe:stream", colon},
		{"x.bat::$DATA", colon},
		{"C:x.exe", colon},
		{`C:\a:b\x.exe`, colon},
		{":", colon},
		{"nul", device},
		{"NUL.exe", device},
		{"con .exe", device},
		{"aux.tar.exe", device},
		{"./com1/x.exe", device},
		{"LPT9.exe", device},
		{"com¹.exe", device},
		{"CONIN$", device},
		{`C:\prn\x.exe`, device},
		{`\\server\share\x.exe`, network},
		{"//server/share/x.exe", network},
		{`/\server\share\x.exe`, network},
		{`\\.\pipe\x`, network},
		{`\\?\C:\x.exe`, network},
		{`a"b.exe`, char},
		{"a|b", char},
		{"a*", char},
		{"a?.exe", char},
		{"a\nb.exe", char},
		{"a\x00b", char},
		{"a\xffb.exe", unicode},
		{"a\xed\xa0\x80.exe", unicode}, // half of a surrogate pair, which file names there can have
	} {
		if got := windowsNameProblem(c.name); !strings.Contains(got, c.want) {
			t.Errorf("windowsNameProblem(%q) = %q, want one with %q", c.name, got, c.want)
		}
	}
}

func FuzzWindowsNames(f *testing.F) {
	for _, s := range []string{"a.exe", "a.bat ", "x:y", `C:\con`, "./a/../b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if windowsNameProblem(name) != "" {
			return
		}
		// An accepted name is the name of the file that Windows opens.
		rest := name
		if len(name) > 2 && name[1] == ':' {
			rest = name[2:]
		}
		trimmed := strings.TrimRight(strings.ToLower(rest), ". /\\")
		for _, ext := range []string{".bat", ".cmd", ".ps1", ".lnk"} {
			if strings.HasSuffix(trimmed, ext) {
				t.Errorf("windowsNameProblem(%q) = none, and Windows opens a %s", name, ext)
			}
		}
		if strings.ContainsRune(rest, ':') {
			t.Errorf("windowsNameProblem(%q) = none, with a colon", name)
		}
	})
}
