package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/chats"
	"github.com/packs-mcp/packs-mcp/internal/server/claims"
	"github.com/packs-mcp/packs-mcp/internal/server/enabled"
	"github.com/packs-mcp/packs-mcp/internal/server/finder"
	"github.com/packs-mcp/packs-mcp/internal/server/given"
	"github.com/packs-mcp/packs-mcp/internal/server/lists"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/prompts"
	"github.com/packs-mcp/packs-mcp/internal/server/resources"
	"github.com/packs-mcp/packs-mcp/internal/server/runs"
	"github.com/packs-mcp/packs-mcp/internal/server/skills"
	"github.com/packs-mcp/packs-mcp/internal/server/subscriptions"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
)

// A Server serves MCP clients. Make one with [New]; it is safe for concurrent
// use.
type Server struct {
	mcp      *mcpserver.MCPServer
	opts     Options
	limits   Limits
	logger   *slog.Logger
	base     map[string]*baseTool // :: plain name → tool; never modified after New
	given    *given.Giver
	files    *toolfiles.Files
	tokens   *redact.Secrets
	secrets  *redact.Secrets // tokens, and values in the server's environment that are secrets by their names
	road     *calls.Road     // which every call takes
	draining <-chan struct{} // closed when the server is to end
	drain    func()          // closes it
	info     mcp.Implementation

	claims    claims.Set // of runs
	finder    *finder.Finder
	offer     *offer.Offer
	resolver  *enabled.Resolver // of names of tools
	skills    *skills.Skills
	resources *resources.Resources
	prompts   *prompts.Prompts
	runs      *runs.Runs
	chats     *chats.Chats
}

