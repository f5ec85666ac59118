package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/images"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/temp"
)

// Layers returns the layers that a run would get for these absolute folders. A folder
// inside another is left out. Nothing is made yet.
func (r *Runner) Layers(ctx context.Context, folders []string) []sandbox.Layer {
	if len(folders) == 0 {
		return nil
	}
	_, s := r.best(ctx)
	var all []sandbox.Layer
	for _, dir := range outermost(folders) {
		all = append(all, r.layer(s, dir, sandbox.Look{}))
	}
	return all
}

// layer returns the best layer that a folder can have. If the folder still matches
// was, it need not be examined again for an overlay.
func (r *Runner) layer(s level.Starter, dir string, was sandbox.Look) sandbox.Layer {
	l := sandbox.Layer{Folder: dir}
	if r.o.Changes == nil {
		l.Reason = "there is no place to keep changes in"
		return l
	}
	if l.Looked, l.Reason = s.Overlays(dir, was); l.Reason == "" {
		l.Kind = sandbox.LayerOverlay
		return l
	}
	kind, why := r.copyable(dir)
	l.Kind = kind
	if why != "" {
		l.Reason += ", and " + why
	}
	return l
}

// outermost returns, sorted, the folders that are in no other.
func outermost(folders []string) []string {
	var out []string
	for _, dir := range slices.Sorted(slices.Values(folders)) {
		dir = filepath.Clean(dir)
		if !paths.Inside(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// errNoFolder reports that a path leads to something other than a folder.
var errNoFolder = errors.New("is not a folder")

// layers are the layers of one run; nil: it has none.
type layers struct {
	turn *changes.Turn // nil: every folder is read-only
	all  []*layer
}

// A layer is the layer of one folder.
type layer struct {
	sandbox.Layer
	index int         // of the folder in the turn; -1: read-only
	info  os.FileInfo // of the folder, when it was opened

	dir  *os.File      // the run's changes; with LayerOverlay, set after the start
	copy *changes.Copy // with LayerClone and LayerCopy: the state that was copied
	from string        // and where to, without symbolic links
	temp *temp.Folder  // the same folder
}

// openLayers waits for the run's turn in its folders, checks that the planned layers
// are still possible, and makes the copies. The starter makes the overlays.
func (r *Runner) openLayers(ctx context.Context, s level.Starter, p *sandbox.Policy, c *sandbox.Command) (_ *layers, err error) {
	if len(p.Layers) == 0 {
		return nil, nil
	}
	l := &layers{}
	defer func() {
		if err != nil {
			r.closeLayers(l)
		}
	}()
	var folders []changes.Folder
	for _, plan := range p.Layers {
		one := &layer{Layer: plan, index: -1}
		l.all = append(l.all, one)
		if plan.Kind != sandbox.LayerReadOnly {
			one.index = len(folders)
			folder := changes.Folder{Path: plan.Folder}
			if plan.IsGit() {
				folder.Git = &plan.Git
			}
			folders = append(folders, folder)
		}
	}
	if len(folders) > 0 {
		if r.o.Changes == nil {
			return nil, &sandbox.CommandError{Problem: "there is no place to keep changes in"}
		}
		if l.turn, err = r.takeTurn(ctx, c, folders); err != nil {
			return nil, err
		}
	}
	for _, one := range l.all {
		if err := r.openLayer(ctx, s, l, one, p.Limits); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// errTurnWait is the cause when a wait for a turn times out.
var errTurnWait = errors.New("it did not end in time")

// takeTurn waits for the run's turn in its folders, and tells the caller when it has
// to wait. If Ready returns an error, takeTurn returns that error with the turn,
// which must still be closed.
func (r *Runner) takeTurn(ctx context.Context, c *sandbox.Command, folders []changes.Folder) (*changes.Turn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.o.TurnWait, errTurnWait)
	defer cancel()
	over := func() {}
	turn, err := r.o.Changes.Begin(ctx, changes.Run{ID: c.RunID, Pack: c.Pack, Tool: c.Tool}, func(h changes.Holder) {
		if c.Waiting != nil {
			over = c.Waiting(h)
		}
	}, folders...)
	over()
	if e, ok := errors.AsType[*changes.WaitError](err); ok && errors.Is(e, errTurnWait) {
		return nil, &sandbox.BusyError{Holder: e.Holder, Waited: r.o.TurnWait}
	}
	if err != nil {
		return nil, fmt.Errorf("taking the run's turn in its folders: %w", err)
	}
	if c.Ready != nil {
		err = c.Ready()
	}
	return turn, err
}

func (r *Runner) openLayer(ctx context.Context, s level.Starter, l *layers, one *layer, limits sandbox.Limits) error {
	if now := r.layer(s, one.Folder, one.Looked); now.Kind != one.Kind {
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("the layer of %q can be only %s now: %s", one.Folder, now.Kind, now.Reason)}
	}
	var err error
	if one.info, err = os.Lstat(one.Folder); err == nil && !one.info.IsDir() {
		err = errNoFolder
	}
	if err != nil {
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("layered folder %q", one.Folder), Err: err}
	}
	if one.index < 0 {
		return nil
	}
	same, err := l.turn.Handle(one.index).Stat()
	if err != nil || !os.SameFile(same, one.info) {
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("layered folder %q was replaced", one.Folder), Err: err}
	}
	if one.Kind == sandbox.LayerClone || one.Kind == sandbox.LayerCopy {
		return r.copyLayer(ctx, l, one, limits)
	}
	return nil
}

// copyLayer copies a folder for a run, which sees the copy in the folder's place.
func (r *Runner) copyLayer(ctx context.Context, l *layers, one *layer, limits sandbox.Limits) error {
	folder, err := temp.New(r.o.CopyDir)
	if err != nil {
		return fmt.Errorf("making a folder for a copy of %q: %w", one.Folder, err)
	}
	one.temp = folder
	if one.from, err = filepath.EvalSymlinks(folder.Path); err != nil {
		return fmt.Errorf("making a folder for a copy of %q: %w", one.Folder, err)
	}
	if one.dir, err = os.Open(one.from); err != nil {
		return fmt.Errorf("making a folder for a copy of %q: %w", one.Folder, err)
	}
	most := changes.CopyLimits{Bytes: maxCopiedBytes, Names: maxCopied}
	if one.Kind == sandbox.LayerClone {
		most = changes.CopyLimits{Names: maxCloned, CloneOnly: true}
	}
	one.copy, err = l.turn.Copy(ctx, one.index, one.dir, most)
	if err != nil {
		return &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("copying %q for the run", one.Folder), Err: err}
	}
	return nil
}

