// Package envelope turns a run into what a model gets: the output and the files,
// without secrets and deceptive characters, and why a run failed.
//
// It runs nothing, and does not decide what is secret or which exit codes mean success.
package envelope

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/capture"
	"github.com/packs-mcp/packs-mcp/internal/server/toolerr"
	"github.com/packs-mcp/packs-mcp/internal/server/workspace"
)

// A Run is what is known about a program's run besides its result.
type Run struct {
	Output    tools.Output         // how the tool formats its output
	Allows    func(code int) bool  // reports whether an exit code means success
	Secrets   *redact.Secrets      // removed from the envelope
	Workspace *workspace.Workspace // in which it ran
	Local     bool                 // the client is on this machine, so absolute paths are useful
}

// An Envelope is what a model gets for a run.
type Envelope struct {
	OK         bool           `json:"ok"`
	ExitCode   int            `json:"exit_code"`
	Signal     string         `json:"signal,omitempty"`
	Success    *bool          `json:"success,omitempty"` // the name of ok in results of Markdown tools
	Stdout     *string        `json:"stdout,omitempty"`  // like Stderr: in every run except a Markdown tool's, even if empty
	Stderr     *string        `json:"stderr,omitempty"`
	Output     *string        `json:"output,omitempty"` // in a Markdown tool's run, even if empty, and if a tool formats its output
	Truncated  bool           `json:"truncated"`
	DurationMS int64          `json:"duration_ms"`
	Parsed     *any           `json:"parsed,omitempty"`  // only standard output, parsed as JSON
	Error      any            `json:"error,omitempty"`   // a *toolerr.Error; in a Markdown tool's run its message, a string
	Failure    *toolerr.Error `json:"failure,omitempty"` // in a Markdown tool's run, what Error is in others
	Notes      []string       `json:"notes,omitempty"`
	Artifacts  []artifact     `json:"artifacts,omitempty"`
	Changes    []changeSet    `json:"changes,omitempty"`
	Sandbox    string         `json:"sandbox"`
	Runner     string         `json:"runner,omitempty"` // where it ran, if not on the server's system
	RunID      string         `json:"run_id"`
	Workspace  string         `json:"workspace"`

	speak string // text to be spoken, for _meta
	made  []mcp.Content
}

type artifact struct {
	Path      string `json:"path"`           // within the workspace
	File      string `json:"file,omitempty"` // absolute; for a client on this machine
	Type      string `json:"type"`
	MIME      string `json:"mime,omitempty"`
	SizeBytes int64  `json:"size_bytes"`
}

// anyJSON allows every value. It is written so that clients accept it that consider a
// schema without keywords a mistake.
const anyJSON = `{"anyOf":[{"type":"object"},{"type":"array"},{"type":"string"},{"type":"number"},{"type":"boolean"},{"type":"null"}]}`

// Output schemas of runs: of all tools except Markdown tools, and of all tools.
const (
	Schema    = envelopeBefore + toolerr.Property + envelopeBehind
	AnySchema = envelopeBefore + `"note":{"type":"string"},"error":{"anyOf":[` + toolerr.Schema + `,{"type":"string"}]},"failure":` + toolerr.Schema + envelopeBehind
)

const envelopeBefore = `{"type":"object","properties":{"ok":{"type":"boolean"},"exit_code":{"type":"integer"},"signal":{"type":"string"},` +
	`"success":{"type":"boolean"},"stdout":{"type":"string"},"stderr":{"type":"string"},"output":{"type":"string"},"truncated":{"type":"boolean"},` +
	`"duration_ms":{"type":"integer"},"parsed":` + anyJSON + `,`

const envelopeBehind = `,"notes":{"type":"array","items":{"type":"string"}},` +
	`"artifacts":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"file":{"type":"string"},"type":{"type":"string"},"mime":{"type":"string"},"size_bytes":{"type":"integer"}},"required":["path","type"]}},"changes":` + changesSchema + `,` +
	`"sandbox":{"type":"string","enum":["full","partial","none"]},"runner":{"type":"string"},"run_id":{"type":"string"},"workspace":{"type":"string"}}}`

