package program

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"
)

// interpreted lists the endings of files that Windows passes to an interpreter, which
// parses the command line again (BatBadBut), or opens with the registered program;
// and .com, which Windows tries before an .exe of the same name.
var interpreted = []string{
	".bat", ".cmd", ".com", ".cpl", ".hta", ".js", ".jse", ".lnk", ".msc", ".msi", ".pif",
	".ps1", ".psm1", ".reg", ".scr", ".url", ".vb", ".vbe", ".vbs", ".wsf", ".wsh",
}

// systemNameProblem says why no program on this system may be called name, or returns "".
// Windows hands files with some names to a command interpreter, and opens other files for
// some names.
func systemNameProblem(name string) string {
	if runtime.GOOS == "windows" {
		return windowsNameProblem(name)
	}
	return ""
}

// executableName returns the name of a program's file on this system.
func executableName(name string) string {
	if runtime.GOOS == "windows" && !strings.EqualFold(filepath.Ext(name), ".exe") {
		return name + ".exe"
	}
	return name
}

// windowsNameProblem says why no program on Windows may be called name, or returns "".
// The name may have folders. It does not check whether the file exists.
func windowsNameProblem(name string) string {
	rest := name
	if len(name) >= 3 && isLetter(name[0]) && name[1] == ':' && isSlash(name[2]) {
		rest = name[2:]
	}
	switch {
	case !utf8.ValidString(name):
		return "a name must be valid Unicode" // otherwise Windows would get a different name
	case len(name) >= 2 && isSlash(name[0]) && isSlash(name[1]):
		// Even checking that it exists would log in to that computer.
		return "a program on another computer, or named as a device, is not run"
	case strings.ContainsRune(rest, ':'):
		return "a name may not have a colon" // a file's other streams, or a drive's current folder
	case strings.ContainsAny(rest, `<>"|?*`) || strings.ContainsFunc(rest, func(r rune) bool { return r < ' ' }):
		return `a name may not have < > " | ? * or control characters`
	}
	last := ""
	for _, part := range strings.FieldsFunc(rest, func(r rune) bool { return r == '/' || r == '\\' }) {
		last = part
		if part == "." || part == ".." {
			continue
		}
		if strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") {
			return "a name may not end in a dot or a space" // Windows drops it
		}
		if windowsDevice(part) {
			return "the name is one of Windows' devices"
		}
	}
	if i := strings.LastIndexByte(last, '.'); i >= 0 && slices.Contains(interpreted, strings.ToLower(last[i:])) {
		return "only .exe programs can be started safely, no scripts or shortcuts; " +
			"name the interpreter as the program, and the script as its argument"
	}
	return ""
}

// windowsDevice reports whether Windows takes a part of a path for a device, whatever
// folder and ending it has.
func windowsDevice(part string) bool {
	base, _, _ := strings.Cut(part, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	number, ok := strings.CutPrefix(base, "COM")
	if !ok {
		number, ok = strings.CutPrefix(base, "LPT")
	}
	if !ok {
		return false
	}
	switch number {
	case "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³":
		return true
	}
	return false
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isSlash(c byte) bool { return c == '/' || c == '\\' }
