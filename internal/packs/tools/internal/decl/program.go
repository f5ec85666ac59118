package decl

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// envForbidden returns the rule that forbids packs to set the variable, or "". It ignores
// letter case, as Windows does, and as programs do that read http_proxy.
func envForbidden(name string) string {
	name = strings.ToUpper(name)
	exact := []string{
		// Decide which program runs, and which programs it runs.
		"PATH", "HOME", "SHELL", "PATHEXT", "COMSPEC", "USERPROFILE", "APPDATA", "LOCALAPPDATA",
		"PAGER", "MANPAGER", "EDITOR", "VISUAL", "FCEDIT", "BROWSER", "LESS", "LESSOPEN", "LESSCLOSE", "LESSKEY", "LESSKEYIN",
		"SUDO_EDITOR", "SUDO_ASKPASS", "SSH_ASKPASS", "MAKEFLAGS", "MAKEFILES", "GNUMAKEFLAGS", "CONFIG_SITE", "CONFIG_SHELL",
		"TAR_OPTIONS", "RSYNC_RSH", "CVS_RSH", "SVN_SSH",
		// Decide where programs write.
		"TMPDIR", "TMP", "TEMP",
		// Make interpreters and compilers run something first, or search elsewhere.
		"NODE_OPTIONS", "NODE_PATH", "RUBYOPT", "RUBYLIB", "PERLLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
		"CLASSPATH", "GOFLAGS", "GOENV", "GOROOT", "GOTOOLDIR", "GOTOOLCHAIN", "RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER",
		"LUA_INIT", "LUA_PATH", "LUA_CPATH", "PHPRC", "PHP_INI_SCAN_DIR", "R_PROFILE", "R_PROFILE_USER", "R_ENVIRON", "R_ENVIRON_USER",
		"AWKPATH", "AWKLIBPATH", "VIMINIT", "EXINIT", "EMACSLOADPATH", "DOTNET_STARTUP_HOOKS",
		"BASH_ENV", "ENV", "IFS", "CDPATH", "FPATH", "PS4", "SHELLOPTS", "BASHOPTS", "ZDOTDIR", "PROMPT_COMMAND", "INPUTRC",
		// Loaded or read by the C library and similar code.
		"GCONV_PATH", "LOCPATH", "NLSPATH", "TERMINFO", "TERMINFO_DIRS", "TERMCAP", "GETCONF_DIR", "GLIBC_TUNABLES",
		"HOSTALIASES", "RESOLV_HOST_CONF", "RES_OPTIONS", "LOCALDOMAIN", "TZDIR", "GIO_EXTRA_MODULES", "GIO_MODULE_DIR", "GTK_PATH", "QT_PLUGIN_PATH",
		// Decide whom programs trust.
		"OPENSSL_CONF", "OPENSSL_CONF_INCLUDE", "OPENSSL_MODULES", "OPENSSL_ENGINES", "SSL_CERT_FILE", "SSL_CERT_DIR", "SSLKEYLOGFILE",
		"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "CURL_HOME", "WGETRC", "NETRC", "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "PIP_CONFIG_FILE",
		// Lead to the user's own credentials and configuration.
		"SSH_AUTH_SOCK", "GNUPGHOME", "KUBECONFIG", "DOCKER_HOST", "DOCKER_CONFIG", "CONTAINER_HOST", "XAUTHORITY",
		"XDG_RUNTIME_DIR", "XDG_DATA_DIRS", "XDG_DATA_HOME",
	}
	if slices.Contains(exact, name) {
		return name
	}
	for _, prefix := range []string{
		"LD_", "DYLD_", "MALLOC_", "BASH_FUNC_", "PERL5", "GIT_", "DBUS_", "XDG_CONFIG_", "NPM_CONFIG_", "CORECLR_", "COR_", "COMPLUS_",
		"AWS_", "OPENAI_", "ANTHROPIC_", "PACKS_", "GIBBERISH_",
	} {
		if strings.HasPrefix(name, prefix) {
			return prefix + "*"
		}
	}
	if strings.HasPrefix(name, "PYTHON") && !slices.Contains([]string{"PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONUTF8", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE"}, name) {
		return "PYTHON*"
	}
	for _, suffix := range []string{"_PROXY", "_TOKEN", "_KEY", "_SECRET"} {
		if strings.HasSuffix(name, suffix) {
			return "*" + suffix
		}
	}
	return ""
}

// ValidEnvName reports whether name can be an environment variable.
func ValidEnvName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || i > 0 && '0' <= c && c <= '9') {
			return false
		}
	}
	return name != ""
}

// checkProgram returns what is wrong with a program name, and what to write instead.
func checkProgram(program string) (problem, hint string) {
	const inPack = "write ./PATH for a program of the pack, a bare name for one of the user's"
	switch {
	case strings.TrimSpace(program) == "":
		return "program is empty", inPack
	case strings.ContainsFunc(program, unicode.IsControl):
		return fmt.Sprintf("program %q has a control character", program), inPack
	case strings.HasPrefix(program, "-"):
		return fmt.Sprintf("program %q begins with -", program), inPack
	case strings.HasPrefix(program, "./"):
		depth := 0
		for part := range strings.SplitSeq(program, "/") {
			switch part {
			case "..":
				depth--
			case ".", "":
			default:
				depth++
			}
			if depth < 0 || strings.Contains(part, `\`) {
				return fmt.Sprintf("program %q is not inside the pack", program), inPack
			}
		}
		if depth == 0 || strings.HasSuffix(program, "/") {
			return fmt.Sprintf("program %q is a folder", program), inPack
		}
		return "", ""
	case strings.HasPrefix(program, "/") || isWindowsPath(program):
		return "", ""
	case strings.ContainsAny(program, `/\`):
		return fmt.Sprintf("program %q is neither a name, nor an absolute path, nor inside the pack", program), inPack
	case strings.ContainsFunc(program, unicode.IsSpace):
		return fmt.Sprintf("program %q has spaces in it", program), "give each argument as a string of its own in args"
	}
	return "", ""
}

func isWindowsPath(s string) bool {
	return len(s) > 2 && s[1] == ':' && (s[2] == '\\' || s[2] == '/') &&
		('a' <= s[0] && s[0] <= 'z' || 'A' <= s[0] && s[0] <= 'Z')
}
