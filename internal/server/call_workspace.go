package server

import (
	"crypto/sha256"

	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// workspaceKey is where a client that calls a pack's tool by its own name says which
// workspace it means. The arguments of such a tool belong to the pack.
const workspaceKey = "packs-mcp/workspace"

// currentWorkspace returns the workspace that the call is about.
func (c *call) currentWorkspace() *workspace.Workspace {
	if c.workspace == nil {
		return c.chat.Workspaces.First()
	}
	return c.workspace
}

// inWorkspace makes the call use the workspace with this handle, or the chat's first
// if the handle is empty.
func (c *call) inWorkspace(handle string) error {
	if handle == "" {
		return nil
	}
	if c.workspace = c.chat.Workspaces.Named(handle); c.workspace != nil {
		return nil
	}
	return toolerr.New(toolerr.CodeNotFound, "Leave workspace out, or pass one that a run of this chat returned.", "there is no such workspace in this chat")
}

// runsIn is inWorkspace for a call that runs a program. Such a call may ask for a
// workspace that has not been used yet.
func (c *call) runsIn(handle string) (err error) {
	if handle != workspace.New {
		return c.inWorkspace(handle)
	}
	if c.workspace == nil { // otherwise the call was prepared before
		c.workspace, err = c.chat.Workspaces.Keep(c.digest())
	}
	return err
}

// digest identifies the call, however its client spells the arguments.
func (c *call) digest() [sha256.Size]byte {
	return sha256.Sum256(strictjson.Canonical([]any{c.tool.name, c.args.Tree.Value()}))
}