// Failed reports whether the run failed.
func (e *Envelope) Failed() bool { return !e.OK }

// Meta returns what clients get besides the result, and models do not: text to be
// spoken.
func (e *Envelope) Meta() *mcp.Meta {
	if e.speak == "" {
		return nil
	}
	return mcp.NewMetaFromMap(map[string]any{"packs-mcp/speak": e.speak})
}

// Code returns the code of the error; empty if there is none.
func (e *Envelope) Code() string {
	if e.Failure != nil {
		return e.Failure.Code
	}
	if err, ok := e.Error.(*toolerr.Error); ok {
		return err.Code
	}
	return ""
}

// maxLinks is how many artifacts a result links to; the others are listed.
const maxLinks = 20

// Links returns links to the first files that the run made or changed.
func (e *Envelope) Links() []mcp.Content { return e.made }

// Envelope returns the result, made safe to show.
func (r *Run) Envelope(id string, res *sandbox.Result, limits sandbox.Limits) *Envelope {
	e := &Envelope{
		ExitCode: res.ExitCode, Signal: res.Signal,
		DurationMS: res.Duration.Milliseconds(),
		Sandbox:    res.Level.String(), RunID: id, Workspace: r.Workspace.Handle,
		OK: res.Cause == sandbox.CauseExit && res.Signal == "" && r.Allows(res.ExitCode),
	}
	if !res.Place.Local() {
		e.Runner = res.Place.String()
	}
	shown := func(c sandbox.Capture) *string {
		text := r.clean(string(r.uncut(c).Bytes()))
		return &text
	}
	if r.Output.Merged {
		e.Output, e.Truncated, e.Success = shown(res.Merged), res.Merged.Truncated(), &e.OK
	} else {
		e.Stdout, e.Stderr = shown(res.Stdout), shown(res.Stderr)
		e.Truncated = res.Stdout.Truncated() || res.Stderr.Truncated()
	}
	r.format(e, res.Stdout, limits)
	e.fail(r.cause(res, limits, e.OK), r.Output.Merged)
	e.notes(res)
	e.Artifacts, e.made = r.artifacts(res)
	return e
}

// fail sets why a run failed; cause is nil if it did not. specs/skill-md-tools §4.3:
// "error": "Command failed with exit code 1".
func (e *Envelope) fail(cause *toolerr.Error, markdown bool) {
	switch {
	case cause == nil:
	case markdown:
		e.Error, e.Failure = cause.Message, cause
	default:
		e.Error = cause
	}
}

// format adds what the tool makes of standard output. It reads the output before that
// is cut, and cuts the result as the output would be.
func (r *Run) format(e *Envelope, stdout sandbox.Capture, limits sandbox.Limits) {
	raw, isWhole := stdout.All()
	if !isWhole {
		raw = r.uncut(stdout).Bytes()
	}
	out, err := r.Output.Apply(string(raw), isWhole, e.OK)
	if err != nil {
		e.Notes = append(e.Notes, "the output could not be formatted: "+safetext.Line(err.Error()))
	}
	if out.Parsed != nil {
		value := r.cleanValue(*out.Parsed)
		e.Parsed = &value
	}
	e.speak = r.clean(out.Speak)
	switch {
	case !r.formats() || !e.OK && r.Output.Merged:
		return
	case !e.OK || err != nil && !r.Output.Merged:
		e.Output = e.Stdout // unchanged
		return
	case err != nil:
		return
	}
	limits = limits.WithDefaults()
	most := limits.Output
	if r.Output.Merged {
		most = limits.OutputMerged
	}
	formatted := capture.Cut([]byte(r.clean(out.Text)), most)
	text := string(formatted.Bytes())
	e.Output = &text
	if formatted.Truncated() {
		e.Truncated = true
		e.Notes = append(e.Notes, fmt.Sprintf("output: %d of %d bytes left out", formatted.Dropped, formatted.Total))
	}
}

