package config

import (
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/packs-mcp/packs-mcp/internal/config/node"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/config/problem"
	"github.com/packs-mcp/packs-mcp/internal/config/units"
)

// A key is one scalar setting, or one list that can be written as text.
type key struct {
	path   string
	want   string          // what is allowed: "want a number from 1 to 64"
	tags   []string        // YAML tags that the value may have
	list   string          // what separates the elements outside the file; "" for scalars
	none   bool            // the list may be empty
	clear  func(c *Config) // empties the list
	secret bool            // no message shows the value
	// set stores text, or says what is wrong with it without repeating it.
	set func(c *Config, text string, base places.Base) (wrong string)
}

// sections returns the mappings of the file, in the order of the documentation.
func sections() []string {
	return []string{"approval", "roles", "sandbox", containerSection, "sources", "limits", "http", oidcSection, "audit", "store", "log"}
}

// structured returns the keys that can be set only in the file, or that have
// their own form.
func structured() []string {
	return []string{"packs", rulesKey, approversKey, useKey, "context", grantsKey, runnersKey, protectKey, unprotectKey, tokensKey}
}

const (
	rulesKey     = "rules"
	approversKey = "approvers"
	useKey       = "roles.use"
	grantsKey    = "sandbox.grants"
	runnersKey   = "sandbox.runners"
	protectKey   = "sandbox.protect"
	unprotectKey = "sandbox.unprotect"

	containerSection = "sandbox.container"
)

// paths returns every key of this version, by whole path.
func paths() []string {
	all := structured()
	for _, k := range keys() {
		all = append(all, k.path)
	}
	return all
}