// images returns the copies as images at the paths of their folders.
func (l *layers) images() images.List {
	var im images.List
	if l == nil {
		return nil
	}
	for _, one := range l.all {
		if one.copy != nil {
			im = append(im, images.Image{At: one.Folder, From: one.from, Writable: true})
		}
	}
	return im
}

// readOnly returns the folders that can have no layer.
func (l *layers) readOnly() []string {
	var dirs []string
	if l == nil {
		return nil
	}
	for _, one := range l.all {
		if one.Kind == sandbox.LayerReadOnly {
			dirs = append(dirs, one.Folder)
		}
	}
	return dirs
}

// overlays returns the folders that the starter puts overlays on.
func (l *layers) overlays() []level.Folder {
	var all []level.Folder
	if l == nil {
		return nil
	}
	for _, one := range l.all {
		if one.Kind == sandbox.LayerOverlay {
			all = append(all, level.Folder{Path: one.Folder, Info: one.info})
		}
	}
	return all
}

// give takes ownership of the overlays' descriptors, in the order of their folders.
func (l *layers) give(dirs []*os.File) {
	if l != nil {
		for _, one := range l.all {
			if one.Kind == sandbox.LayerOverlay && one.dir == nil && len(dirs) > 0 {
				one.dir, dirs = dirs[0], dirs[1:]
			}
		}
	}
	for _, dir := range dirs {
		_ = dir.Close()
	}
}

