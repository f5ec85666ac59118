package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/given"
	"github.com/packs-mcp/packs-mcp/internal/server/offer"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/toolname"
)

type readFileParams struct {
	PackID    string `json:"pack_id"`
	Path      string `json:"path"`
	Offset    int64  `json:"offset"`
	Length    int64  `json:"length"`
	Workspace string `json:"workspace"`
}

type readFileResult struct {
	Path       string  `json:"path"`
	Content    *string `json:"content,omitempty"`
	Encoding   string  `json:"encoding,omitempty"`
	MIME       string  `json:"mime,omitempty"`
	SizeBytes  *int64  `json:"size_bytes,omitempty"`
	Truncated  bool    `json:"truncated"`
	NextOffset int64   `json:"next_offset,omitempty"`
	Note       string  `json:"note,omitempty"` // what is unusual about the file
	Entries    []entry `json:"entries,omitempty"`

	compared bool // the content was compared with what was digested; see [calls.Road.SameAs]
}

type entry struct {
	Name      string `json:"name"`
	Type      string `json:"type"`
	SizeBytes *int64 `json:"size_bytes,omitempty"`
}

func readFileTool() *baseTool {
	return &baseTool{
		name:  toolname.ReadFile,
		title: "Read a pack's file",
		description: fixed("Read a file or list a folder of a pack, by page. " +
			`pack_id "workspace" reads what runs made. Binary files are base64. If truncated, go on at next_offset.`),
		input: `{"type":"object","properties":{` +
			`"pack_id":{"type":"string"},` +
			`"path":{"type":"string","description":"relative to the pack; \".\" lists it"},` +
			`"offset":{"type":"integer","minimum":0,"description":"in bytes"},` +
			`"length":{"type":"integer","minimum":0,"description":"in bytes; 0: a page"},` +
			`"workspace":{"type":"string","description":"handle that a run returned"}},` +
			`"required":["pack_id","path"],"additionalProperties":false}`,
		output: `{"type":"object","properties":{"path":{"type":"string"},"content":{"type":"string"},"encoding":{"type":"string","enum":["utf-8","base64"]},` +
			`"mime":{"type":"string"},"size_bytes":{"type":"integer"},"truncated":{"type":"boolean"},"next_offset":{"type":"integer"},"note":{"type":"string"},` +
			`"entries":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"type":{"type":"string"},"size_bytes":{"type":"integer"}},"required":["name","type"]}},` + toolerr.Property + `}}`,
		annotations: readOnly("Read a pack's file"),
		prepare:     (*Server).prepareReadFile,
	}
}

func (s *Server) prepareReadFile(ctx context.Context, c *calls.Call) (*calls.Action, error) {
	var p readFileParams
	if err := c.Decode(&p); err != nil {
		return nil, err
	}
	if err := c.Require("pack_id", p.PackID, "path", p.Path); err != nil {
		return nil, err
	}
	req := gate.Request{
		Caller: c.Caller, Kind: gate.KindRead, Method: c.Method.Name,
		Path: p.Path, Arguments: c.Args.Whole(), Logged: c.Logged(s.secrets),
	}
	if p.PackID == offer.WorkspaceID {
		if err := c.InWorkspace(p.Workspace); err != nil {
			return nil, err
		}
		req.Pack = gate.Pack{ID: offer.WorkspaceID, Trust: gate.TrustUser}
		req.Workspace, req.Scratch = c.Workspace().Dir, c.Workspace().IsOwn
		return &calls.Action{Request: req, Perform: func(context.Context, *gate.Permit) (any, error) {
			dir, err := c.Workspace().Open()
			if err != nil {
				return nil, err
			}
			defer dir.Close()
			return s.read(dir, &packfs.Tree{}, p)
		}}, nil
	}
	pack, err := s.offer.Pack(c.Catalog, p.PackID)
	if err != nil {
		return nil, err
	}
	facts, tree, err := s.given.Facts(ctx, pack)
	if err != nil {
		return nil, err
	}
	req.Pack = facts
	out, hidden, err := s.readPack(pack, tree, p)
	if err != nil {
		return nil, err // do not ask a person about what cannot be read
	}
	req.Hidden = hidden
	return &calls.Action{Request: req, Perform: func(ctx context.Context, permit *gate.Permit) (any, error) {
		return out, s.road.SameAs(ctx, c, pack, permit, out.compared)
	}}, nil
}

// readPack reads a page of a pack's file, and says how many invisible characters it
// holds.
func (s *Server) readPack(pack *packs.Pack, tree *packfs.Tree, p readFileParams) (*readFileResult, string, error) {
	dir, err := pack.OpenDir()
	if err != nil {
		return nil, "", err
	}
	defer dir.Close()
	out, err := s.read(dir, tree, p)
	if err != nil {
		return nil, "", err
	}
	if out.Content != nil && out.Encoding == encodingUTF8 {
		return out, given.Hidden([]byte(*out.Content)), nil
	}
	return out, "", nil
}

const (
	encodingUTF8   = "utf-8"
	encodingBase64 = "base64"
)

func (s *Server) read(dir *packfs.Dir, tree *packfs.Tree, p readFileParams) (*readFileResult, error) {
	page, err := s.given.Page(dir, tree, p.Path, int64(p.Offset), int64(p.Length))
	if errors.Is(err, packfs.ErrIsDir) {
		return list(dir, p.Path)
	}
	if err != nil {
		return nil, err
	}
	out := &readFileResult{
		Path: page.Path, Encoding: encodingUTF8, MIME: page.MIME, SizeBytes: &page.Size,
		Truncated: page.Truncated, NextOffset: page.NextOffset, Note: noteOf(page), compared: page.Verified,
	}
	text, ok := page.Text()
	content := string(text)
	if !ok {
		out.Encoding, content = encodingBase64, base64.StdEncoding.EncodeToString(page.Data)
	}
	out.Content = &content
	return out, nil
}

func list(dir *packfs.Dir, path string) (*readFileResult, error) {
	entries, truncated, err := dir.List(path)
	if err != nil {
		return nil, err
	}
	clean, err := packfs.Clean(path)
	if err != nil {
		return nil, err
	}
	out := &readFileResult{Path: clean, Truncated: truncated, Entries: []entry{}}
	for _, e := range entries {
		le := entry{Name: safetext.Line(e.Name), Type: string(e.Type)}
		if e.Type == packfs.TypeFile {
			size := e.Size
			le.SizeBytes = &size
		}
		out.Entries = append(out.Entries, le)
	}
	return out, nil
}

// MarshalJSON keeps the list of an empty folder, which omitempty would drop.
func (r readFileResult) MarshalJSON() ([]byte, error) {
	type plain readFileResult
	if r.Entries == nil || len(r.Entries) > 0 {
		return json.Marshal(plain(r))
	}
	return json.Marshal(struct {
		plain
		Entries []entry `json:"entries"`
	}{plain(r), r.Entries})
}
