package places

import (
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestResolvePaths(t *testing.T) {
	for _, tc := range []struct {
		name    string
		goos    string
		environ []string
		want    Paths
	}{
		{"home", "linux", []string{"HOME=/home/ann"}, Paths{
			Home: "/home/ann", Config: "/home/ann/.config/packs-mcp/config.yaml", Packs: "/home/ann/.local/share/packs-mcp/packs", Sources: "/home/ann/.local/share/packs-mcp/sources",
			State: "/home/ann/.local/state/packs-mcp", Workspaces: "/home/ann/.local/share/packs-mcp/workspaces",
			Audit: "/home/ann/.local/state/packs-mcp/audit.jsonl", Run: "/home/ann/.local/state/packs-mcp/run",
			Copies: "/home/ann/.cache/packs-mcp/copies", Caches: "/home/ann/.cache/packs-mcp/caches", Index: "/home/ann/.cache/packs-mcp/index"}},
		{"XDG", "freebsd", []string{"HOME=/h", "XDG_CONFIG_HOME=/c", "XDG_DATA_HOME=/d", "XDG_STATE_HOME=/s", "XDG_CACHE_HOME=/k", "XDG_RUNTIME_DIR=/r"}, Paths{
			Home: "/h", Config: "/c/packs-mcp/config.yaml", Packs: "/d/packs-mcp/packs", Sources: "/d/packs-mcp/sources", State: "/s/packs-mcp",
			Workspaces: "/d/packs-mcp/workspaces", Audit: "/s/packs-mcp/audit.jsonl", Run: "/r/packs-mcp", Copies: "/k/packs-mcp/copies", Caches: "/k/packs-mcp/caches", Index: "/k/packs-mcp/index"}},
		{"relative XDG", "linux", []string{"HOME=/h", "XDG_CONFIG_HOME=c", "XDG_CACHE_HOME=k", "XDG_RUNTIME_DIR=r"}, Paths{
			Home: "/h", Config: "/h/.config/packs-mcp/config.yaml", Packs: "/h/.local/share/packs-mcp/packs", Sources: "/h/.local/share/packs-mcp/sources", State: "/h/.local/state/packs-mcp",
			Workspaces: "/h/.local/share/packs-mcp/workspaces", Audit: "/h/.local/state/packs-mcp/audit.jsonl", Run: "/h/.local/state/packs-mcp/run",
			Copies: "/h/.cache/packs-mcp/copies", Caches: "/h/.cache/packs-mcp/caches", Index: "/h/.cache/packs-mcp/index"}},
		{"own home", "linux", []string{"HOME=/h", "PACKS_MCP_HOME=~/p", "XDG_CONFIG_HOME=/c"}, Paths{
			Home: "/h", Config: "/h/p/config.yaml", Packs: "/h/p/packs", Sources: "/h/p/sources", State: "/h/p/state", Workspaces: "/h/p/workspaces",
			Audit: "/h/p/audit.jsonl", Run: "/h/p/run", Copies: "/h/p/copies", Caches: "/h/p/caches", Index: "/h/p/index"}},
		{"nothing but own home", "linux", []string{"PACKS_MCP_HOME=/data"}, Paths{
			Config: "/data/config.yaml", Packs: "/data/packs", Sources: "/data/sources", State: "/data/state", Workspaces: "/data/workspaces",
			Audit: "/data/audit.jsonl", Run: "/data/run", Copies: "/data/copies", Caches: "/data/caches", Index: "/data/index"}},
		{"macOS", "darwin", []string{"HOME=/Users/ann"}, Paths{
			Home: "/Users/ann", Config: "/Users/ann/Library/Application Support/packs-mcp/config.yaml",
			Packs: "/Users/ann/Library/Application Support/packs-mcp/packs", Sources: "/Users/ann/Library/Application Support/packs-mcp/sources", State: "/Users/ann/Library/Application Support/packs-mcp/state",
			Workspaces: "/Users/ann/Library/Application Support/packs-mcp/workspaces",
			Audit:      "/Users/ann/Library/Application Support/packs-mcp/audit.jsonl", Run: "/Users/ann/Library/Application Support/packs-mcp/run",
			Copies: "/Users/ann/Library/Caches/packs-mcp/copies", Caches: "/Users/ann/Library/Caches/packs-mcp/caches", Index: "/Users/ann/Library/Caches/packs-mcp/index"}},
		{"Windows", "windows", []string{`UserProfile=C:\Users\ann`, `AppData=D:\Roaming`}, Paths{
			Home: `C:\Users\ann`, Config: `D:\Roaming\packs-mcp\config.yaml`, Packs: `C:\Users\ann\AppData\Local\packs-mcp\packs`, Sources: `C:\Users\ann\AppData\Local\packs-mcp\sources`,
			State: `C:\Users\ann\AppData\Local\packs-mcp\state`, Workspaces: `C:\Users\ann\AppData\Local\packs-mcp\workspaces`,
			Audit: `C:\Users\ann\AppData\Local\packs-mcp\audit.jsonl`, Run: `C:\Users\ann\AppData\Local\packs-mcp\run`,
			Copies: `C:\Users\ann\AppData\Local\packs-mcp\copies`, Caches: `C:\Users\ann\AppData\Local\packs-mcp\caches`, Index: `C:\Users\ann\AppData\Local\packs-mcp\index`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := resolvePaths(Environment(tc.environ, tc.goos), tc.goos, "/", person{})
			if err != nil {
				t.Fatalf("ResolvePaths(%q, %q) = %v, want no error", tc.environ, tc.goos, err)
			}
			got.Runs, got.Others = nil, nil // see TestRunFolders and TestOtherFolders
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ResolvePaths(%q, %q) differs (-want +got):\n%s", tc.environ, tc.goos, diff)
			}
		})
	}
	for _, tc := range []struct {
		goos    string
		environ []string
		want    string
	}{
		{"linux", nil, "the home folder cannot be found: set PACKS_MCP_HOME, or HOME"},
		{"linux", []string{"HOME=relative"}, "the home folder cannot be found: set PACKS_MCP_HOME, or HOME"},
		{"windows", nil, "the home folder cannot be found: set PACKS_MCP_HOME, or USERPROFILE"},
		{"linux", []string{"PACKS_MCP_HOME=~/x"}, "PACKS_MCP_HOME: the home folder cannot be found: write the path in full, or set HOME"},
	} {
		if _, err := resolvePaths(Environment(tc.environ, tc.goos), tc.goos, "/", person{}); err == nil || err.Error() != tc.want {
			t.Errorf("ResolvePaths(%q, %q) = %v, want %v", tc.environ, tc.goos, err, tc.want)
		}
	}
}

