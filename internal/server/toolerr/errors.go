// Package toolerr defines what a model or a client is told about an error: a code,
// what happened, and what to do now. [Known] turns the errors of other packages into
// that.
//
// It does not log, and it does not find out what went wrong. Models are told nothing
// about errors that it does not know: the server gives them a reference, and logs the
// cause.
package toolerr

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/packs-mcp/packs-mcp/internal/gate"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/plan"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// The codes of errors that a model gets. docs/reference/errors.md is made from this.
const (
	CodeNotFound           = "not_found"           // there is no such pack, tool, file or workspace; near may name what was meant
	CodeNotAttached        = "not_attached"        // the pack may not be used: it is not attached, not valid, or not meant for this
	CodeDenied             = "denied"              // a person, a rule or a doubt said no; with approval_code, a person can still allow it
	CodeApprovalPending    = "approval_pending"    // nobody has answered yet; the answer counts for the same call, made again
	CodePathDenied         = "path_denied"         // the path leads out of the pack or into another, or what is there changed or cannot be given
	CodeTooLarge           = "too_large"           // a file, a pack or the arguments are over a bound, which the hint names
	CodeInvalidArguments   = "invalid_arguments"   // the arguments do not fit; schema says what does
	CodeInvalidTools       = "invalid_tools"       // the pack has no tools, or they cannot be read; problems says why
	CodeNotEnabled         = "not_enabled"         // the pack's tools were not enabled in this chat
	CodeNotExecutable      = "not_executable"      // the tool is declared without a command, or the system cannot start its program
	CodeToolListTooLarge   = "tool_list_too_large" // more tools would be enabled than limits.enabled_tools
	CodeProgramNotFound    = "program_not_found"   // the program is missing, or the interpreter that its first line names
	CodePermissionDenied   = "permission_denied"   // the program may not be executed
	CodeCommandFailed      = "command_failed"      // the program ended with a status that counts as failure, or by a signal
	CodeTimeout            = "timeout"             // the program took too long, by the clock or in processor time
	CodeOutputLimit        = "output_limit"        // the program printed more than limits.output_total
	CodeCancelled          = "cancelled"           // the client took the call back, or is gone
	CodeWorkspaceLimit     = "workspace_limit"     // the program wrote more than it may, or the disk of the audit log was about to be full
	CodeCacheLimit         = "cache_limit"         // the tool's cache held more than it may; the next run begins with an empty one
	CodeFileSizeLimit      = "file_size_limit"     // the program wrote a file larger than limits.file_size
	CodeMemoryLimit        = "memory_limit"        // all processes of the program together had more memory than limits.memory_together, or in a container without that, than limits.memory
	CodeProcessLimit       = "process_limit"       // the program started more processes than limits.processes
	CodeOverLimit          = "over_limit"          // the person, or one of their groups, has reached a limit in http for programs that run, for their memory, or for calls that wait for an answer; nothing was started, and the call can be made again later
	CodeFolderBusy         = "folder_busy"         // another run had the folder for longer than sandbox.timeout_max; nothing was started
	CodeStoreUnavailable   = "store_unavailable"   // the store that replicas share cannot be reached; nothing was decided
	CodeSandboxUnavailable = "sandbox_unavailable" // the sandbox is weaker than required, or did not work; nothing was started
	CodeMissingContext     = "missing_context"     // the tool needs something that the user looks at, and nobody gave it
	CodeInternalError      = "internal"            // the cause is in the server's log only, under reference
)

// An Error is what a model gets instead of a result: what happened, and
// what to do now. Its texts are safe to show.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	// Near are ids or names that look like what was asked for.
	Near []string `json:"near,omitempty"`
	// Schema is what the arguments should have been.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Problems are what is wrong with a pack's file, or with the arguments.
	Problems []diag.Diagnostic `json:"problems,omitempty"`
	// ApprovalCode names the call for a person who can still allow it.
	ApprovalCode string `json:"approval_code,omitempty"`
	// Reference finds the cause in the server's log.
	Reference string `json:"reference,omitempty"`

	// Folder is the folder of a pack that was not valid when it was last read. The
	// pack may have been repaired since.
	Folder string `json:"-"`
}

