// Package argv says what the command of a tool does, as far as its words show: which
// program it starts in the end, which argument is code, whether it downloads a program,
// changes something, or leads out of the pack.
//
// It looks up no program and reads no file. Package scan decides what is a finding.
package argv

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Program returns the bare name of a program.
func Program(program string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(program, `\`, "/")))
	return strings.TrimSuffix(name, ".exe")
}

// Started returns the program that a command finally starts, and how many arguments
// come before its own: env NAME=VALUE timeout 5 sh -c …
func Started(program string, args []string) (string, int) {
	at := 0
	for slices.Contains([]string{"env", "nice", "timeout", "nohup", "busybox", "xargs", "time", "stdbuf", "setsid", "sudo", "doas"}, program) {
		for at < len(args) && (strings.HasPrefix(args[at], "-") || strings.Contains(args[at], "=") || strings.Trim(args[at], "0123456789.smhd") == "") {
			at++
		}
		if at == len(args) {
			break
		}
		program = Program(args[at])
		at++
	}
	return program, at
}

// CodeArgument returns the index of the argument that is code for an interpreter, or
// -1.
func CodeArgument(program string, args []string) int {
	flags := ""
	switch {
	case slices.Contains([]string{"sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "csh", "tcsh"}, program):
		flags = "c"
	case strings.HasPrefix(program, "python") || strings.HasPrefix(program, "pypy"):
		flags = "c"
	case program == "node" || program == "bun":
		flags = "ep"
	case program == "perl" || program == "ruby" || program == "lua" || program == "osascript" || strings.HasPrefix(program, "rscript"):
		flags = "eE"
	case program == "php":
		flags = "r"
	case program == "pwsh" || program == "powershell":
		for i, a := range args {
			if is := strings.ToLower(a); i+1 < len(args) && (strings.HasPrefix("-command", is) && len(is) > 1 || strings.HasPrefix("-encodedcommand", is) && len(is) > 1) {
				return i + 1
			}
		}
		return -1
	case program == "cmd":
		for i, a := range args {
			if is := strings.ToLower(a); i+1 < len(args) && (is == "/c" || is == "/k") {
				return i + 1
			}
		}
		return -1
	case program == "deno":
		if len(args) > 1 && args[0] == "eval" {
			return 1
		}
		return -1
	default:
		return -1
	}
	for i, a := range args {
		switch {
		case a == "--eval" || a == "--print" || a == "--command":
			if i+1 < len(args) {
				return i + 1
			}
		case strings.HasPrefix(a, "--eval=") || strings.HasPrefix(a, "--command="):
			return i
		case strings.HasPrefix(a, "--"):
		case strings.HasPrefix(a, "-") && strings.ContainsAny(a[1:], flags):
			if i+1 < len(args) && strings.IndexAny(a[1:], flags) == len(a)-2 {
				return i + 1
			}
			return i // -c'code', in one argument
		case !strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+"):
			return -1 // a file: the following arguments are for that
		}
	}
	return -1
}

// Downloads reports whether a program fetches another program when it runs.
func Downloads(program string, args []string) bool {
	first := ""
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			first = a
			break
		}
	}
	switch program {
	case "npx", "bunx", "uvx", "pnpx":
		return !pinned().MatchString(first)
	case "pipx", "uv", "pnpm", "yarn", "npm", "bun", "deno":
		second := ""
		if i := slices.Index(args, first); i >= 0 && i+1 < len(args) {
			second = args[i+1]
		}
		return slices.Contains([]string{"dlx", "exec", "x"}, first) && program != "uv" || program == "uv" && first == "tool" && second == "run" || program == "pipx" && first == "run" || program == "deno" && first == "run" && slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "http") || strings.HasPrefix(a, "npm:") })
	case "go":
		return first == "run" && slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "@") && !pinned().MatchString(a) })
	case "docker", "podman":
		return first == "run" && !slices.ContainsFunc(args, func(a string) bool { return strings.Contains(a, "@sha256:") })
	}
	return false
}

// pinned matches a package with a fixed version.
var pinned = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`.@v?\d+\.\d+|==\d`) })

// Changes reports whether a command removes or changes something, whatever its
// arguments are at the end.
func Changes(program string, args []string) bool {
	switch program {
	case "rm", "rmdir", "mv", "dd", "shred", "truncate", "chmod", "chown", "mkfs", "kill", "killall", "pkill", "tee", "touch", "mkdir", "ln", "install", "unlink", "shutdown", "reboot", "del":
		return true
	case "sed", "perl":
		return slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-i") || a == "--in-place" })
	case "find":
		return slices.Contains(args, "-delete")
	case "git":
		for i := 0; i < len(args); i++ {
			a := args[i]
			if slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env"}, a) {
				i++ // its value
				continue
			}
			if strings.HasPrefix(a, "-") {
				continue
			}
			return slices.Contains([]string{"push", "commit", "reset", "clean", "checkout", "merge", "rebase", "rm", "add", "restore", "apply", "am", "cherry-pick"}, a)
		}
	case "kubectl", "terraform", "tofu", "helm":
		return slices.ContainsFunc(args, func(a string) bool {
			return slices.Contains([]string{"apply", "delete", "destroy", "install", "uninstall", "upgrade", "patch", "drain", "scale"}, a)
		})
	case "gh":
		return slices.ContainsFunc(args, func(a string) bool {
			return slices.Contains([]string{"create", "delete", "merge", "close", "edit", "comment"}, a)
		})
	case "curl":
		for i, a := range args {
			if (a == "-X" || a == "--request") && i+1 < len(args) && slices.Contains([]string{"POST", "PUT", "DELETE", "PATCH"}, strings.ToUpper(args[i+1])) {
				return true
			}
			if strings.HasPrefix(a, "-d") || strings.HasPrefix(a, "--data") || a == "-T" || a == "--upload-file" || a == "-F" || a == "--form" {
				return true
			}
		}
	}
	return false
}

// LeadsOut reports whether a word of a command is a path that is specific to one
// machine. Programs in the usual folders, and files that every system has, are not.
func LeadsOut(word string, isProgram bool) bool {
	if i := strings.IndexByte(word, '='); i >= 0 && strings.HasPrefix(word, "-") {
		word = word[i+1:]
	}
	for _, p := range []string{"~/", "$HOME", "${HOME}", "/home/", "/root", "/Users/", "/etc/", "/var/", "/tmp/", "/proc/", "/sys/", "/mnt/", "/opt/", `C:\`, "%USERPROFILE%", "../"} {
		if strings.HasPrefix(word, p) {
			return !isProgram || p != "/opt/"
		}
	}
	return false
}

// IsLoader reports whether a variable decides which code a program loads.
func IsLoader(name string) bool {
	upper := strings.ToUpper(name)
	return strings.HasPrefix(upper, "LD_") || strings.HasPrefix(upper, "DYLD_") || strings.HasPrefix(upper, "GIT_CONFIG") ||
		slices.Contains([]string{
			"PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "NODE_OPTIONS", "NODE_PATH", "BASH_ENV", "ENV", "PERL5OPT", "PERL5LIB", "PERLLIB", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
			"CLASSPATH", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EXEC_PATH", "GIT_ASKPASS", "SSH_ASKPASS", "PAGER", "EDITOR", "VISUAL", "BROWSER", "PROMPT_COMMAND", "PS4", "IFS", "SHELLOPTS", "GCONV_PATH", "HOSTALIASES",
			"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "NPM_CONFIG_REGISTRY", "GOPROXY", "GOFLAGS", "RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
		}, upper)
}

// WideTools returns the entries of allowed-tools that allow everything: all tools, or
// a shell with no command or with one that can be anything.
func WideTools(allowed string) string {
	var wide []string
	for _, entry := range toolEntry().FindAllString(allowed, 200) {
		name, what, _ := strings.Cut(strings.TrimSuffix(entry, ")"), "(")
		what = strings.TrimSpace(what)
		first, _, _ := strings.Cut(strings.NewReplacer(":", " ").Replace(what), " ")
		switch {
		case entry == "*":
		case name != "Bash" && name != "Shell" && name != "PowerShell":
			continue
		case what == "" || what == "*" || what == ":*":
		case slices.Contains([]string{"sudo", "sh", "bash", "zsh", "eval", "env", "xargs", "python", "python3", "node", "perl", "ruby", "curl", "wget", "rm", "ssh", "nc"}, first) && strings.HasSuffix(what, "*"):
		default:
			continue
		}
		wide = append(wide, entry)
	}
	return strings.Join(wide, ", ")
}

var toolEntry = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\*|[A-Za-z_][\w-]*(\([^)]*\))?`) })