// The terminal and a server find the same folders, though they have different
// variables.
func TestRunFolders(t *testing.T) {
	ann := person{home: "/home/ann", runtime: "/run/user/1000"}
	const inRuntime, inHome = "/run/user/1000/packs-mcp", "/home/ann/.local/state/packs-mcp/run"
	for _, tc := range []struct {
		name    string
		goos    string
		environ []string
		who     person
		want    []string // the first is that of a server
	}{
		{"a terminal", "linux", []string{"HOME=/home/ann", "XDG_RUNTIME_DIR=/run/user/1000"}, ann, []string{inRuntime, inHome}},
		{"few variables", "linux", []string{"HOME=/home/ann"}, ann, []string{inHome, inRuntime}},
		{"folders of its own", "linux", []string{"HOME=/snap/ann", "XDG_RUNTIME_DIR=/r", "XDG_STATE_HOME=/s"}, ann,
			[]string{"/r/packs-mcp", inRuntime, "/s/packs-mcp/run", "/snap/ann/.local/state/packs-mcp/run", inHome}},
		{"relative", "linux", []string{"HOME=/home/ann", "XDG_RUNTIME_DIR=r", "XDG_STATE_HOME=s"}, ann, []string{inHome, inRuntime}},
		{"nobody knows the user", "linux", []string{"HOME=/home/ann"}, person{}, []string{inHome}},
		{"kept apart", "linux", []string{"HOME=/home/ann", "XDG_RUNTIME_DIR=/run/user/1000", "PACKS_MCP_HOME=/data"}, ann, []string{"/data/run"}},
		{"macOS", "darwin", []string{"HOME=/Users/ann"}, person{home: "/Users/a"}, []string{
			"/Users/ann/Library/Application Support/packs-mcp/run", "/Users/a/Library/Application Support/packs-mcp/run"}},
		{"Windows", "windows", []string{`UserProfile=C:\Users\ann`, `LocalAppData=D:\Local`}, person{home: `C:\Users\ann`}, []string{
			`D:\Local\packs-mcp\run`, `C:\Users\ann\AppData\Local\packs-mcp\run`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := resolvePaths(Environment(tc.environ, tc.goos), tc.goos, "/", tc.who)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Runs); diff != "" || got.Run != tc.want[0] {
				t.Errorf("resolvePaths(%q) has the run folder %q and differs (-want +got):\n%s", tc.environ, got.Run, diff)
			}
		})
	}
}

