// Package launch starts programs that belong to the user or to this project, not
// to a pack: the user's browser on a local file, the system's program for
// notifications, a client's entry for a check, and the program beside this one that
// verifies signatures.
//
// It confines nothing, and cannot tell whether the person saw anything. Nothing from a
// pack decides which program starts, or its arguments: a program comes from the user's
// environment, from the system or from the folder of this one. The program that
// verifies signatures reads them from standard input. Package sandbox starts what packs
// and models run, through the gate.
package launch

import (
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// ErrNoDisplay is returned where a browser could show nothing: on a system with
// neither X11 nor Wayland, in the environment or in the user's session, and
// without BROWSER.
var ErrNoDisplay = errors.New("there is no display to open a browser on")

// ErrNoOpener is returned where xdg-open is at none of the system's places, and
// BROWSER is not set.
var ErrNoOpener = errors.New("xdg-open is not among the system's programs: install xdg-utils, or name a browser in BROWSER")

// Browser starts the user's browser on a file and returns at once. environ is
// the user's whole environment, as from os.Environ; the browser gets it. Where
// that has no display, the browser also gets the variables of the user's graphical
// session, if there is one.
//
// BROWSER names the programs to try, separated as in PATH. Each is split at
// spaces, without a shell; quotes keep words together, and %s stands for the
// file's address, which otherwise comes last. Without BROWSER, the system's own
// opener is used, at its fixed place and not from PATH. An error means that no program could be started.
func Browser(environ []string, file string) error {
	environ = withSession(environ)
	candidates, err := plan(environ, runtime.GOOS, file, isFile)
	if err != nil {
		return err
	}
	var failed []error
	for _, argv := range candidates {
		err := start(environ, filepath.Dir(file), argv, windowed)
		if err == nil {
			return nil
		}
		failed = append(failed, err)
	}
	return fmt.Errorf("starting a browser: %w", errors.Join(failed...))
}

// A console says whether a program of the console may show a window of its own.
// Only Windows opens one for it.
type console bool

const (
	windowed   console = true
	windowless console = false
)

// start starts a program that may outlive this one. If it ends first, Wait
// collects it. dir is its working folder: one that only the user or the system
// can change, since the folder that the server was started in may be someone
// else's project.
func start(environ []string, dir string, argv []string, c console) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = environ, dir
	detach(cmd, c)
	if err := cmd.Start(); err != nil {
		return err
	}
	// Nothing waits for this goroutine: it ends when the browser does.
	go func() { _ = cmd.Wait() }()
	return nil
}

// plan returns the commands to try, in order. exists reports whether a file exists.
func plan(environ []string, goos, file string, exists func(string) bool) ([][]string, error) {
	if !filepath.IsAbs(file) {
		return nil, fmt.Errorf("the file %q has no absolute path", file)
	}
	env := variable(goos, environ)
	address := fileURL(goos, file)
	if named := env("BROWSER"); named != "" {
		separator := ":"
		if goos == "windows" {
			separator = ";"
		}
		var all [][]string
		for entry := range strings.SplitSeq(named, separator) {
			if argv := command(entry, address); argv != nil {
				all = append(all, argv)
			}
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("BROWSER=%q names no program", named)
		}
		return all, nil
	}
	switch goos {
	case "windows":
		return [][]string{{systemRoot(env) + `\System32\rundll32.exe`, "url.dll,FileProtocolHandler", file}}, nil
	case "darwin":
		return [][]string{{"/usr/bin/open", file}}, nil
	}
	if env("DISPLAY") == "" && env("WAYLAND_DISPLAY") == "" {
		return nil, ErrNoDisplay
	}
	opener := systemProgram("xdg-open", exists)
	if opener == "" {
		return nil, ErrNoOpener
	}
	return [][]string{{opener, address}}, nil
}

// variable returns the function that looks up a variable in environ. If a name occurs
// more than once, the last value counts.
func variable(goos string, environ []string) func(name string) string {
	return func(name string) (value string) {
		for _, kv := range environ {
			if k, v, ok := strings.Cut(kv, "="); ok && (k == name || goos == "windows" && strings.EqualFold(k, name)) {
				value = v
			}
		}
		return value
	}
}

// systemRoot returns the Windows folder.
func systemRoot(env func(string) string) string {
	if root := env("SystemRoot"); filepath.IsAbs(root) {
		return root
	}
	return `C:\Windows`
}

// fileURL returns the URL of a file for a browser.
func fileURL(goos, file string) string {
	if goos == "windows" {
		file = "/" + strings.ReplaceAll(file, `\`, "/")
	}
	return (&url.URL{Scheme: "file", Path: file}).String()
}

// command turns one entry of BROWSER into a command; nil for an empty entry or
// one with an unclosed quote.
func command(entry, address string) []string {
	argv, ok := words(entry)
	if !ok || len(argv) == 0 {
		return nil
	}
	named := false
	for i := range argv {
		if i > 0 && strings.Contains(argv[i], "%s") {
			argv[i] = strings.ReplaceAll(argv[i], "%s", address)
			named = true
		}
	}
	if !named {
		argv = append(argv, address)
	}
	return argv
}

// words splits s at spaces and tabs outside quotes.
func words(s string) (argv []string, ok bool) {
	var word strings.Builder
	var quote rune // the open quote; 0 if none
	started := false
	for _, c := range s {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '"' || c == '\''):
			quote, started = c, true
		case quote == 0 && (c == ' ' || c == '\t'):
			if started {
				argv = append(argv, word.String())
				word.Reset()
				started = false
			}
		default:
			word.WriteRune(c)
			started = true
		}
	}
	if started {
		argv = append(argv, word.String())
	}
	return argv, quote == 0
}
