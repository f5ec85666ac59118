// Package lint reports to authors everything that is wrong with packs and tool files: what
// serving would refuse or ignore, violations of one of the specifications, and texts that a
// pack should not have.
//
// It serves, runs and writes nothing ([AddName] returns a text), and no server depends on
// it: packages packs and tools decide what is served, and this package repeats their
// diagnostics. A warning about a text is a reason to look at it, not a verdict.
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

// A Profile is a specification to check packs against.
type Profile string

// The profiles. The zero value is everything this program knows: what it would refuse
// is an error, what it would ignore or change is a warning.
const (
	Default        Profile = ""
	AgentSkills    Profile = "agent-skills"    // with the verdicts of the reference validator
	SkillMD        Profile = "skill-md"        // SKILL.md v1.0, tools in Markdown
	ToolPack       Profile = "tool-pack"       // *.tool.json
	CapabilityPack Profile = "capability-pack" // entry document and tools.json
	Skillkit       Profile = "skillkit"        // skillkit v0.1
)

// Profiles returns the names of all profiles except the default, which has no name.
func Profiles() []Profile {
	return []Profile{AgentSkills, SkillMD, ToolPack, CapabilityPack, Skillkit}
}

// ParseProfile returns the profile with a name; "" and "default" are the default.
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

// Options say how a [Checker] checks packs.
type Options struct {
	Profile Profile
	Strict  bool // warnings and unknown keys count as errors
	Limits  packs.Limits
	Tools   tools.Limits
	// Installed reports whether this machine has a program: a name on PATH, or an
	// absolute path. If nil, programs outside packs are not checked.
	Installed func(program string) bool
	// Progress, if not nil, is called with the number of packs in a folder that have
	// been checked.
	Progress func(done, all int)
}

// A Result has the diagnostics for one pack, one tool file, or a folder as a whole.
type Result struct {
	Path  string // of the folder or file; it begins with the path that was checked
	Valid bool   // none of Problems is an error

	// From a pack's frontmatter or a single tool's declaration; empty if there is none.
	Name, Description string

	Problems []diag.Diagnostic // sorted; File begins like Path
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

// Check checks a pack, a folder with packs at any depth that a scan covers, an entry
// document, a tools.json or a *.tool.json. The only error is that ctx ended; every
// other problem is a diagnostic.
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

// finish applies --strict, sorts the problems, and sets Valid.
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
	// Two readers of the same file may report the same problem.
	r.Problems = slices.CompactFunc(r.Problems, func(a, b diag.Diagnostic) bool { return a == b })
	if r.Problems == nil {
		r.Problems = []diag.Diagnostic{}
	}
	r.Valid = !diag.HasErrors(r.Problems)
}