// keys returns the scalar keys, in the order of the documentation.
func keys() []key {
	all := []key{
		compatKey(),
		text("mode", func(c *Config) *string { return &c.Mode }),
		path("project", func(c *Config) *string { return &c.Project }),
		word("tool_names", []string{Underscore, Dotted}, func(c *Config, w string) { c.ToolNames = w }),
		word("expose", []string{ExposeTools, ExposeSkills}, func(c *Config, w string) { c.Expose = w }),

		word("approval.policy", []string{PolicyEveryCall, PolicyFirstRun, PolicyBalanced}, func(c *Config, w string) { c.Approval.Policy = w }),
		channels(),
		word("approval.prompts", []string{PromptsAuto, PromptsAllow, PromptsAsk}, func(c *Config, w string) { c.Approval.Prompts = w }),
		boolean("approval.notify", func(c *Config) *bool { return &c.Approval.Notify }),
		approvalWait(),
		duration("approval.pending", time.Second, 24*time.Hour, func(c *Config) *time.Duration { return &c.Approval.Pending }),

		word("sandbox.require", []string{RequireNone, RequirePartial, RequireFull}, func(c *Config, w string) { c.Sandbox.Require = w }),
		duration("sandbox.timeout_max", time.Second, 24*time.Hour, func(c *Config) *time.Duration { return &c.Sandbox.TimeoutMax }),
		word("sandbox.runner", []string{RunnerLocal, RunnerContainer}, func(c *Config, w string) { c.Sandbox.Runner = w }),
	}
	all = append(all, containerKeys()...)
	all = append(all, []key{
		privateHosts(),
		indexes(),
		rulebooks(),
		path("sources.sigstore", func(c *Config) *string { return &c.Sources.Sigstore }),

		size("limits.entry_doc", kib, 64*mib, func(c *Config) *int64 { return &c.Limits.EntryDoc }),
		size("limits.frontmatter", 256, 16*mib, func(c *Config) *int64 { return &c.Limits.Frontmatter }),
		size("limits.tools_file", kib, 64*mib, func(c *Config) *int64 { return &c.Limits.ToolsFile }),
		size("limits.pack_size", mib, 1024*gib, func(c *Config) *int64 { return &c.Limits.PackSize }),
		count("limits.tools_per_pack", 1, 10_000, func(c *Config) *int { return &c.Limits.ToolsPerPack }),
		count("limits.description", 64, 65_536, func(c *Config) *int { return &c.Limits.Description }),
		size("limits.read_page", 256, 64*mib, func(c *Config) *int64 { return &c.Limits.ReadPage }),
		size("limits.read_page_max", 256, 64*mib, func(c *Config) *int64 { return &c.Limits.ReadPageMax }),
		size("limits.read_file", kib, 16*gib, func(c *Config) *int64 { return &c.Limits.ReadFile }),
		size("limits.output", 256, 16*mib, func(c *Config) *int64 { return &c.Limits.Output }),
		size("limits.output_markdown", 64, 16*mib, func(c *Config) *int64 { return &c.Limits.OutputMarkdown }),
		size("limits.output_total", kib, 16*gib, func(c *Config) *int64 { return &c.Limits.OutputTotal }),
		duration("limits.timeout", time.Second, 24*time.Hour, func(c *Config) *time.Duration { return &c.Limits.Timeout }),
		cpu(),
		memoryTogether(),
		processors(),
		size("limits.memory", 16*mib, 1024*gib, func(c *Config) *int64 { return &c.Limits.Memory }),
		count("limits.processes", 1, 65_536, func(c *Config) *int { return &c.Limits.Processes }),
		count("limits.open_files", 16, 1_048_576, func(c *Config) *int { return &c.Limits.OpenFiles }),
		size("limits.file_size", kib, 1024*gib, func(c *Config) *int64 { return &c.Limits.FileSize }),
		size("limits.workspace", kib, 1024*gib, func(c *Config) *int64 { return &c.Limits.Workspace }),
		size("limits.layer", mib, 1024*gib, func(c *Config) *int64 { return &c.Limits.Layer }),
		count("limits.layer_names", 100, 10_000_000, func(c *Config) *int { return &c.Limits.LayerNames }),
		size("limits.cache", mib, 1024*gib, func(c *Config) *int64 { return &c.Limits.Cache }),
		count("limits.cache_names", 100, 10_000_000, func(c *Config) *int { return &c.Limits.CacheNames }),
		size("limits.held", mib, 1024*gib, func(c *Config) *int64 { return &c.Limits.Held }),
		size("limits.workspaces", mib, 1024*gib, func(c *Config) *int64 { return &c.Limits.Workspaces }),
		duration("limits.workspaces_age", 24*time.Hour, 3650*24*time.Hour, func(c *Config) *time.Duration { return &c.Limits.WorkspacesAge }),
		duration("limits.held_age", time.Hour, 30*24*time.Hour, func(c *Config) *time.Duration { return &c.Limits.HeldAge }),
		count("limits.enabled_tools", 1, 1000, func(c *Config) *int { return &c.Limits.EnabledTools }),
		count("limits.runs", 1, 64, func(c *Config) *int { return &c.Limits.Runs }),
		size("limits.request", 64*kib, gib, func(c *Config) *int64 { return &c.Limits.Request }),
	}...)
	all = append(all, httpKeys()...)
	return append(all,
		path("audit.path", func(c *Config) *string { return &c.Audit.Path }),
		maxSize(),
		boolean("audit.full_arguments", func(c *Config) *bool { return &c.Audit.FullArguments }),

		secret(checked("store.url", "want file, or a URL such as nats://10.0.0.5:4222 or postgres://packs@db.example.com/packs", storeURL, func(c *Config) *string { return &c.Store.URL })),
		path("store.credentials", func(c *Config) *string { return &c.Store.Credentials }),
		secret(checked("store.key", "want one or two keys of 64 hexadecimal digits", storeKey, func(c *Config) *string { return &c.Store.Key })),
		path("store.key_file", func(c *Config) *string { return &c.Store.KeyFile }),

		word("log.level", []string{"debug", "info", "warn", "error"}, setLevel),
		word("log.format", []string{FormatAuto, FormatText, FormatJSON, FormatPretty}, func(c *Config, w string) { c.Log.Format = w }),
	)
}

// storeURL checks the URL of a store; the word file is none.
func storeURL(s string) (string, bool) {
	if s == "file" {
		return "", true
	}
	scheme, rest, _ := strings.Cut(s, "://") // several hosts are no URL for package url
	return s, rest != "" && slices.Contains([]string{"nats", "tls", "postgres", "postgresql"}, scheme)
}

// storeKey checks the keys that replicas share.
func storeKey(s string) (string, bool) {
	words := strings.Fields(s)
	isKey := func(word string) bool { return len(word) == 64 && strings.Trim(word, "0123456789abcdefABCDEF") == "" }
	return s, (len(words) == 1 || len(words) == 2) && !slices.ContainsFunc(words, func(w string) bool { return !isKey(w) })
}

