package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// A LayerKind says how a run may change a folder of the user's without writing
// to it.
type LayerKind int

const (
	LayerReadOnly LayerKind = iota // not at all
	LayerOverlay                   // the folder itself is seen, what is written goes elsewhere, in memory
	LayerClone                     // it works on a copy that shares its blocks with the folder
	LayerCopy                      // it works on a copy
)

var layerNames = []string{"read-only", "overlay", "clone", "copy"}

// String returns "read-only", "overlay", "clone" or "copy".
func (k LayerKind) String() string { return enumString(layerNames, int(k), "LayerKind") }

// A Layer is a folder of the user's that a run may change, and how. What the run
// changed is a change set afterwards; see [Result.Changes].
type Layer struct {
	Folder string // absolute, without symbolic links
	Kind   LayerKind
	Reason string // for people: why it is no better Kind; empty for [LayerOverlay]
}

// Layers says what layers a run gets of these folders, which are absolute. Of
// folders in each other only the outermost counts. Nothing is made yet.
func (r *Runner) Layers(ctx context.Context, folders []string) []Layer {
	if len(folders) == 0 {
		return nil
	}
	_, s := r.best(ctx)
	var layers []Layer
	for _, dir := range outermost(folders) {
		layers = append(layers, r.layer(s, dir))
	}
	return layers
}

// layer finds out what layer a folder can have.
func (r *Runner) layer(s starter, dir string) Layer {
	l := Layer{Folder: dir}
	if l.Reason = s.overlays(dir); l.Reason == "" {
		l.Kind = LayerOverlay
		return l
	}
	kind, why := r.copyable(dir)
	l.Kind = kind
	if why != "" {
		l.Reason += "; " + why
	}
	return l
}

// outermost returns the folders that are in none of the others, sorted.
func outermost(folders []string) []string {
	var out []string
	for _, dir := range slices.Sorted(slices.Values(folders)) {
		dir = filepath.Clean(dir)
		if !insideAny(out, dir) {
			out = append(out, dir)
		}
	}
	return out
}

// noNamespaces is why a level that shows a run the user's own file system has no
// layers in memory.
const noNamespaces = "this level shows a run no file system of its own"

// layers are those of one run.
type layers struct{ all []*layer }

// A layer is one folder's.
type layer struct {
	Layer
	info os.FileInfo // of the folder, when it was looked at
	dir  *os.File    // with LayerOverlay: what the run changed, once it was started
	from string      // with LayerClone and LayerCopy: the copy
}

// openLayers looks at the folders of a plan.
func openLayers(plan []Layer) (*layers, error) {
	l := &layers{}
	for _, p := range plan {
		info, err := os.Lstat(p.Folder)
		if err == nil && !info.IsDir() {
			err = errNoFolder
		}
		if err != nil {
			return nil, &CommandError{Folder: true, Problem: fmt.Sprintf("layered folder %q", p.Folder), Err: err}
		}
		l.all = append(l.all, &layer{Layer: p, info: info})
	}
	return l, nil
}

// errNoFolder is what is wrong with something that should be a folder.
var errNoFolder = errors.New("is not a folder")

// give takes the descriptors of the overlays, in the order of their folders.
func (l *layers) give(dirs []*os.File) {
	if l != nil {
		for _, one := range l.all {
			if one.Kind == LayerOverlay && len(dirs) > 0 {
				one.dir, dirs = dirs[0], dirs[1:]
			}
		}
	}
	for _, dir := range dirs {
		_ = dir.Close()
	}
}

// close gives back what the layers hold. What the run changed is lost, unless it
// was taken before.
func (l *layers) close() {
	if l == nil {
		return
	}
	for _, one := range l.all {
		if one.dir != nil {
			_ = one.dir.Close()
		}
	}
}
