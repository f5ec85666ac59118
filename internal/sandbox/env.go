package sandbox

import (
	"maps"
	"runtime"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// EnvOptions holds the values that [BaseEnv] substitutes for the user's own.
type EnvOptions struct {
	Home    string   // HOME of the run; empty: no HOME
	Exclude []string // absolute folders kept off PATH: the pack and the workspace
}

// BaseEnv returns the part of the user's environment environ (KEY=value, as from
// os.Environ) that a run gets, by an allow-list: the language and time zone, the
// user's name, PATH as [program.FilterPath] leaves it, and the variables that Windows
// programs need. HOME is o.Home and TERM is "dumb". Everything else is left out,
// above all keys and tokens. The result is sorted by name, each name once.
func BaseEnv(environ []string, o EnvOptions) []string {
	env := []string{"TERM=dumb"}
	if o.Home != "" {
		env = append(env, "HOME="+o.Home)
		if runtime.GOOS == "windows" {
			env = append(env, "USERPROFILE="+o.Home, "APPDATA="+o.Home, "LOCALAPPDATA="+o.Home)
		}
	}
	var kept []string
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		switch key := envKey(name); {
		case !ok:
		case key == "PATH":
			// An empty PATH would mean the working folder to a shell.
			if path := program.FilterPath(value, o.Exclude); path != "" {
				kept = append(kept, "PATH="+path)
			}
		case key == "LANG", key == "TZ", key == "USER", slices.Contains(program.LocaleNames(), key),
			runtime.GOOS == "windows" && slices.Contains(windowsNeeds(), key):
			kept = append(kept, kv)
		}
	}
	return MergeEnv(kept, env)
}

// windowsNeeds returns, in upper case, the variables without which common Windows
// programs do not start.
func windowsNeeds() []string {
	return []string{
		"COMSPEC", "NUMBER_OF_PROCESSORS", "OS", "PATHEXT", "PROCESSOR_ARCHITECTURE", "PROGRAMDATA",
		"PROGRAMFILES", "PROGRAMFILES(X86)", "SYSTEMDRIVE", "SYSTEMROOT", "USERNAME", "WINDIR",
	}
}

// MergeEnv joins environments. A later value replaces an earlier one of the same
// name; the result is sorted by name. Entries without "=" are kept, for the runner to
// refuse. The result is never nil, because os/exec takes nil for the server's own
// environment.
func MergeEnv(layers ...[]string) []string {
	byName := map[string]string{}
	for _, layer := range layers {
		for _, kv := range layer {
			name, _, _ := strings.Cut(kv, "=")
			byName[envKey(name)] = kv
		}
	}
	env := make([]string, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		env = append(env, byName[name])
	}
	return env
}

// envKey returns name in the form in which the system compares it.
func envKey(name string) string {
	if runtime.GOOS == "windows" {
		return strings.ToUpper(name)
	}
	return name
}
