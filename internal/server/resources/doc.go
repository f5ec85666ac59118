// Package resources answers the requests about resources: their lists and templates,
// what is in a file or a folder, the Skills extension, and completion.
//
// It does not decide what may be given; what has contents takes the road of package
// calls. It lists what package offer says, and gives what package given gives.
package resources

import (
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/given"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/skills"
)

// Options are what [Resources] are made of. All are required.
type Options struct {
	Road         *calls.Road
	Offer        *offer.Offer
	Given        *given.Giver
	Skills       *skills.Skills
	Secrets      *redact.Secrets // left out of the log
	ReadFile     int64           // the largest file that is read at all, in bytes
	ReadFileTool string          // the name of the tool that reads files by pages
}

// Resources answer requests. They are safe for concurrent use.
type Resources struct{ opts Options }

// New returns Resources.
func New(o Options) *Resources { return &Resources{o} }