func setLevel(c *Config, w string) {
	c.Log.Level = map[string]slog.Level{
		"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
	}[w]
}

func text(name string, field func(*Config) *string) key {
	const want = "want text, in quotes"
	return key{path: name, want: want, tags: []string{node.TagString}, set: func(c *Config, s string, _ places.Base) string {
		if strings.TrimSpace(s) == "" {
			return want
		}
		*field(c) = s
		return ""
	}}
}

// path returns a key for a file or folder; empty is the default.
func path(name string, field func(*Config) *string) key {
	return key{path: name, want: places.WantPath, tags: []string{node.TagString}, set: func(c *Config, s string, base places.Base) string {
		if s == "" {
			*field(c) = ""
			return ""
		}
		p, wrong := base.Resolve(s)
		if wrong == "" {
			*field(c) = p
		}
		return wrong
	}}
}

// word returns a key whose value is one of the allowed words.
func word(name string, allowed []string, set func(*Config, string)) key {
	return key{path: name, want: problem.OneOf(allowed), tags: []string{node.TagString}, set: func(c *Config, s string, _ places.Base) string {
		if wrong := checkWord(s, allowed); wrong != "" {
			return wrong
		}
		set(c, s)
		return ""
	}}
}

func checkWord(s string, allowed []string) string {
	if slices.Contains(allowed, s) {
		return ""
	}
	return problem.OneOf(allowed)
}

func boolean(name string, field func(*Config) *bool) key {
	const want = "want true or false"
	return key{path: name, want: want, tags: []string{node.TagBool}, set: func(c *Config, s string, _ places.Base) string {
		switch strings.ToLower(s) {
		case "true":
			*field(c) = true
		case "false":
			*field(c) = false
		default:
			return want
		}
		return ""
	}}
}

func size(name string, least, most int64, field func(*Config) *int64) key {
	want := fmt.Sprintf("want a size from %s to %s, such as %s", units.SizeText(least), units.SizeText(most), units.SizeText(min(max(16*kib, least), most)))
	return key{path: name, want: want, tags: []string{node.TagInt, node.TagString}, set: func(c *Config, s string, _ places.Base) string {
		n, ok := units.ParseSize(s)
		if !ok || n < least || n > most {
			return want
		}
		*field(c) = n
		return ""
	}}
}

func count(name string, least, most int, field func(*Config) *int) key {
	want := fmt.Sprintf("want a number from %d to %d", least, most)
	return key{path: name, want: want, tags: []string{node.TagInt}, set: func(c *Config, s string, _ places.Base) string {
		n, ok := units.ParseCount(s)
		if !ok || n < least || n > most {
			return want
		}
		*field(c) = n
		return ""
	}}
}

func duration(name string, least, most time.Duration, field func(*Config) *time.Duration) key {
	want := fmt.Sprintf("want a time from %s to %s with its unit, such as 45s or 5m", units.DurationText(least), units.DurationText(most))
	// A number without a unit has the integer tag; accept it here, so that the
	// message explains units.
	return key{path: name, want: want, tags: []string{node.TagString, node.TagInt}, set: func(c *Config, s string, _ places.Base) string {
		d, ok := units.ParseDuration(s)
		if !ok || d < least || d > most {
			return want
		}
		*field(c) = d
		return ""
	}}
}

// or returns k with one more allowed value, outside k's range.
func or(k key, addition string, set func(c *Config, text string) bool) key {
	inner := k.set
	want := k.want + ", or " + addition
	k.want = want
	k.set = func(c *Config, s string, base places.Base) string {
		if set(c, s) || inner(c, s, base) == "" {
			return ""
		}
		return want
	}
	return k
}

// cpu returns a key for a duration, or the word timeout.
func cpu() key {
	field := func(c *Config) *time.Duration { return &c.Limits.CPU }
	return or(duration("limits.cpu", time.Second, 24*time.Hour, field), "timeout", func(c *Config, s string) bool {
		if s == "timeout" {
			c.Limits.CPU = 0
		}
		return s == "timeout"
	})
}