// formats reports whether the tool says how to show its output.
func (r *Run) formats() bool { return r.Output.ExtractField != "" || r.Output.Template != "" }

// uncut returns c without the parts of secrets that are split by the gap between its
// head and its tail.
func (r *Run) uncut(c sandbox.Capture) sandbox.Capture {
	if c.Truncated() {
		c.Head, c.Tail = r.Secrets.HideCut(c.Head, c.Tail)
	}
	return c
}

// clean escapes deceptive characters, and removes secrets.
func (r *Run) clean(text string) string { return safetext.Text(r.Secrets.Hide(text)) }

// cleanValue does the same for every string in a JSON value.
func (r *Run) cleanValue(v any) any {
	switch v := v.(type) {
	case string:
		return r.clean(v)
	case []any:
		for i := range v {
			v[i] = r.cleanValue(v[i])
		}
		return v
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) {
			key := r.clean(k)
			for out[key] != nil {
				key += "_" // two keys that become equal
			}
			out[key] = r.cleanValue(v[k])
		}
		return out
	case json.Number:
		if hidden := r.clean(v.String()); hidden != v.String() {
			return hidden
		}
		return v
	case bool, nil:
		return v
	default:
		return nil
	}
}

// cause returns why a run failed, or nil if it did not. specs/skill-md-tools §4.3 has
// these words for a program that fails by itself.
func (r *Run) cause(res *sandbox.Result, limits sandbox.Limits, ok bool) *toolerr.Error {
	switch res.Cause {
	case sandbox.CauseTimeout:
		return toolerr.New(toolerr.CodeTimeout, "Ask for less at once, or tell the user that the tool is slow.", "the program was stopped after %s", limits.Timeout)
	case sandbox.CauseOutputLimit:
		return toolerr.New(toolerr.CodeOutputLimit, "Ask for less output.", "the program wrote more than %d bytes and was stopped", limits.OutputTotal)
	case sandbox.CauseCancelled:
		return toolerr.New(toolerr.CodeCancelled, "", "the call was cancelled and the program stopped")
	case sandbox.CauseCPULimit:
		return toolerr.New(toolerr.CodeTimeout, "Ask for less at once, or tell the user; the limit is limits.cpu in the configuration.",
			"the program used more than %s of processor time and was stopped", limits.CPU)
	case sandbox.CauseFileSizeLimit:
		return toolerr.New(toolerr.CodeFileSizeLimit, "Tell the user; the limit is limits.file_size in the configuration.",
			"the program wrote a file of more than %d bytes and was stopped%s", limits.FileSize, bySignal(res))
	case sandbox.CauseProcessLimit:
		return toolerr.New(toolerr.CodeProcessLimit, "Tell the user; the limit is limits.processes in the configuration.",
			"the program started more than %d processes and was stopped%s", limits.Processes, bySignal(res))
	case sandbox.CauseMemoryLimit:
		limit := "limits.memory_together"
		if !res.Place.Local() {
			limit += ", or without that limits.memory," // of the whole container
		}
		return toolerr.New(toolerr.CodeMemoryLimit, "Ask for less at once, or tell the user; the limit is "+limit+" in the configuration.",
			"the program's processes together had more memory than they may and were stopped%s", bySignal(res))
	case sandbox.CauseWorkspaceLimit:
		return toolerr.New(toolerr.CodeWorkspaceLimit, "Tell the user; files in the workspace must be removed.", "the program left or wrote more than it may: %d bytes in the workspace, and %d in a copy of a folder", limits.Workspace, limits.Layer)
	case sandbox.CauseCacheLimit:
		return toolerr.New(toolerr.CodeCacheLimit, "Call again: the cache begins empty. If it is said again, tell the user; the limit is limits.cache in the configuration.",
			"the tool's cache was filled with more than it may hold while a run goes on, %d bytes or %d files, and the program was stopped", 2*limits.Cache, 2*limits.CacheNames)
	case sandbox.CauseDiskFull:
		return toolerr.New(toolerr.CodeWorkspaceLimit, "Tell the user to make room on the disk.", "the disk of the audit log was about to be full, and the program was stopped")
	}
	switch {
	case ok:
		return nil
	case res.Signal != "":
		return toolerr.New(toolerr.CodeCommandFailed, "Read the output for the cause.", "Command was ended by %s", res.Signal)
	default:
		return toolerr.New(toolerr.CodeCommandFailed, "Read the output for the cause.", "Command failed with exit code %d", res.ExitCode)
	}
}

