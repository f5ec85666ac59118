// Package config turns flags, environment and the configuration file into one
// value, or reports everything that is wrong with them, and where.
//
// Flags override the environment, the environment overrides the file, and the
// file overrides the defaults. Package config only reads: it does not create
// folders, check whether packs exist, or judge what its values mean to other
// packages. Only the command imports it; every other package has its own
// options.
package config

import (
	"log/slog"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/quota"
	"github.com/packs-mcp/packs-mcp/internal/rules"
)

// Config is the whole configuration. What [Load] returns is complete and
// checked: paths are absolute, numbers in their ranges.
type Config struct {
	File     string       // the file that was read; "" if there was none
	Paths    places.Paths // where things are by default
	Warnings []string     // what looks like a mistake, one sentence each

	Packs     []Root            // from flags, then from the environment, then from the file
	Compat    []string          // other programs whose packs are found, by priority; see CompatNames
	Mode      string            // selects which packs and tools are offered
	Project   string            // absolute; "": the git root of the working folder, if any
	ToolNames string            // Underscore or Dotted
	Expose    string            // ExposeTools or ExposeSkills
	Approval  Approval          //
	Rules     []rules.Rule      // from the file, in its order; all are checked
	Approvers []approvers.Rule  // who may allow calls, from the file
	Roles     Roles             //
	Sandbox   Sandbox           //
	Context   map[string]string // values that tools may use, by name
	Sources   Sources           //
	Limits    Limits            //
	HTTP      HTTP              //
	Audit     Audit             //
	Store     Store             //
	Log       Log               //
}

// Store says what several replicas of a server share.
type Store struct {
	URL         string // a nats or postgres URL, which may hold a password; "": nothing is shared
	Credentials string // absolute; a file of NATS credentials; "": none
	Key         string // one or two keys, a secret
	KeyFile     string // absolute; a file with such keys; "": none
}

// The values of Config.Expose.
const (
	ExposeTools  = "tools"  // the base tools, and the tools that a chat enables
	ExposeSkills = "skills" // also a tool for each attached pack, which opens it
)

// The values of Config.ToolNames.
const (
	Underscore = "underscore" // capability_packs_open_docs
	Dotted     = "dotted"     // capability_packs.open_docs
)

// Source says where a root was configured.
type Source string

// The sources, in order of priority.
const (
	FromFlag Source = "flag"
	FromEnv  Source = "environment"
	FromFile Source = "file"
)

// Root is a folder that holds packs.
type Root struct {
	Path   string // absolute
	Attach Attach
	Trust  string // TrustUser or TrustUntrusted; anything else is untrusted
	Source Source

	// Folders are relative to Path, and files to their folder; both use slashes.
	Entry map[string]string   // :: folder of a pack → its entry document
	Docs  map[string][]string // :: folder of a pack → documents shown with the entry document
}

// The values of Root.Trust.
const (
	TrustUser      = "user"
	TrustUntrusted = "untrusted"
)

// Attach says which packs of a root are attached at the start. For a root from
// flags or the environment that is all of them, since the user named the folder;
// for a root from the file, it is what the file says. The zero value is none.
type Attach struct {
	All bool
	IDs []string // pack ids; empty if All is set
}

// Approval configures who is asked, and for how long.
type Approval struct {
	Policy   string        // PolicyEveryCall, PolicyFirstRun or PolicyBalanced
	Channels []string      // ChannelElicitation, ChannelPage, ChannelTerminal, ChannelApp; at least one
	Prompts  string        // PromptsAuto, PromptsAllow or PromptsAsk
	Notify   bool          // the system shows a notification when a call waits that its client does not show
	Wait     time.Duration // how long a call waits for the answer, less than Pending; 0: as long as its client is known to wait
	Pending  time.Duration // how long a later answer is kept for the call
}

// The values of Approval.Policy: what is asked if no rule decides.
const (
	PolicyEveryCall = "every-call" // every call
	PolicyFirstRun  = "first-run"  // the first run of each tool, and everything untrusted
	PolicyBalanced  = "balanced"   // once about a pack, and every run that may do more than read
)

// The values of Approval.Channels: where a question is shown.
const (
	ChannelElicitation = "elicitation" // the client, if it can
	ChannelPage        = "page"        // the approval page in the browser
	ChannelTerminal    = "terminal"    // packs-mcp approvals
	ChannelApp         = "app"         // a card in the chat, of a client that shows MCP Apps and cannot ask
)

// The values of Approval.Prompts: which clients are believed when they say that
// a person chose a prompt.
const (
	PromptsAuto  = "auto"  // the client that started this program; none over HTTP
	PromptsAllow = "allow" // each
	PromptsAsk   = "ask"   // none
)

// Sandbox configures how programs are confined.
type Sandbox struct {
	Require    string        // RequireNone, RequirePartial or RequireFull
	TimeoutMax time.Duration // the maximum for a tool's own timeout
	Runner     string        // RunnerLocal or RunnerContainer
	Container  Containers    // of those that run in containers
	Runners    []Runner      // where some packs and tools run; the first that matches counts
	Grants     []Opening     // what tools may use of the user's, in the order of the file

	// Protect are patterns of names that no run changes until a person has seen
	// the change, in addition to those of package protect. Unprotect are
	// patterns of that package to leave out. Both can be set only in the file.
	Protect, Unprotect []string
}

