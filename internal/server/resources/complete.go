package resources

import (
	"context"
	"path"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/address"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// maxValues is how many values the protocol allows in a completion.
const maxValues = 100

type completeParams struct {
	Ref struct {
		Type string `json:"type"`
		Name string `json:"name"`
		URI  string `json:"uri"`
	} `json:"ref"`
	Argument struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"argument"`
	Context struct {
		Arguments map[string]string `json:"arguments"`
	} `json:"context"`
}

type completeResult struct {
	mcp.Result
	Completion completion `json:"completion"`
}

type completion struct {
	Values  []string `json:"values"`
	Total   int      `json:"total"`
	HasMore bool     `json:"hasMore"`
}

// Complete answers completion/complete. It offers only names, as lists do: ids of
// packs for the prompts attach and detach, and ids and paths for the templates.
func (s *Resources) Complete(ctx context.Context, r *calls.Request) (mcp.ResultMetadata, error) {
	var p completeParams
	if err := r.Decode(&p); err != nil {
		return nil, err
	}
	var all []string
	var ok bool
	switch p.Ref.Type {
	case "ref/prompt":
		all, ok = s.promptValues(r, &p)
	case "ref/resource":
		all, ok = s.templateValues(ctx, r, &p)
	}
	if !ok {
		return nil, &toolerr.RPCError{Code: wire.CodeInvalidParams, Message: "there is no such prompt or template, or it has no such argument"}
	}
	begin := strings.ToLower(p.Argument.Value)
	all = slices.DeleteFunc(all, func(v string) bool {
		return !strings.HasPrefix(strings.ToLower(v), begin) && !strings.HasPrefix(strings.ToLower(path.Base(v)), begin)
	})
	slices.Sort(all)
	out := &completeResult{Completion: completion{Values: []string{}, Total: len(all), HasMore: len(all) > maxValues}}
	out.Completion.Values = append(out.Completion.Values, all[:min(len(all), maxValues)]...)
	return out, nil
}

// promptValues returns the possible values of a prompt's argument. ok is false if
// there is no such argument.
func (s *Resources) promptValues(r *calls.Request, p *completeParams) (values []string, ok bool) {
	switch {
	case (p.Ref.Name == offer.PromptAttach || p.Ref.Name == offer.PromptDetach) && p.Argument.Name == offer.ArgPack:
		for _, pack := range r.Catalog.All() {
			if s.opts.Offer.MayChoose(p.Ref.Name, pack) {
				values = append(values, pack.ID)
			}
		}
		return values, true
	default:
		return nil, p.Argument.Name == offer.ArgWords && offer.PromptOf(r.Catalog, p.Ref.Name) != nil
	}
}

// templateValues returns the possible values of a template's variable.
func (s *Resources) templateValues(ctx context.Context, r *calls.Request, p *completeParams) (values []string, ok bool) {
	skill := p.Ref.URI == templateSkill
	switch {
	case p.Ref.URI == templateWorkspace && p.Argument.Name == "workspace":
		for _, sp := range r.Chat.Workspaces.All() {
			values = append(values, sp.Handle)
		}
		return values, true
	case p.Ref.URI == templateWorkspace && p.Argument.Name == "path":
		if !s.opts.Offer.MayReadWorkspaces() {
			return nil, true
		}
		sp := r.Chat.Workspaces.First()
		if h := p.Context.Arguments["workspace"]; h != "" {
			if sp = r.Chat.Workspaces.Named(h); sp == nil {
				return nil, true
			}
		}
		for _, f := range sp.Files(ctx) {
			values = append(values, f.Path)
		}
		return values, true
	case !skill && p.Ref.URI != templatePack:
		return nil, false
	case p.Argument.Name == offer.ArgPack:
		for _, pack := range s.opts.Offer.Packs(r.Catalog) {
			if address.IsSkill(pack) == skill && (s.opts.Offer.MayOpen(pack) || s.opts.Offer.MayRead(pack)) {
				values = append(values, pack.ID)
			}
		}
		return values, true
	case p.Argument.Name == "path":
		pack := r.Catalog.ByID(p.Context.Arguments[offer.ArgPack])
		if pack == nil || !address.IsOffered(pack) || address.IsSkill(pack) != skill || !s.opts.Offer.MayRead(pack) {
			return nil, true
		}
		return packFiles(pack), true
	default:
		return nil, false
	}
}

// maxCompleted is how many names of a pack a completion reads.
const maxCompleted = 2000

// maxDepth is how deep in a pack a completion looks for names.
const maxDepth = 8

// packFiles returns the paths of a pack's regular files, up to maxCompleted.
func packFiles(p *packs.Pack) []string {
	dir, err := p.OpenDir()
	if err != nil {
		return nil
	}
	defer dir.Close()
	return regularFiles(dir, maxCompleted)
}

// regularFiles returns the paths of the regular files below a folder. It reads at
// most this many names.
func regularFiles(dir *packfs.Dir, names int) []string {
	var all []string
	var walk func(at string, depth int)
	walk = func(at string, depth int) {
		entries, _, err := dir.List(at)
		if err != nil || depth > maxDepth {
			return
		}
		for _, e := range entries {
			if names--; names < 0 {
				return
			}
			switch name := path.Join(at, e.Name); e.Type {
			case packfs.TypeDir:
				walk(name, depth+1)
			case packfs.TypeFile:
				all = append(all, name)
			}
		}
	}
	walk(".", 0)
	return all
}
