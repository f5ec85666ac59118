package calls

import (
	"crypto/sha256"

	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// WorkspaceKey is where a client that calls a pack's tool by its own name says which
// workspace it means. The arguments of such a tool belong to the pack.
const WorkspaceKey = "packs-mcp/workspace"

// Workspace returns the workspace that the call is about.
func (c *Call) Workspace() *workspace.Workspace {
	if c.workspace == nil {
		return c.Chat.Workspaces.First()
	}
	return c.workspace
}

// InWorkspace makes the call use the workspace with this handle, or the chat's first
// if the handle is empty.
func (c *Call) InWorkspace(handle string) error {
	if handle == "" {
		return nil
	}
	if c.workspace = c.Chat.Workspaces.Named(handle); c.workspace != nil {
		return nil
	}
	return toolerr.New(toolerr.CodeNotFound, "Leave workspace out, or pass one that a run of this chat returned.", "there is no such workspace in this chat")
}

// RunsIn is InWorkspace for a call that runs a program. Such a call may ask for a
// workspace that has not been used yet.
func (c *Call) RunsIn(handle string) (err error) {
	if handle != workspace.New {
		return c.InWorkspace(handle)
	}
	if c.workspace == nil { // otherwise the call was prepared before
		c.workspace, err = c.Chat.Workspaces.Keep(c.digest())
	}
	return err
}

// digest identifies the call, however its client spells the arguments.
func (c *Call) digest() [sha256.Size]byte {
	return sha256.Sum256(strictjson.Canonical([]any{c.Method.Name, c.Args.Tree.Value()}))
}