// The values of Sandbox.Require: the confinement that a machine must support for
// any program to run.
const (
	RequireNone    = "none"
	RequirePartial = "partial"
	RequireFull    = "full"
)

// Limits bound what is read, shown and used. Sizes are in bytes.
type Limits struct {
	EntryDoc       int64 // an entry document
	Frontmatter    int64 // its frontmatter
	ToolsFile      int64 // a file that declares tools
	PackSize       int64 // all files of a pack together
	ToolsPerPack   int
	Description    int   // characters of a description that a model sees
	ReadPage       int64 // one page of a file, unless the call asks for another size
	ReadPageMax    int64 // the largest page that a call may ask for
	ReadFile       int64 // the largest file that is read
	Output         int64 // of one output stream of a run, head and tail together
	OutputMarkdown int64 // the same for a Markdown tool, once for the head and once for the tail
	OutputTotal    int64 // what a run may write to one stream before it is killed

	Timeout time.Duration // of a run whose tool sets none
	CPU     time.Duration // processor time of a run; 0: its timeout
	Memory  int64         // of a process

	MemoryTogether int64 // of all processes of a run; 0: none
	Processors     int   // that a run keeps busy; 0: any number

	Processes int   // of a run
	OpenFiles int   // of a process
	FileSize  int64 // of a file that a run writes
	Workspace int64 // of a workspace

	Layer      int64 // what a run may change of the user's folders, in bytes
	LayerNames int   // the same, in files, folders and links

	Cache      int64 // what a tool may keep between its runs, in bytes
	CacheNames int   // the same, in files, folders and links

	Held    int64         // changes that wait for the user, and data for undoing
	HeldAge time.Duration // how long these are kept

	Workspaces    int64         // of old chats, together
	WorkspacesAge time.Duration // how long these are kept unchanged

	EnabledTools int   // of a chat
	Runs         int   // of a chat at the same time
	Request      int64 // one message from a client
}

// Audit configures the audit log.
type Audit struct {
	Path          string // absolute; never empty after Load
	MaxSize       int64  // bytes after which the file is renamed; 0: never
	FullArguments bool   // write arguments unredacted
}

// Sources says where packs may be fetched from.
type Sources struct {
	Private   []string // hosts that may have a private address, and may be asked over http, in lower case
	Rulebooks string   // the URL of the API that has rulebooks, without a slash at its end
	Indexes   []string // addresses of packs that search looks in, as add takes them
	Sigstore  string   // the file that names a Sigstore service's authorities; "": those of the public one
}

// Log configures the log on standard error.
type Log struct {
	Level  slog.Level
	Format string // FormatAuto, FormatText, FormatJSON or FormatPretty
}

// The values of Log.Format.
const (
	FormatAuto   = "auto" // pretty on a terminal, text otherwise
	FormatText   = "text"
	FormatJSON   = "json"
	FormatPretty = "pretty"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// Default returns the configuration used when nothing is configured. Its paths
// are empty.
func Default() *Config {
	return &Config{
		Mode:      "Global",
		ToolNames: Underscore,
		Expose:    ExposeTools,
		Approval: Approval{
			Policy:   PolicyEveryCall,
			Channels: []string{ChannelElicitation, ChannelPage, ChannelTerminal},
			Prompts:  PromptsAuto,
			Notify:   true,
			Pending:  10 * time.Minute,
		},
		Sandbox: Sandbox{Require: RequirePartial, TimeoutMax: 300 * time.Second, Runner: RunnerLocal},
		Sources: Sources{Rulebooks: "https://apiv2.stakpak.dev"},
		Limits: Limits{
			EntryDoc:       mib,
			Frontmatter:    64 * kib,
			ToolsFile:      mib,
			PackSize:       4 * gib,
			ToolsPerPack:   200,
			Description:    1024,
			ReadPage:       10_000,
			ReadPageMax:    mib,
			ReadFile:       64 * mib,
			Output:         16 * kib,
			OutputMarkdown: 2 * kib,
			OutputTotal:    64 * mib,
			Timeout:        30 * time.Second,
			Memory:         2 * gib,
			Processes:      256,
			OpenFiles:      1024,
			FileSize:       256 * mib,
			Workspace:      gib,
			Layer:          512 * mib,
			LayerNames:     100_000,
			Cache:          gib,
			CacheNames:     100_000,
			Held:           gib,
			HeldAge:        24 * time.Hour,
			Workspaces:     8 * gib,
			WorkspacesAge:  30 * 24 * time.Hour,
			EnabledTools:   60,
			Runs:           4,
			Request:        8 * mib,
		},
		HTTP:  HTTP{Drain: 20 * time.Second, Calls: 4096, CallsOf: quota.Limits{Each: 1024}, OIDC: OIDC{Person: "email", Groups: "groups", Scopes: []string{"openid", "email"}, People: 50}},
		Audit: Audit{MaxSize: 64 * mib},
		Log:   Log{Level: slog.LevelInfo, Format: FormatAuto},
	}
}
