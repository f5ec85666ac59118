package layer

import (
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/protect"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/record"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes/tree"
)

// classify decides the state of each op, and drops those that need no mention: git's
// refreshed indexes, and files that the commits explain.
func (r *reading) classify() {
	c := newClassifier(r)
	c.gitFolders()
	if len(r.ops) > 0 {
		c.findAims()
	}
	kept := r.ops[:0]
	for i := range r.ops {
		o := &r.ops[i]
		if o.Git {
			if o.State == "" {
				o.State = record.Applied
				c.held(o)
			}
		} else if c.decide(o) {
			continue
		}
		if o.State != record.Applied {
			c.blocks(o)
		}
		kept = append(kept, *o)
	}
	r.ops = kept
	for i := range r.ops {
		r.ops[i].Slot = strconv.Itoa(i)
	}
}

func newClassifier(r *reading) *classifier {
	return &classifier{
		reading: r, git: map[string]bool{}, newGit: map[string]bool{},
		open: map[string]bool{}, stays: map[string]bool{}, taken: map[string]bool{},
	}
}

type classifier struct {
	*reading
	git map[string]bool // :: folder → by its content, it is or would be a git folder
	// newGit lists the folders of git that are not git folders yet.
	newGit map[string]bool
	open   map[string]bool // :: folder → it will not be made, or is not the run's
	stays  map[string]bool // :: folder → something in it stays
	taken  map[string]bool // :: path → its file stays
	aims   []aim
}

// decide sets the state of an op. It reports whether the op is dropped.
func (c *classifier) decide(o *record.Op) (drop bool) {
	if o.State == record.Refused {
		return false
	}
	if why, reason := c.refused(o); why != "" {
		o.State, o.Why, o.Reason = record.Refused, why, reason
		return false
	}
	if c.inGit(o.Path) {
		if c.refreshed(o) {
			return true
		}
		o.State, o.Why, o.Reason = record.Held, record.WhyGit, "it is in a git folder, or would make one"
		if c.gitWhy != "" {
			o.Reason += "; " + c.gitWhy
		}
		return false
	}
	o.State = record.Held
	switch why := c.protected(o); {
	case why != "":
		o.Why, o.Reason = record.WhyProtected, why
	case o.Why == record.WhyConflict:
	default:
		o.State = record.Applied
		c.held(o)
	}
	return false
}

// held holds an op for reasons that concern the whole run, or because an op that it
// needs is held.
func (c *classifier) held(o *record.Op) {
	switch {
	case c.end.Killed != "":
		o.State, o.Why, o.Reason = record.Held, record.WhyKilled, "the run did not end by itself: "+c.end.Killed
	case c.end.Review:
		o.State, o.Why, o.Reason = record.Held, record.WhyReview, "you want to see every change"
	case c.taken[o.Path], o.Kind == record.KindRmdir && c.stays[o.Path]:
		o.State, o.Why, o.Reason = record.Held, record.WhyParent, "something there is not removed"
	default:
		for dir := path.Dir(o.Path); dir != "."; dir = path.Dir(dir) {
			if c.open[dir] {
				o.State, o.Why, o.Reason = record.Held, record.WhyParent, "the folder it is in is not made"
				return
			}
		}
	}
}

// blocks records what is impossible because o is not applied.
func (c *classifier) blocks(o *record.Op) {
	switch o.Kind {
	case record.KindMkdir:
		c.open[o.Path] = true
	case record.KindRemove, record.KindRmdir:
		c.taken[o.Path] = true
		for dir := path.Dir(o.Path); dir != "."; dir = path.Dir(dir) {
			c.stays[dir] = true
		}
	}
}

// refused returns why an op is never applied, if so.
func (c *classifier) refused(o *record.Op) (record.Why, string) {
	if r := safetext.Inspect([]byte(o.Path)); r.Control+r.Bidi > 0 || strings.ContainsAny(o.Path, "\n\t\r") {
		return record.WhyName, "its name has control characters"
	}
	if o.Kind == record.KindSymlink {
		if _, why := c.leads(o); why != "" {
			return record.WhyLinkOut, why
		}
	}
	return "", ""
}