// A server that is kept apart uses no other folder, and knows those that a run must not
// read.
func TestOtherFolders(t *testing.T) {
	ann := person{home: "/home/ann", runtime: "/run/user/1000"}
	for _, tc := range []struct {
		name    string
		goos    string
		environ []string
		who     person
		want    []string
	}{
		{"not kept apart", "linux", []string{"HOME=/home/ann"}, ann, nil},
		{"a terminal", "linux", []string{"PACKS_MCP_HOME=/data", "HOME=/home/ann", "XDG_RUNTIME_DIR=/run/user/1000"}, ann, []string{
			"/run/user/1000/packs-mcp", "/home/ann/.local/state/packs-mcp/run", "/home/ann/.local/state/packs-mcp"}},
		{"folders of its own", "linux", []string{"PACKS_MCP_HOME=/data", "HOME=/snap/ann", "XDG_STATE_HOME=/s", "XDG_RUNTIME_DIR=/r"}, ann, []string{
			"/r/packs-mcp", "/run/user/1000/packs-mcp", "/s/packs-mcp/run",
			"/snap/ann/.local/state/packs-mcp/run", "/home/ann/.local/state/packs-mcp/run", "/s/packs-mcp"}},
		{"no variables", "linux", []string{"PACKS_MCP_HOME=/data"}, ann, []string{
			"/run/user/1000/packs-mcp", "/home/ann/.local/state/packs-mcp/run", "/home/ann/.local/state/packs-mcp"}},
		{"no home folder", "linux", []string{"PACKS_MCP_HOME=/data"}, person{runtime: "/run/user/7"}, []string{"/run/user/7/packs-mcp"}},
		{"macOS", "darwin", []string{"PACKS_MCP_HOME=/data", "HOME=/Users/ann"}, person{}, []string{
			"/Users/ann/Library/Application Support/packs-mcp/run", "/Users/ann/Library/Application Support/packs-mcp/state"}},
		{"Windows", "windows", []string{`PACKS_MCP_HOME=D:\p`, `UserProfile=C:\Users\ann`}, person{}, []string{
			`C:\Users\ann\AppData\Local\packs-mcp\run`, `C:\Users\ann\AppData\Local\packs-mcp\state`}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := resolvePaths(Environment(tc.environ, tc.goos), tc.goos, "/", tc.who)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Others); diff != "" {
				t.Errorf("the other folders differ (-want +got):\n%s", diff)
			}
		})
	}
}

// What the system knows of the user stands in for the variable of the home
// folder.
func TestWithHome(t *testing.T) {
	home := personOf(runtime.GOOS).home
	if home == "" {
		t.Skip("this user has no home folder")
	}
	name := HomeName(runtime.GOOS) + "="
	own := name + t.TempDir()
	for _, tc := range []struct{ environ, want []string }{
		{nil, []string{name + home}},
		{[]string{"A=b"}, []string{"A=b", name + home}},
		{[]string{name + "relative"}, []string{name + "relative", name + home}},
		{[]string{own}, []string{own}},
	} {
		if diff := cmp.Diff(tc.want, WithHome(tc.environ, runtime.GOOS)); diff != "" {
			t.Errorf("WithHome(%q) differs (-want +got):\n%s", tc.environ, diff)
		}
	}
	if got := WithHome(nil, "plan9"); got != nil {
		t.Errorf("WithHome(nil) of another system = %q, want nothing", got)
	}
}