// finish turns the run's changes into change sets, and applies them unless the run
// was ended early. It is called once, after every process of the run has ended.
func (l *layers) finish(ctx context.Context, p *sandbox.Policy, res *sandbox.Result, lost bool) {
	if l == nil || l.turn == nil {
		return
	}
	end := changes.Ending{Review: p.Review}
	switch {
	case res.Cause != sandbox.CauseExit:
		end.Killed = endedBy(res.Cause)
	case lost:
		end.Killed = "what watched over it was killed"
	}
	// A cancelled call must not lose the run's changes. But a hostile layer can take
	// hours to read, and other runs wait for the turn.
	ctx, done := context.WithTimeoutCause(context.WithoutCancel(ctx), finishTime, errFinishTime)
	defer done()
	var failed []error
	for _, one := range l.all {
		if one.index < 0 {
			continue
		}
		if one.dir == nil {
			failed = append(failed, errLostLayer)
			continue
		}
		end.GitWrite = p.GitWrite && (one.Commits || one.IsGit())
		sets, err := l.turn.Finish(ctx, end, changes.Layer{Folder: one.index, Dir: one.dir, Copy: one.copy})
		res.Changes = append(res.Changes, sets...)
		failed = append(failed, err)
	}
	if err := errors.Join(failed...); err != nil {
		res.ChangesProblem = err.Error()
	}
}

// endedBy describes for people what ended a run.
func endedBy(c sandbox.Cause) string {
	switch c {
	case sandbox.CauseExit:
		return ""
	case sandbox.CauseTimeout:
		return "the time limit"
	case sandbox.CauseOutputLimit:
		return "the limit on output"
	case sandbox.CauseCancelled:
		return "the call being cancelled"
	case sandbox.CauseWorkspaceLimit:
		return "the limit on the workspace"
	case sandbox.CauseCacheLimit:
		return "the limit on the cache"
	case sandbox.CauseDiskFull:
		return "the disk of the audit log being almost full"
	case sandbox.CauseCPULimit:
		return "the limit on processor time"
	case sandbox.CauseFileSizeLimit:
		return "the limit on the size of a file"
	case sandbox.CauseProcessLimit:
		return "the limit on processes"
	}
	return string(c)
}

// finishTime is how long reading and staging the changes of a run may take.
const finishTime = 5 * time.Minute

var errFinishTime = fmt.Errorf("reading them took more than %v", finishTime)

// errLostLayer reports that an overlay's contents never arrived.
var errLostLayer = errors.New("what the run changed is lost: the sandbox helper did not hand it over")

// closeLayers releases everything that the layers hold. Changes that finish did not
// process are lost.
func (r *Runner) closeLayers(l *layers) {
	if l == nil {
		return
	}
	for _, one := range l.all {
		if one.dir != nil {
			_ = one.dir.Close()
		}
		if one.temp != nil {
			if err := one.temp.Remove(); err != nil {
				r.o.Logger.Warn("a run's copy of a folder is left", "dir", one.temp.Path, "err", err)
			}
		}
	}
	if l.turn != nil {
		if err := l.turn.Close(); err != nil {
			r.o.Logger.Warn("a run's turn in its folders did not end as it should", "err", err)
		}
	}
}

// place shows the run its copies instead of the folders, and makes folders without a
// layer read-only. Where the level has a file system of its own, copies become
// images; elsewhere the run gets the copies' paths.
func (l *layers) place(s level.Starter, p sandbox.Policy, c sandbox.Command, im images.List) (sandbox.Policy, sandbox.Command, images.List, error) {
	if dirs := l.readOnly(); len(dirs) > 0 {
		p.ReadOnly = slices.Concat(p.ReadOnly, dirs)
		// Even "git status" refreshes the index, and would fail in a read-only folder.
		c.Env = sandbox.MergeEnv(c.Env, []string{"GIT_OPTIONAL_LOCKS=0"})
	}
	copies := l.images()
	if len(copies) == 0 {
		return p, c, im, nil
	}
	// From here on the working folder may be in a copy, so check it now.
	if err := checkDirID(&c); err != nil {
		return p, c, im, err
	}
	if s.Places() {
		return p, c, slices.Concat(im, copies), nil
	}
	p, c, err := copies.Rename(p, c)
	return p, c, im, err
}