// leads returns the path in the folder to which a new link leads, or why the link is
// not allowed.
func (c *classifier) leads(o *record.Op) (to, why string) {
	const out = "its link leads out of the folder"
	target := strings.ReplaceAll(o.Link, `\`, "/") // on another system a separator
	if r := safetext.Inspect([]byte(target)); r.Control+r.Bidi > 0 || target == "" || strings.ContainsAny(target, "\n\t\r") {
		return "", "its link has control characters"
	}
	at := path.Dir(o.Path)
	if path.IsAbs(target) || len(target) > 1 && target[1] == ':' {
		rest, ok := strings.CutPrefix(target, filepath.ToSlash(c.folder.Path)+"/")
		if !ok {
			return "", out
		}
		at, target = ".", rest
	}
	up := true
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			// After a name that may be a link, the target is unknown.
			if !up || at == "." {
				return "", out
			}
			at = path.Dir(at)
		default:
			up = false
			at = path.Join(at, part)
			if c.throughLink(at, 0) {
				return "", "its link leads through another link"
			}
		}
	}
	return at, ""
}

// throughLink reports whether the user has a link at the path that may lead out of
// the folder, directly or through others.
func (c *classifier) throughLink(at string, depth int) bool {
	dir, name := tree.Split(at)
	d, err := c.folder.Dir.Walk(dir)
	if err != nil {
		return false // nothing is there; a link that the run puts there is checked itself
	}
	defer d.Close()
	if m, err := d.Lstat(name); err != nil || !m.IsLink() {
		return false
	}
	target, err := d.Readlink(name)
	if err != nil || depth > 8 || path.IsAbs(target) || slices.Contains(strings.Split(target, "/"), "..") {
		return true
	}
	for part := range strings.SplitSeq(target, "/") {
		if dir = path.Join(dir, part); dir != "." && c.throughLink(dir, depth+1) {
			return true
		}
	}
	return false
}

// protected returns why a person must see the op, or "".
func (c *classifier) protected(o *record.Op) string {
	if why := c.guarded(o.Path); why != "" {
		return "its name is protected: " + why
	}
	if why := c.aimed(o.Path, o.Kind == record.KindSymlink); why != "" {
		return "it is protected: " + why
	}
	if o.Kind == record.KindSymlink {
		if why := c.folder.Names.Above(o.Path); why != "" {
			return "it would take the place of a folder in which names are protected: " + why
		}
		if to, _ := c.leads(o); to != "." && (c.inGit(to) || c.guarded(to) != "") {
			return "its link leads to a protected name"
		}
	}
	return ""
}

// guarded returns why the name is protected, or "".
func (c *classifier) guarded(at string) string {
	if c.folder.Whole {
		return "the folder is a pack's, or of packs-mcp itself"
	}
	for _, own := range c.folder.Own {
		a, b := foldPath(at), foldPath(own)
		if a == b || strings.HasPrefix(a, b+"/") || strings.HasPrefix(b, a+"/") {
			return "it is a pack's, or of packs-mcp itself"
		}
	}
	return c.folder.Names.Reason(at)
}

func foldPath(p string) string {
	parts := strings.Split(p, "/")
	for i := range parts {
		parts[i] = protect.Fold(parts[i])
	}
	return strings.Join(parts, "/")
}

// inGit reports whether the path is in a git folder, judged by names or by the
// folder's present or future content.
func (c *classifier) inGit(at string) bool {
	if c.folder.Git != nil || c.folder.InGit || c.git["."] {
		return true
	}
	for dir := at; dir != "."; dir = path.Dir(dir) {
		if c.git[dir] || protect.IsDotGit(path.Base(dir)) {
			return true
		}
	}
	return false
}

// gitMarks returns names that mark a git folder: one with the first three, or with
// the last alone, counts. Names that the run removes count, too, since the removal
// may be held.
func gitMarks() []string { return []string{"head", "objects", "refs", "commondir"} }

// gitFolders finds the folders above the ops that are git folders, or would be if all
// ops were carried out.
func (c *classifier) gitFolders() {
	there, after := map[string]marks{}, map[string]marks{}
	for i := range c.ops {
		o := &c.ops[i]
		for dir := path.Dir(o.Path); ; dir = path.Dir(dir) {
			if after[dir] == nil {
				there[dir] = marksIn(c.folder.Dir, dir)
				after[dir] = maps.Clone(there[dir])
			}
			if dir == "." {
				break
			}
		}
		if o.Makes() || o.Kind == record.KindSpecial {
			after[path.Dir(o.Path)][protect.Fold(path.Base(o.Path))] = true
		}
	}
	for dir := range after {
		if after[dir].git() {
			c.git[dir] = true
			c.newGit[dir] = !there[dir].git()
		}
	}
}

// marks are names in a folder, folded.
type marks map[string]bool

// git reports whether the names make a folder a git folder.
func (m marks) git() bool {
	names := gitMarks()
	return m[names[0]] && m[names[1]] && m[names[2]] || m[names[3]]
}

// marksIn returns the marks of a git folder that are in a folder.
func marksIn(in *tree.Dir, dir string) marks {
	m := marks{}
	d, err := in.Walk(dir)
	if err != nil {
		return m
	}
	defer d.Close()
	for _, name := range []string{"HEAD", "objects", "refs", "commondir"} {
		if _, err := d.Lstat(name); err == nil {
			m[protect.Fold(name)] = true
		}
	}
	return m
}

// RefuseNewGit refuses the ops of a person's apply or undo that would together make a git
// folder, although each is harmless alone. It does not refuse those of seen: the person
// saw that they do that.
func (f *Folder) RefuseNewGit(ops []record.Op, seen map[string]bool) {
	c := newClassifier(&reading{folder: f, ops: ops})
	c.gitFolders()
	for i := range ops {
		o := &ops[i]
		if o.State != record.Applied || o.Git || !o.Makes() || seen[o.Path] {
			continue
		}
		for dir := o.Path; dir != "."; {
			if dir = path.Dir(dir); c.newGit[dir] {
				o.State, o.Why, o.Reason = record.Refused, record.WhyGit, "with it, its folder would be a git folder"
				break
			}
		}
	}
}

// refreshed reports whether an op in a git folder is irrelevant: git rewrites the
// index when it examines files, which changes times.
func (c *classifier) refreshed(o *record.Op) bool {
	switch {
	case o.Kind == record.KindMeta && o.Was != nil && o.Was.Perm == o.Meta.Perm && o.WasAttrs.Equal(o.Attrs):
		return true
	case o.Kind == record.KindReplace && path.Base(o.Path) == "index" && o.Was != nil && o.Was.IsFile():
		return c.sameIndex(o)
	}
	return false
}