// New returns a server without any chats.
func New(o Options) (*Server, error) {
	if o.Library == nil || o.Gate == nil {
		return nil, errors.New("server: a library and a gate are required")
	}
	if o.Workspaces == "" && o.Workspace == "" {
		return nil, errors.New("server: a folder for workspaces is required")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Tokens = slices.Clone(o.Tokens)
	if o.Tools == nil {
		o.Tools = toolfiles.New(tools.Limits{}, o.Mode)
	}
	if o.Programs == nil {
		o.Programs = new(program.Lookuper)
	}
	limits, secrets := o.Limits.withDefaults(), secretsOf(&o)
	planner, err := plan.New(plan.Options{
		Layers: o.Gate.Layers, Elsewhere: o.Elsewhere, Programs: o.Programs, Workspace: o.Workspace, Project: o.Project, Dir: o.Dir, Environ: o.Environ,
		Openings: o.Openings, Own: o.Own, Private: o.Private, AuditLog: o.AuditLog, Mode: o.Mode, Context: o.Context,
		Secrets: secrets, Limits: o.Limits.Run, Together: o.Limits.Together, TimeoutMax: limits.TimeoutMax,
	})
	if err != nil {
		return nil, err
	}
	s := &Server{
		opts: o, limits: limits, logger: o.Logger,
		base:    make(map[string]*baseTool),
		files:   o.Tools,
		tokens:  redact.New(o.Tokens...),
		secrets: secrets,
		info:    implementation(o.Version),
	}

	ending, drain := context.WithCancel(context.Background())
	s.draining, s.drain = ending.Done(), drain
	s.offer = offer.New(offer.Options{Forbids: o.Gate.Forbids, Exposed: s.exposed, Origin: o.Origin, Description: limits.Description})
	s.resolver = enabled.NewResolver(enabled.Options{Offer: s.offer, Tools: s.files, Most: limits.EnabledTools})
	s.finder = finder.New(o.Library.Catalog, s.files)
	digests := new(packfs.DigestCache)
	s.given = given.New(given.Options{
		Digests: digests, HoldsPrivate: planner.HoldsPrivate, From: o.From,
		Limits: packfs.Limits{Page: limits.ReadPage, PageMax: limits.ReadPageMax, File: limits.ReadFile},
	})
	s.skills = skills.New(skills.Options{
		Digests: digests, Frontmatter: limits.Frontmatter, Describe: s.offer.Describe, Logger: s.logger,
		KeepsOut: s.given.KeepsOut,
	})

	s.chats = chats.New(chats.Options{
		Library: o.Library, Gate: o.Gate, Workspaces: workspace.Place{Each: o.Workspaces, Shared: o.Workspace}, Shared: o.SharedChat, Common: o.CommonChats, Runs: limits.Runs,
		Offer: s.offer, KeepsOut: s.given.KeepsOut, Pace: subscriptions.NewPace(cmp.Or(o.lookEvery, subscriptions.Every)),
		Lists: lists.NewShared(lists.Options{
			Tools:  func(catalog *packs.Catalog) []mcp.Tool { return s.tools(catalog, nil) },
			Differ: s.offer.ListsDiffer,
		}),
		Tools: s.tools, Other: s.files.Forget,
	})

	s.road = calls.NewRoad(calls.Options{
		Gate: o.Gate, Given: s.given, Logger: o.Logger, Tokens: s.tokens, Secrets: secrets, Asking: o.Asking,
		Elicit: func(ctx context.Context, r mcp.ElicitationRequest) (*mcp.ElicitationResult, error) {
			return s.mcp.RequestElicitation(ctx, r)
		},
		LookAt: s.lookAt, Draining: s.draining, Ended: s.claims.Count, Progress: cmp.Or(o.progress, progressEvery),
	})

	s.resources = resources.New(resources.Options{
		Road: s.road, Offer: s.offer, Given: s.given, Skills: s.skills, Secrets: secrets,
		ReadFile: limits.ReadFile, ReadFileTool: s.exposed(toolname.ReadFile),
	})

	s.prompts = prompts.New(prompts.Options{
		Road: s.road, Chats: s.chats, Offer: s.offer, Given: s.given, Tools: s.files, Secrets: secrets,
		PageMax: limits.ReadPageMax, OpenDocs: s.exposed(toolname.OpenDocs),
		ToolsOf: func(p *packs.Pack) string { return s.toolsSentence(p, false) },
	})

	s.runs = runs.New(runs.Options{
		Road: s.road, Claims: &s.claims, Offer: s.offer, Resolver: s.resolver, Given: s.given, Planner: planner, Logger: o.Logger, Quota: limits.Run.Workspace, RunsOf: o.RunsOf, MemoryOf: o.MemoryOf,
	})

	hooks := &mcpserver.Hooks{}
	hooks.AddAfterInitialize(func(ctx context.Context, _ any, _ *mcp.InitializeRequest, r *mcp.InitializeResult) {
		r.Instructions = s.offer.Instructions(s.chats.Catalog(ctx), s.files.Once())
		r.ServerInfo.Icons = icons()
	})
	hooks.AddAfterDiscover(func(ctx context.Context, _ any, _ *mcp.DiscoverRequest, r *mcp.DiscoverResult) {
		r.Instructions = s.offer.Instructions(s.chats.Catalog(ctx), s.files.Once())
		info := s.info
		info.Icons = icons()
		r.EnsureResultMeta().SetServerInfo(info)
	})
	hooks.AddBeforeCallTool(s.rename)
	s.mcp = mcpserver.NewMCPServer(s.info.Name, s.info.Version,
		mcpserver.WithTitle(s.info.Title),
		mcpserver.WithDescription(s.info.Description),
		mcpserver.WithWebsiteURL(s.info.WebsiteURL),
		mcpserver.WithToolCapabilities(true),
		mcpserver.WithPromptCapabilities(true),
		mcpserver.WithResourceCapabilities(true, true),
		mcpserver.WithCompletions(),
		mcpserver.WithExtensions(map[string]any{resources.ExtensionSkills: map[string]any{"directoryRead": true}, wire.ExtensionApps: appsSettings()}),
		mcpserver.WithHooks(hooks),
		mcpserver.WithToolFilter(s.listTools),
		// What a chat sees is its own, and changes when a person allows it.
		mcpserver.WithCacheHints(0, mcp.CacheScopePrivate),
	)
	for _, t := range s.baseTools() {
		s.base[t.name] = t
		s.mcp.AddTool(s.definition(t), s.call)
	}
	return s, nil
}

// implementation returns what the server says about itself in every result of
// 2026-07-28. It leaves out the icons, which are sent once.
func implementation(version string) mcp.Implementation {
	return mcp.Implementation{
		Name: "packs-mcp", Version: version, Title: "Capability packs",
		Description: "Folders of instructions, files and tools, each call approved by a person.",
		WebsiteURL:  "https://github.com/packs-mcp/packs-mcp",
	}
}

// icons returns the server's icons for clients to show. Tools, prompts and resources
// have none: they would all show this one, and a pack's own icon could be anything.
func icons() []mcp.Icon {
	src := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(icon))
	return []mcp.Icon{{Src: src, MIMEType: "image/svg+xml", Sizes: []string{"any"}}}
}

// icon is a parcel, in a colour that is visible on light and dark backgrounds.
const icon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#c2762e" stroke-width="2" stroke-linejoin="round">` +
	`<path d="M12 2 21 7v10l-9 5-9-5V7z"/><path d="M3 7l9 5 9-5M12 12v10M7.5 4.5l9 5"/></svg>`

// lookAt looks at the packs in dirs again now, or at all packs if dirs is empty.
func (s *Server) lookAt(ctx context.Context, dirs []string) {
	if _, err := s.opts.Library.Refresh(ctx, dirs); err != nil {
		s.logger.Debug("the packs were not scanned again", "err", err)
	}
	s.Refresh(ctx)
}

// progressEvery is how often a client that asked for progress is told what its call
// waits for.
const progressEvery = 5 * time.Second

// exposed returns the name under which a base tool is listed.
func (s *Server) exposed(plain string) string { return toolname.Exposed(plain, s.opts.Dotted) }

// knownContext returns what the user configured for context.* placeholders, for the
// examples in descriptions. It leaves out the working folder: models get the handle
// of a workspace, not its path.
func (s *Server) knownContext() tools.Context {
	ctx := tools.Context(maps.Clone(s.opts.Context))
	delete(ctx, "cwd")
	return ctx
}