// Property declares an error in the output schemas of tools. The schemas require no
// property, since an error comes alone: the official TypeScript client 1.x checks the
// structured content of errors against the schema too, and throws.
//
// A note is what the model should know besides the result.
const Property = `"note":{"type":"string"},"error":` + Schema

// Schema is the JSON Schema of an error.
const Schema = `{"type":"object","properties":{"code":{"type":"string"},"message":{"type":"string"},"hint":{"type":"string"}},"required":["code","message"]}`

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// An OutdatedError says that a pack now describes itself differently than in the
// call's Catalog, or that its folder has been replaced.
type OutdatedError struct {
	Pack *packs.Pack
	Err  error // nil: its entry document has changed
}

func (e *OutdatedError) Unwrap() error { return e.Err }

func (e *OutdatedError) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return fmt.Sprintf("the entry document of pack %q is another one than when it was looked at", e.Pack.ID)
}

// MaxQuoted is how many characters of a client's text an error repeats.
const MaxQuoted = 200

// New returns an error with a message whose text is safe to show.
func New(code, hint, format string, args ...any) *Error {
	return &Error{Code: code, Message: safetext.Line(fmt.Sprintf(format, args...)), Hint: hint}
}

// Known returns what a model may know about an error, or nil if the error is not
// known here.
func Known(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	for _, f := range []func(error) *Error{ExplainGate, explainPacks, explainTools, explainPlan, ExplainSandbox} {
		if e := f(err); e != nil {
			return e
		}
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, wire.ErrCancelled) || errors.Is(err, wire.ErrEnded) {
		return New(CodeCancelled, "", "the call was cancelled")
	}
	return nil
}

// ExplainGate is [Known] for the errors of the gate only.
func ExplainGate(err error) *Error {
	if e, ok := errors.AsType[*gate.DeniedError](err); ok {
		code := CodeDenied
		if e.Unavailable {
			code = CodeStoreUnavailable
		} else if e.OverLimit {
			code = CodeOverLimit
		}
		return &Error{Code: code, Message: safetext.Line(e.Reason), Hint: e.Hint, ApprovalCode: e.Code}
	}
	if e, ok := errors.AsType[*gate.PendingError](err); ok {
		hint := e.Hint
		if e.InChat {
			hint = strings.TrimSpace("Call capability_packs_approvals now: it shows the user a card to answer on. When they have answered, make exactly the same call again. " + e.Hint)
		}
		return &Error{Code: CodeApprovalPending, Message: safetext.Line(e.Error()), Hint: hint, ApprovalCode: e.Code}
	}
	if e, ok := errors.AsType[*gate.WeakSandboxError](err); ok {
		hint := "No program runs until a stronger sandbox is available, or the user lowers sandbox.require in the configuration. Documents and files can still be read."
		if !e.Place.Local() {
			hint = "Nothing was started. Tell the user: the configuration has this run in a container."
		}
		if e.Network != sandbox.NetworkNone {
			hint = "Do without this tool, and tell the user that it cannot run on this machine as it is."
		}
		return New(CodeSandboxUnavailable, hint+onThisMachine(e.Hint), "%v", e)
	}
	return nil
}

// onThisMachine appends to a hint how to get a better sandbox, or where to find that.
func onThisMachine(hint string) string {
	if hint == "" {
		return " packs-mcp doctor tells the user more."
	}
	return " For the user, what would help on this machine: " + safetext.Line(hint)
}

// NamingOnly removes from a lookup error the ids that a client may not know: what is
// in no list must not be in a hint either.
func NamingOnly(err error, known func(id string) bool) error {
	hidden := func(id string) bool { return !known(id) }
	if e, ok := errors.AsType[*packs.NotFoundError](err); ok {
		return &packs.NotFoundError{ID: e.ID, Near: slices.DeleteFunc(slices.Clone(e.Near), hidden)}
	}
	if e, ok := errors.AsType[*packs.AmbiguousError](err); ok {
		matches := slices.DeleteFunc(slices.Clone(e.Matches), hidden)
		if len(matches) < 2 {
			return &packs.NotFoundError{ID: e.ID, Near: matches} // as if no other pack existed
		}
		return &packs.AmbiguousError{ID: e.ID, Matches: matches}
	}
	return err
}