func bySignal(res *sandbox.Result) string {
	if res.Signal == "" {
		return ""
	}
	return " by " + res.Signal
}

// notes adds what else a reader of the result has to know.
func (e *Envelope) notes(res *sandbox.Result) {
	for _, c := range []struct {
		name string
		of   sandbox.Capture
	}{{"stdout", res.Stdout}, {"stderr", res.Stderr}, {"output", res.Merged}} {
		switch {
		case !c.of.Truncated() || (c.name == "output") != (e.Success != nil):
		case c.of.File != "":
			e.Notes = append(e.Notes, fmt.Sprintf("%s: %d of %d bytes left out; all of it is in the workspace as %s", c.name, c.of.Dropped, c.of.Total, safetext.Quote(c.of.File)))
		default:
			e.Notes = append(e.Notes, fmt.Sprintf("%s: %d of %d bytes left out, and not kept: %s", c.name, c.of.Dropped, c.of.Total, safetext.Line(c.of.NotKept)))
		}
	}
	e.addChanges(res)
	if res.Cache.Full {
		e.Notes = append(e.Notes, "the tool's cache was full and is emptied; the next run begins without it")
	}
	for _, s := range res.Skipped {
		e.Notes = append(e.Notes, fmt.Sprintf("not an artifact: %s: %s", safetext.Quote(s.Path), safetext.Line(s.Reason)))
	}
	for _, c := range res.Contacts {
		if c.Refused != "" {
			e.Notes = append(e.Notes, fmt.Sprintf("%s was not reached: %s", safetext.Quote(c.Host), c.Refused))
		}
	}
	if res.MoreArtifacts > 0 {
		e.Notes = append(e.Notes, fmt.Sprintf("%d more files were made or changed than are listed", res.MoreArtifacts))
	}
	if res.Incomplete {
		e.Notes = append(e.Notes, "the workspace has too many files to look at all of them; artifacts may be missing")
	}
}

// artifacts returns the files that the program made or changed, and links to the
// first of them.
func (r *Run) artifacts(res *sandbox.Result) (out []artifact, links []mcp.Content) {
	dir, err := r.Workspace.Open()
	if err == nil {
		defer dir.Close()
	}
	for _, a := range res.Artifacts {
		art := artifact{Path: safetext.Line(a.Path), Type: "file", SizeBytes: a.Size}
		if r.Local {
			art.File = safetext.Line(filepath.Join(r.Workspace.Dir, filepath.FromSlash(a.Path)))
		}
		if err == nil {
			if page, err := dir.Read(a.Path, 0, 1, packfs.Limits{File: 1 << 62}); err == nil {
				art.MIME = page.MIME
			}
		}
		out = append(out, art)
		if _, err := packfs.Clean(a.Path); err == nil && len(links) < maxLinks {
			links = append(links, mcp.ResourceLink{
				Type: mcp.ContentTypeLink, URI: r.Workspace.URI(a.Path), Name: art.Path,
				Description: "made by this run", MIMEType: art.MIME, Size: &a.Size,
			})
		}
	}
	return out, links
}
