package scan

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/frontmatter"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// tool checks a declared tool: its command and the permissions it asks for. Its texts
// are checked with the file that declares it.
func (s *scanner) tool(t *tools.Tool, below string) {
	say := func(rule string, severity findings.Severity, quote string) {
		s.Add(findings.Hit{Rule: rule, Severity: severity, Path: below + t.File, Line: t.Line, Tool: t.Name, Quote: quote, Matched: t.Definition()})
	}
	if t.Policy.Network == tools.NetworkFull {
		say(ruleToolNetwork, info, "network: full")
	}
	if t.Policy.Network == tools.NetworkHosts {
		say(ruleToolNetwork, info, "network: "+t.Policy.Reach())
	}
	c := t.Command
	if c == nil {
		return
	}
	args := make([]string, len(c.Args))
	for i, a := range c.Args {
		args[i] = a.String()
	}
	line := strings.Join(append([]string{c.Program}, args...), " ")
	if strings.ContainsFunc(c.Program, func(r rune) bool { return r >= 0x80 }) {
		say(ruleToolLookalike, high, fmt.Sprintf("%+q", c.Program))
	}
	if c.Cwd == tools.CwdProject && !t.Policy.ReadOnly {
		say(ruleToolProject, info, "cwd: project")
	} else if strings.HasPrefix(c.Cwd, "/") || strings.HasPrefix(c.Cwd, "~") {
		say(ruleToolOutside, medium, "cwd: "+c.Cwd)
	}
	program := programName(c.Program)
	inner, own := started(program, args)
	if i := codeArgument(inner, args[own:]); i >= 0 {
		i += own
		if names := c.Args[i].Names(); len(names) > 0 {
			say(ruleToolInjection, high, line)
		} else {
			say(ruleToolCode, medium, line)
		}
		s.argv(t, below, args[i])
	}
	s.argv(t, below, line)
	switch program {
	case "sudo", "doas", "su", "pkexec", "runas", "chroot", "nsenter", "unshare":
		say(ruleToolRoot, high, line)
	}
	if downloads(inner, args[own:]) {
		say(ruleToolDownload, medium, line)
	}
	if t.Policy.DeclaresReadOnly && t.Policy.ReadOnly && changesThings(inner, args[own:]) {
		say(ruleToolReadOnly, high, line)
	}
	for _, word := range append([]string{c.Program}, args...) {
		if leadsOut(word, word == c.Program) {
			say(ruleToolOutside, medium, word)
			break
		}
	}
	for _, name := range sortedKeys(c.Env) {
		if isLoader(name) || redact.SensitiveName(name) {
			say(ruleToolLoader, high, name+"="+c.Env[name].String())
		}
	}
}

// refused reports problems of an invalid declaration. This program does not serve such
// a tool, but others do.
func (s *scanner) refused(d diag.Diagnostic, below string) {
	rule := ""
	switch d.Code {
	case tools.CodePlaceholderInShell:
		rule = ruleToolInjection
	case tools.CodeEnvForbidden:
		rule = ruleToolLoader
	default:
		return
	}
	// There is no valid tool to hash, so an acceptance covers the whole file.
	src, err := s.root.ReadAll(below+d.File, maxText)
	if err != nil {
		s.incomplete(below+d.File, "the file cannot be read: "+cause(err))
		return
	}
	sum := sha256.Sum256(src)
	s.Add(findings.Hit{Rule: rule, Severity: high, Path: below + d.File, Line: d.Line, Quote: d.Message, Matched: append(sum[:], d.Pointer...)})
}

// argv looks for attacks in the command that a tool runs.
func (s *scanner) argv(t *tools.Tool, below, line string) {
	text := normal(line)
	u := &unit{zone: code, text: text, offsets: []int{0}, lines: []int{t.Line}, tool: t.Name}
	s.search.find(u, func(p *pattern, from, to int, severity findings.Severity) {
		if p.rule == "dynamic-exec" || p.rule == "as-root" || p.prompt || p.sign != noSign {
			return // the rules about tools cover this
		}
		s.Add(findings.Hit{Rule: p.rule, Severity: severity, Path: below + t.File, Line: t.Line, Tool: t.Name, Quote: line, Matched: t.Definition()})
	})
}