func explainPacks(err error) *Error {
	if e, ok := errors.AsType[*packs.NotFoundError](err); ok {
		t := New(CodeNotFound, "Call capability_packs_list for the packs there are.", "%v", e)
		t.Near = e.Near
		return t
	}
	if e, ok := errors.AsType[*packs.AmbiguousError](err); ok {
		t := New(CodeNotFound, "Give the whole id.", "%v", e)
		t.Near = e.Matches
		return t
	}
	if e, ok := errors.AsType[*packfs.TooLargeError](err); ok && e.Tree {
		if e.Unit != "" {
			return New(CodeTooLarge, "Tell the user to move files out of the pack; no setting raises this limit.", "%v", err)
		}
		return New(CodeTooLarge, "Tell the user: the limit is limits.pack_size in the configuration.", "%v", err)
	}
	if _, ok := errors.AsType[*packfs.TooLargeError](err); ok {
		return New(CodeTooLarge, "Tell the user. A program can still work on it; the limits are under limits: in the configuration.", "%v", err)
	}
	switch {
	case errors.Is(err, packfs.ErrNotFound):
		return New(CodeNotFound, "Read the folder it should be in for what is there; path \".\" is the top.", "%v", err)
	case errors.Is(err, packfs.ErrOutside):
		return New(CodePathDenied, "Name a file inside the pack, relative to its top.", "%v", err)
	case errors.Is(err, packfs.ErrOffset):
		return New(CodeInvalidArguments, "Begin at offset 0, or at the next_offset of the page before.", "%v", err)
	case errors.Is(err, packfs.ErrReplaced):
		return New(CodePathDenied, "Call again; if this is said again, tell the user to look at the folder.", "another folder was put in the place of this pack or workspace")
	case errors.As(err, new(*OutdatedError)):
		return New(CodePathDenied, "Call again; if this is said again, tell the user to look at the pack.", "%v", err)
	case errors.Is(err, packfs.ErrChanged):
		return New(CodePathDenied, "Call again.", "%v", err)
	}
	if errors.Is(err, packfs.ErrOddName) {
		return New(CodePathDenied, "Tell the user to rename it.", "%v", err)
	}
	if e, ok := errors.AsType[*packfs.PathError](err); ok {
		return New(CodePathDenied, "Only regular files and folders inside the pack can be read. Tell the user if this one should be.", "%v", e)
	}
	return nil
}

func explainTools(err error) *Error {
	if e, ok := errors.AsType[*tools.ArgumentError](err); ok {
		t := New(CodeInvalidArguments, "Correct the arguments and call again.", "the arguments do not fit the tool: %s", strings.Join(e.Problems, "; "))
		t.Schema = ReadableSchema(e.Schema) // as in lists, which say what is hidden in it
		return t
	}
	if e, ok := errors.AsType[*tools.LeadingDashError](err); ok {
		return New(CodeInvalidArguments, "The program could take it for an option. Leave the dash out, or ask the user.", "%v", e)
	}
	if e, ok := errors.AsType[*tools.NULError](err); ok {
		return New(CodeInvalidArguments, "Correct the arguments and call again.", "%v", e)
	}
	if e, ok := errors.AsType[*tools.MissingContextError](err); ok {
		return New(CodeMissingContext, contextHint(e), "%v", e)
	}
	if errors.Is(err, tools.ErrDeclaredOnly) {
		return New(CodeNotExecutable, "Read the pack's documents for how it is meant to be used.", "the tool is declared without a command")
	}
	return nil
}

// contextHint says how to give the context that a tool needs: with the parameters
// that take it, or in the user's configuration.
func contextHint(e *tools.MissingContextError) string {
	set := fmt.Sprintf("ask them to set %s under context: in the configuration.", strings.Join(e.Names, ", "))
	if len(e.Params) == 0 {
		return "Tell the user, and " + set
	}
	named := make([]string, len(e.Params))
	for i, p := range e.Params {
		named[i] = strconv.Quote(safetext.Line(p))
	}
	return fmt.Sprintf("Ask the user for it and pass it as %s, or %s", strings.Join(named, ", "), set)
}

