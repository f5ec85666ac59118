// Package lint says everything that is wrong with packs and files of tools,
// for their authors: what serving would refuse or read over, what one of the
// specifications demands to the letter, and what a pack says that it should
// not.
//
// It reads and judges. It serves, runs and writes nothing ([AddName] returns a text),
// and no server depends on it: what is served is decided by packages packs and tools, whose
// diagnostics are repeated here. A warning about a text is a reason to look at
// it, not a verdict.
package lint

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/diag"
	"github.com/packs-mcp/packs-mcp/internal/packs/toolfiles"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

// A Profile is a specification that packs are held against.
type Profile string

// The profiles. The zero value is everything this program knows: what it
// would refuse is an error, what it would read over or change is a warning.
const (
	Default        Profile = ""
	AgentSkills    Profile = "agent-skills"    // with the verdicts of the reference validator
	SkillMD        Profile = "skill-md"        // SKILL.md v1.0, tools in Markdown
	ToolPack       Profile = "tool-pack"       // *.tool.json
	CapabilityPack Profile = "capability-pack" // entry document and tools.json
	Skillkit       Profile = "skillkit"        // skillkit v0.1
)

// Profiles returns the names of all profiles but the default, which has none.
func Profiles() []Profile {
	return []Profile{AgentSkills, SkillMD, ToolPack, CapabilityPack, Skillkit}
}

// ParseProfile returns the profile called name; "" and "default" are the
// default.
func ParseProfile(name string) (Profile, error) {
	if name == "" || name == "default" {
		return Default, nil
	}
	if p := Profile(name); slices.Contains(Profiles(), p) {
		return p, nil
	}
	var names []string
	for _, p := range Profiles() {
		names = append(names, string(p))
	}
	return Default, fmt.Errorf("no profile %q; there are %s", name, strings.Join(names, ", "))
}

// Options say what a [Checker] holds packs against.
type Options struct {
	Profile Profile
	Strict  bool // a warning counts as an error, and so does a key that nobody knows
	Limits  packs.Limits
	Tools   tools.Limits
	// Installed reports whether this machine has a program: a name on PATH, or an
	// absolute path. If nil, programs outside of packs are not looked for.
	Installed func(program string) bool
	// Progress, if it is not nil, is told how many packs of a folder were checked.
	Progress func(done, all int)
}

// A Result is what there is to say about one pack, one file of tools, or a
// folder as a whole.
type Result struct {
	Path  string // of the folder or file, beginning as the path that was checked
	Valid bool   // none of Problems is an error

	// Of a pack as its frontmatter has it, of a single tool as it declares it;
	// empty when there is none.
	Name, Description string

	Problems []diag.Diagnostic // sorted; File begins as Path does
}

// A Report is the results of one path, sorted by Path. There is at least one.
type Report struct {
	Packs []Result
}

// Valid reports whether every result is.
func (r Report) Valid() bool {
	return !slices.ContainsFunc(r.Packs, func(p Result) bool { return !p.Valid })
}

// A Checker checks packs. It is safe for concurrent use.
type Checker struct {
	opts  Options
	files *toolfiles.Files
}

// New makes a Checker, which compiles what it needs once.
func New(opts Options) *Checker {
	return &Checker{
		opts:  opts,
		files: toolfiles.New(opts.Tools, ""),
	}
}

// Check is [Checker.Check] of a new Checker.
func Check(ctx context.Context, path string, opts Options) (Report, error) {
	return New(opts).Check(ctx, path)
}

// Check checks what is at path: a pack, a folder with packs at any depth that
// a scan looks at, an entry document, a tools.json or a *.tool.json. The only
// error is that ctx ended; whatever else is wrong is a diagnostic.
func (c *Checker) Check(ctx context.Context, path string) (Report, error) {
	results, err := c.results(ctx, path)
	if err != nil {
		return Report{}, err
	}
	for i := range results {
		c.finish(&results[i])
	}
	slices.SortStableFunc(results, func(a, b Result) int { return strings.Compare(a.Path, b.Path) })
	return Report{Packs: results}, nil
}

// finish applies --strict, brings the problems in order and draws the sum.
func (c *Checker) finish(r *Result) {
	for i := range r.Problems {
		d := &r.Problems[i]
		if c.opts.Strict && (d.Severity == diag.Warning || d.Code == CodeKeyUnknown) {
			d.Severity = diag.Error
		}
		if d.Hint == "" {
			d.Hint = fmt.Sprintf("see docs/reference/diagnostics.md about %s", d.Code)
		}
	}
	diag.Sort(r.Problems)
	// Two readers of the same file say the same of it.
	r.Problems = slices.CompactFunc(r.Problems, func(a, b diag.Diagnostic) bool { return a == b })
	if r.Problems == nil {
		r.Problems = []diag.Diagnostic{}
	}
	r.Valid = !diag.HasErrors(r.Problems)
}