// memoryTogether and processors return the keys of what bounds all processes of a run
// together; none is the default.
func memoryTogether() key {
	field := func(c *Config) *int64 { return &c.Limits.MemoryTogether }
	return or(size("limits.memory_together", 16*mib, 1024*gib, field), "none", func(c *Config, s string) bool {
		if s == "none" {
			c.Limits.MemoryTogether = 0
		}
		return s == "none"
	})
}

func processors() key {
	field := func(c *Config) *int { return &c.Limits.Processors }
	k := or(count("limits.processors", 1, 1024, field), "none", func(c *Config, s string) bool {
		if s == "none" {
			c.Limits.Processors = 0
		}
		return s == "none"
	})
	k.tags = []string{node.TagInt, node.TagString}
	return k
}

// approvalWait returns the key for how long a call waits for its answer.
func approvalWait() key {
	field := func(c *Config) *time.Duration { return &c.Approval.Wait }
	return or(duration("approval.wait", time.Second, 10*time.Minute, field), "auto", func(c *Config, s string) bool {
		if s == "auto" {
			c.Approval.Wait = 0
		}
		return s == "auto"
	})
}

// maxSize returns a key for a size, or 0.
func maxSize() key {
	field := func(c *Config) *int64 { return &c.Audit.MaxSize }
	return or(size("audit.max_size", 64*kib, 1024*gib, field), "0 for one file without end", func(c *Config, s string) bool {
		n, ok := units.ParseSize(s)
		if ok && n == 0 {
			c.Audit.MaxSize = 0
		}
		return ok && n == 0
	})
}

// rulebooks returns the key for the server of rulebooks.
func rulebooks() key {
	const want = "want a URL such as https://host, without a user, a query or a fragment"
	return key{path: "sources.rulebooks", want: want, tags: []string{node.TagString}, set: func(c *Config, s string, _ places.Base) string {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return want
		}
		c.Sources.Rulebooks = strings.TrimRight(s, "/")
		return ""
	}}
}

// privateHosts returns the key for the hosts that may have a private address; set adds one.
func privateHosts() key {
	return key{path: "sources.private", want: "want the name or address of a host", list: ",", none: true, clear: func(c *Config) { c.Sources.Private = nil }, set: func(c *Config, s string, _ places.Base) string {
		s = strings.ToLower(s)
		if s == "" || strings.ContainsAny(s, "/ @?#*") {
			return "want the name or address of a host, without a scheme"
		}
		if slices.Contains(c.Sources.Private, s) {
			return "name it once"
		}
		c.Sources.Private = append(c.Sources.Private, s)
		return ""
	}}
}

// indexes returns the key for the addresses that search looks in; set adds one.
func indexes() key {
	return key{path: "sources.indexes", want: "want an address of packs, as packs-mcp add takes it", list: ",", none: true, clear: func(c *Config) { c.Sources.Indexes = nil }, set: func(c *Config, s string, _ places.Base) string {
		if s == "" || strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }) {
			return "want an address of packs, as packs-mcp add takes it"
		}
		if slices.Contains(c.Sources.Indexes, s) {
			return "name it once"
		}
		c.Sources.Indexes = append(c.Sources.Indexes, s)
		return ""
	}}
}

// channels returns the key for the list of approval channels; set adds one.
func channels() key {
	allowed := []string{ChannelElicitation, ChannelPage, ChannelTerminal, ChannelApp}
	return key{path: "approval.channels", want: problem.OneOf(allowed), list: ",", clear: func(c *Config) { c.Approval.Channels = nil }, set: func(c *Config, s string, _ places.Base) string {
		if wrong := checkWord(s, allowed); wrong != "" {
			return wrong
		}
		if slices.Contains(c.Approval.Channels, s) {
			return "name it once"
		}
		c.Approval.Channels = append(c.Approval.Channels, s)
		return ""
	}}
}

// compatKey returns the key that lists the programs whose packs are found.
func compatKey() key {
	return key{path: "compat", want: problem.OneOf(places.CompatNames()), list: ",", none: true, clear: func(c *Config) { c.Compat = nil }, set: func(c *Config, s string, _ places.Base) string {
		if wrong := checkWord(s, places.CompatNames()); wrong != "" {
			return wrong
		}
		if slices.Contains(c.Compat, s) {
			return "name it once"
		}
		c.Compat = append(c.Compat, s)
		return ""
	}}
}
