package lint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/loose"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/formats"
)

const skillFile = "SKILL.md"

// results determines what path is, and checks it.
func (c *Checker) results(ctx context.Context, path string) ([]Result, error) {
	wrong := func(code, message, hint string) ([]Result, error) {
		return []Result{{Path: path, Problems: []diag.Diagnostic{{
			Code: code, Severity: diag.Error, File: path, Message: message, Hint: hint,
		}}}}, ctx.Err()
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return wrong(CodePathMissing, "there is no such file or folder", "check the spelling of the path")
	case err != nil:
		return wrong(CodeFileUnreadable, causeOf(err), "check that you may read it")
	case info.IsDir():
		return c.folder(ctx, path, "")
	}
	base := filepath.Base(path)
	switch {
	case strings.EqualFold(filepath.Ext(base), ".md"):
		return c.folder(ctx, filepath.Dir(path), base)
	case formats.Of(base) != "":
		return []Result{c.file(path)}, ctx.Err()
	}
	return wrong(CodePathUnsupported, "it is neither a folder nor a file that makes a pack or declares tools", "name a folder, a SKILL.md, a tools.json or a *.tool.json")
}

// folder checks the packs in and below a directory. If entry is not empty, it checks
// only the directory's own pack with this entry document.
func (c *Checker) folder(ctx context.Context, dir, entry string) ([]Result, error) {
	root := packs.Root{Dir: dir, Source: "named", Named: true}
	if entry != "" {
		root.Entry = map[string]string{".": entry}
	}
	catalog, err := packs.Scan(ctx, packs.Options{Roots: []packs.Root{root}, Limits: c.opts.Limits, Patient: true})
	if err != nil {
		return nil, err
	}
	actual, err := filepath.Abs(dir)
	if err == nil {
		actual, err = filepath.EvalSymlinks(actual)
	}
	if err != nil {
		actual = dir
	}
	var results []Result
	all := catalog.All()
	for i, p := range all {
		if c.opts.Progress != nil {
			c.opts.Progress(i, len(all))
		}
		shown := dir
		if rel, err := filepath.Rel(actual, p.Dir); err == nil {
			shown = filepath.Join(dir, rel)
		}
		if entry != "" && p.Dir != actual {
			continue
		}
		if p.Loose {
			results = append(results, c.looseTool(p, shown))
			continue
		}
		folder := shown
		if entry != "" {
			shown = filepath.Join(dir, entry)
		}
		r, err := c.pack(ctx, p, folder, shown)
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	if entry != "" && len(results) > 0 {
		return results, nil
	}
	if problems := c.ofFolder(catalog.Problems()); len(problems) > 0 || len(results) == 0 {
		results = append(results, Result{Path: dir, Problems: problems})
	}
	return results, nil
}

// ofFolder chooses, among the problems of a scan, those that are about the
// folder.
func (c *Checker) ofFolder(problems []diag.Diagnostic) []diag.Diagnostic {
	var kept []diag.Diagnostic
	for _, d := range problems {
		if d.Code == packs.CodeNoPack && c.opts.Profile == ToolPack {
			d.Code, d.Message, d.Hint = CodeNoTools, "no pack and no *.tool.json here", "write a NAME.tool.json"
		}
		kept = append(kept, d)
	}
	return kept
}

// looseTool checks a *.tool.json that is itself a pack.
func (c *Checker) looseTool(p *packs.Pack, path string) Result {
	r := c.file(path)
	s := &subject{opts: &c.opts}
	for _, d := range p.Problems {
		d.File = path
		if slices.Contains(idCodes, d.Code) { // the file's own check reports the rest
			s.take(fromScan, d)
		}
	}
	r.Problems = append(r.Problems, s.problems...)
	return r
}

// idCodes lists the codes about a pack's id among others.
var idCodes = []string{packs.CodeIDReserved, packs.CodeIDCollision, loose.CodeFolder} // never modified

// file checks one tool file that was named without a pack.
func (c *Checker) file(path string) Result {
	r := Result{Path: path}
	base := filepath.Base(path)
	dir, err := packfs.Open(filepath.Dir(path))
	if err != nil {
		r.Problems = append(r.Problems, unreadable(path, err))
		return r
	}
	defer dir.Close()
	src, err := dir.ReadAll(base, c.sizeLimit())
	if err != nil {
		r.Problems = append(r.Problems, unreadable(path, err))
		return r
	}
	format := formats.Of(base)
	set, problems := formats.Parse(format, path, src, c.opts.Tools)
	r.Problems = problems
	if set != nil && format != formats.ToolsJSON && len(set.Tools) == 1 {
		r.Name, r.Description = set.Tools[0].Name, set.Tools[0].Description
	}
	s := &subject{opts: &c.opts, set: set}
	for _, d := range r.Problems {
		from := fromPackFile
		if format == formats.ToolsJSON {
			from = fromList
		}
		s.take(from, d)
	}
	s.loose(path)
	s.jsonTexts(path, src)
	s.programs()
	r.Problems = s.problems
	return r
}

// sizeLimit returns how much of a file is read, in bytes: a little more than a parser
// accepts, so that the parser reports a file that is too large.
func (c *Checker) sizeLimit() int64 { return max(int64(c.opts.Tools.Size), 1<<20) + 1 }

func unreadable(file string, err error) diag.Diagnostic {
	return diag.Diagnostic{
		Code: CodeFileUnreadable, Severity: diag.Error, File: file, Message: causeOf(err), Hint: "make it a plain file that you may read, smaller than the limit",
	}
}

// causeOf returns why a file cannot be read, without its path.
func causeOf(err error) string { return "it cannot be read: " + packfs.Cause(err) }