// explainPlan explains why a run cannot be planned.
func explainPlan(err error) *Error {
	if e, ok := errors.AsType[*plan.FolderError](err); ok {
		return New(CodePathDenied, folderHint(e.Problem), "%v", e)
	}
	if e, ok := errors.AsType[*plan.ForeignError](err); ok {
		switch {
		case e.Other == "":
			return New(CodeNotAttached, "Go on without it.", "%v", e)
		case !e.Attached:
			return New(CodeNotAttached, "Do without it, or tell the user what you wanted it for: they can attach the pack, and it then has calls of its own.", "%v", e)
		}
		return New(CodePathDenied, fmt.Sprintf("Call again with pack_id %q: what belongs to that pack runs as that pack's own.", e.Other), "%v", e)
	}
	if errors.Is(err, plan.ErrManyInputs) {
		return New(CodeTooLarge, "Name fewer or smaller files.", "%v", plan.ErrManyInputs)
	}
	return nil
}

func folderHint(p plan.FolderProblem) string {
	switch p {
	case plan.FolderHoldsHome:
		return "Tell the user to move the pack into a folder of its own."
	case plan.FolderHoldsPrivate:
		return "Tell the user to set PACKS_MCP_HOME, XDG_STATE_HOME or XDG_RUNTIME_DIR to a folder outside of it, or to keep the configuration with its tokens elsewhere."
	case plan.FolderUnusable:
		return "Tell the user; the folder is gone or cannot be read."
	}
	return "Name a folder inside the workspace, the project or the pack."
}

// ExplainSandbox is [Known] for the errors of starting a program only.
func ExplainSandbox(err error) *Error {
	if e, ok := errors.AsType[*program.NotFoundError](err); ok {
		hint := "Tell the user which program is missing; they can install it, or put it on PATH."
		if e.NeededBy != "" {
			hint = "Tell the user: the first line of the script names a program that is missing or cannot be followed; they can install it, or correct the line."
		}
		t := New(CodeProgramNotFound, hint, "%v", e)
		t.Near = e.Near
		return t
	}
	if e, ok := errors.AsType[*program.NotExecutableError](err); ok {
		return New(CodePermissionDenied, "Tell the user; the file needs permission to be executed.", "%v", e)
	}
	if e, ok := errors.AsType[*program.ChangedError](err); ok {
		return New(CodeDenied, "Call again; the user will be asked about the new program.", "%v", e)
	}
	if e, ok := errors.AsType[*sandbox.StartError](err); ok {
		switch {
		case errors.Is(e, fs.ErrPermission):
			return New(CodePermissionDenied, "Tell the user; the program cannot be executed.", "%v", e)
		case errors.Is(e, fs.ErrNotExist):
			return New(CodeProgramNotFound, "The program, or the interpreter that its first line names, is missing. Tell the user.", "%v", e)
		default:
			return New(CodeNotExecutable, "Tell the user; the system cannot start this program.", "%v", e)
		}
	}
	if e, ok := errors.AsType[*sandbox.ConfineError](err); ok {
		return New(CodeSandboxUnavailable, "Nothing was started. Call again; if this is said again, tell the user to run: packs-mcp doctor",
			"the sandbox could not be set up for this run: %v", e)
	}
	if e, ok := errors.AsType[*sandbox.TooLargeError](err); ok {
		return New(CodeTooLarge, "Pass less, or put it in a file.", "%v", e)
	}
	if e, ok := errors.AsType[*sandbox.CommandError](err); ok && e.Folder {
		return New(CodePathDenied, "Tell the user; a folder that the program needs is gone, or another was put in its place.", "%v", e)
	}
	if e, ok := errors.AsType[*sandbox.CommandError](err); ok {
		return New(CodeInvalidArguments, "Correct the arguments and call again.", "%v", e)
	}
	if errors.Is(err, syscall.E2BIG) {
		return New(CodeTooLarge, "Pass less, or put it in a file.", "%v", err)
	}
	return nil
}

// IsMissing reports whether an error says that something does not exist, or is not a
// file of the pack.
func IsMissing(err error) bool {
	return matchesAny(err, packfs.ErrNotFound, packfs.ErrOutside, packfs.ErrNotRegular, packfs.ErrIsDir, packfs.ErrNotDir, packfs.ErrHardLink)
}

// matchesAny reports whether err is one of the targets.
func matchesAny(err error, targets ...error) bool {
	return slices.ContainsFunc(targets, func(t error) bool { return errors.Is(err, t) })
}
