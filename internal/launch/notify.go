package launch

import (
	"encoding/base64"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf16"
)

// ErrNoNotifier is returned where nothing can show a notification: no program
// that does so is at its usual place.
var ErrNoNotifier = errors.New("this system has no program that shows notifications")

// Notify shows a notification of the system and returns at once. environ is the
// user's whole environment, as from os.Environ; the variables of the user's session
// are added as for [Browser]. It cannot tell whether a person saw anything.
//
// Both texts are data to every program on the way: none of them reads markup,
// script or options in them. The programs are at fixed places, not on PATH.
func Notify(environ []string, title, text string) error {
	environ = withSession(environ)
	argv, add := notifyPlan(runtime.GOOS, variable(runtime.GOOS, environ), title, text, isFile)
	if argv == nil {
		return ErrNoNotifier
	}
	return start(append(slices.Clip(environ), add...), filepath.Dir(argv[0]), argv, windowless)
}

// notifyPlan returns the command that shows a notification, and the variables that it
// needs besides the user's; nil if there is none. exists reports whether a file exists.
func notifyPlan(goos string, env func(string) string, title, text string, exists func(string) bool) (argv, add []string) {
	switch goos {
	case "windows":
		program := systemRoot(env) + `\System32\WindowsPowerShell\v1.0\powershell.exe`
		if !exists(program) {
			return nil, nil
		}
		return []string{program, "-NoLogo", "-NoProfile", "-NonInteractive", "-EncodedCommand", encodeScript(toastScript)},
			[]string{toastTitle + "=" + title, toastText + "=" + text}
	case "darwin":
		const program = "/usr/bin/osascript"
		if !exists(program) {
			return nil, nil
		}
		// osascript passes what follows the script to it, as strings.
		return []string{program, "-e", "on run argv", "-e", "display notification (item 2 of argv) with title (item 1 of argv)", "-e", "end run", "--", title, text}, nil
	}
	if program := systemProgram("notify-send", exists); program != "" {
		// Desktops may read markup in the body, and only there.
		return []string{program, "--app-name=" + notifyName, "--", title, escapeMarkup(text)}, nil
	}
	if program := systemProgram("busctl", exists); program != "" {
		return []string{program, "--user", "--quiet", "call", "--", "org.freedesktop.Notifications", "/org/freedesktop/Notifications",
			"org.freedesktop.Notifications", "Notify", "susssasa{sv}i", notifyName, "0", "", title, escapeMarkup(text), "0", "0", "-1"}, nil
	}
	return nil, nil
}

// notifyName is what the desktop says sent the notification.
const notifyName = "packs-mcp"

func escapeMarkup(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// These variables pass texts to the script below.
const (
	toastTitle = "PACKS_TOAST_TITLE"
	toastText  = "PACKS_TOAST_TEXT"
)

// toastScript makes the texts nodes of the toast, so nothing parses them. A toast
// has to name a registered program; PowerShell is one.
const toastScript = `$ErrorActionPreference = 'Stop'
[void][Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime]
$toast = [Windows.UI.Notifications.ToastNotificationManager]::GetTemplateContent([Windows.UI.Notifications.ToastTemplateType]::ToastText02)
$nodes = $toast.GetElementsByTagName('text')
[void]$nodes.Item(0).AppendChild($toast.CreateTextNode($env:` + toastTitle + `))
[void]$nodes.Item(1).AppendChild($toast.CreateTextNode($env:` + toastText + `))
$name = '{1AC14E77-02E7-4E5D-B744-2EB1AE5198B7}\WindowsPowerShell\v1.0\powershell.exe'
[Windows.UI.Notifications.ToastNotificationManager]::CreateToastNotifier($name).Show([Windows.UI.Notifications.ToastNotification]::new($toast))
`

// encodeScript encodes a script as PowerShell's -EncodedCommand expects it, so
// that no quoting is involved.
func encodeScript(script string) string {
	var b []byte
	for _, u := range utf16.Encode([]rune(script)) {
		b = append(b, byte(u), byte(u>>8))
	}
	return base64.StdEncoding.EncodeToString(b)
}