// programName returns the bare name of a program.
func programName(program string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(program, `\`, "/")))
	return strings.TrimSuffix(name, ".exe")
}

// started returns the program that a command finally starts, and how many arguments
// come before its own: env NAME=VALUE timeout 5 sh -c …
func started(program string, args []string) (string, int) {
	at := 0
	for slices.Contains([]string{"env", "nice", "timeout", "nohup", "busybox", "xargs", "time", "stdbuf", "setsid", "sudo", "doas"}, program) {
		for at < len(args) && (strings.HasPrefix(args[at], "-") || strings.Contains(args[at], "=") || strings.Trim(args[at], "0123456789.smhd") == "") {
			at++
		}
		if at == len(args) {
			break
		}
		program = programName(args[at])
		at++
	}
	return program, at
}

// codeArgument returns the index of the argument that is code for an interpreter, or
// -1.
func codeArgument(program string, args []string) int {
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

// downloads reports whether a program fetches another program when it runs.
func downloads(program string, args []string) bool {
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

// changesThings reports whether a command removes or changes something, whatever its
// arguments are at the end.
func changesThings(program string, args []string) bool {
	switch program {
	case "rm", "rmdir", "mv", "dd", "shred", "truncate", "chmod", "chown", "mkfs", "kill", "killall", "pkill", "tee", "touch", "mkdir", "ln", "install", "unlink", "shutdown", "reboot", "del":
		return true
	case "sed", "perl":
		return slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-i") || a == "--in-place" })
	case "find":
		return slices.Contains(args, "-delete")
	case "git":
		for _, a := range args {
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

// leadsOut reports whether a word of a command is a path that is specific to one
// machine. Programs in the usual folders, and files that every system has, are not.
func leadsOut(word string, isProgram bool) bool {
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

// isLoader reports whether a variable decides which code a program loads.
func isLoader(name string) bool {
	upper := strings.ToUpper(name)
	return strings.HasPrefix(upper, "LD_") || strings.HasPrefix(upper, "DYLD_") || strings.HasPrefix(upper, "GIT_CONFIG") ||
		slices.Contains([]string{
			"PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "NODE_OPTIONS", "NODE_PATH", "BASH_ENV", "ENV", "PERL5OPT", "PERL5LIB", "PERLLIB", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
			"CLASSPATH", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_EXEC_PATH", "GIT_ASKPASS", "SSH_ASKPASS", "PAGER", "EDITOR", "VISUAL", "BROWSER", "PROMPT_COMMAND", "PS4", "IFS", "SHELLOPTS", "GCONV_PATH", "HOSTALIASES",
			"PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "NPM_CONFIG_REGISTRY", "GOPROXY", "GOFLAGS", "RUSTC_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE",
		}, upper)
}

// loose checks the file of a tool that is itself a pack.
func (s *scanner) loose(dir *packfs.Dir, name string) {
	s.toolFiles[name] = true
	s.names++
	s.name(name, name, false)
	s.file(dir, name, name)
}

// keys checks the values of the frontmatter.
func (s *scanner) keys(f *file, doc *frontmatter.Document) {
	node := doc.Node()
	if wide := wideTools(doc.AllowedTools); wide != "" {
		line := doc.KeyLine("allowed-tools")
		s.report(f, findings.Hit{Rule: ruleAllowedTools, Severity: low, Line: line, Quote: "allowed-tools: " + wide, Matched: []byte(doc.AllowedTools)})
	}
	if line := doc.KeyLine("hooks"); line > 0 {
		s.report(f, findings.Hit{Rule: ruleHooks, Severity: medium, Line: line, Quote: "hooks:"})
	}
	steps := 0
	var walk func(n *yaml.Node, top string)
	walk = func(n *yaml.Node, top string) {
		if steps++; steps > maxEntries {
			return
		}
		switch n.Kind {
		case yaml.ScalarNode:
			z := meta
			switch top {
			case "hooks":
				z = code
			case "allowed-tools", "allowedTools", "tools", "disallowed-tools":
				return // it names tools
			}
			var j joiner
			for i, line := range strings.Split(n.Value, "\n") {
				at := n.Line
				if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
					at += i + 1
				}
				j.add(normal(strings.TrimSpace(line)), at)
			}
			f.units = append(f.units, j.take(z))
		case yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				key := top
				if key == "" {
					key = n.Content[i].Value
				}
				walk(n.Content[i+1], key)
			}
		default:
			for _, c := range n.Content {
				walk(c, top)
			}
		}
	}
	walk(node, "")
	if steps > maxEntries {
		s.incomplete(f.path, "the frontmatter has too many values")
	}
}

// wideTools returns the entries of allowed-tools that allow everything: all tools, or
// a shell with no command or with one that can be anything.
func wideTools(allowed string) string {
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

// json makes a unit of each text in a JSON value, after decoding escapes. It reports
// whether the file is JSON.
func (f *file) json(src []byte, z zone) bool {
	root, err := strictjson.Parse(src)
	if err != nil {
		return false
	}
	begins := []int{0}
	for i, c := range src {
		if c == '\n' {
			begins = append(begins, i+1)
		}
	}
	var walk func(n *strictjson.Node)
	walk = func(n *strictjson.Node) {
		switch n.Kind {
		case strictjson.Text:
			f.value(n.Text, sort.SearchInts(begins, n.Start+1), z)
		case strictjson.Object:
			for _, m := range n.Members {
				if strings.ContainsAny(m.Key, " \u200b") || len(m.Key) > 40 {
					f.value(m.Key, sort.SearchInts(begins, m.Start+1), z)
				}
				walk(m.Value)
			}
		case strictjson.List:
			for _, item := range n.Items {
				walk(item)
			}
		}
	}
	walk(root)
	return true
}

func (f *file) value(s string, line int, z zone) {
	text := normal(strings.Join(strings.Fields(s), " "))
	f.units = append(f.units, unit{zone: z, text: text, offsets: []int{0}, lines: []int{line}})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
