package config

import (
	slashpath "path"
	"regexp"
	"slices"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/config/node"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/config/problem"
	"github.com/packs-mcp/packs-mcp/internal/rules"
)

// Containers say in which containers programs run, when they do.
type Containers struct {
	Socket  string // absolute path of the engine's socket; empty: there are none
	Image   string // NAME@sha256:DIGEST or sha256:ID; empty: none but those of Runners
	Runtime string // as the engine names it; empty: its usual one
}

// A Runner says where the programs of some packs and tools run.
type Runner struct {
	Pack, Tool string   // patterns, as in Opening
	Kinds      []string // as in Opening; empty means both
	Runner     string   // RunnerLocal or RunnerContainer
	Image      string   // with RunnerContainer: overrides that of Containers; empty: that one
}

// The values of Sandbox.Runner.
const (
	RunnerLocal     = "local"
	RunnerContainer = "container"
)

const wantImage = "want an image with its digest, such as docker.io/library/python@sha256:… or sha256:…, with 64 hex digits"

// imagePattern is what an image may look like: a name and a digest, or a digest.
const imagePattern = `^([a-z0-9][a-z0-9._:/-]*@)?sha256:[0-9a-f]{64}$`

func checkImage(s string) (wrong string) {
	if !regexp.MustCompile(imagePattern).MatchString(s) {
		return wantImage
	}
	return ""
}

// containerKeys returns the keys of sandbox.container.
func containerKeys() []key {
	return []key{
		path(containerSection+".socket", func(c *Config) *string { return &c.Sandbox.Container.Socket }),
		{path: containerSection + ".image", want: wantImage, tags: []string{node.TagString}, set: func(c *Config, s string, _ places.Base) string {
			if c.Sandbox.Container.Image = s; s == "" {
				return ""
			}
			return checkImage(s)
		}},
		{path: containerSection + ".runtime", want: "want the engine's name of a runtime, such as runsc", tags: []string{node.TagString}, set: func(c *Config, s string, _ places.Base) string {
			if s != "" && !regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`).MatchString(s) {
				return "want the engine's name of a runtime, such as runsc"
			}
			c.Sandbox.Container.Runtime = s
			return ""
		}},
	}
}

// runners reads the list sandbox.runners.
func (f *fileReader) runners(v *yaml.Node, path string) {
	f.cfg.Sandbox.Runners = append(f.cfg.Sandbox.Runners, mappings(f, v, path, "{pack: acme/deploy, runner: container}", f.runner)...)
}

func (f *fileReader) runner(item *yaml.Node, path string) Runner {
	known := []string{"pack", "tool", "kind", "runner", "image"}
	r := Runner{Pack: everything, Tool: everything}
	before := len(f.problems)
	var pack, tool *yaml.Node
	f.Mapping(item, path, func(k, v *yaml.Node, path string) {
		switch node.Value(k).Value {
		case "pack":
			pack = v
			f.pattern(v, path, wantPacks, &r.Pack)
		case "tool":
			tool = v
			f.pattern(v, path, wantTools, &r.Tool)
		case "kind":
			f.grantedKinds(v, path, &r.Kinds)
		case "runner":
			if s, ok := f.Text(v, path); ok {
				if wrong := checkWord(s, []string{RunnerLocal, RunnerContainer}); wrong != "" {
					f.Problem(node.At(v), path, "is "+problem.Show(s)+"; "+wrong)
				}
				r.Runner = s
			}
		case "image":
			if s, ok := f.Text(v, path); ok {
				if wrong := checkImage(s); wrong != "" {
					f.Problem(node.At(v), path, "is "+problem.Show(s)+"; "+wrong)
				}
				r.Image = s
			}
		default:
			f.Problem(node.At(k), path, "unknown key"+problem.DidYouMean(node.Value(k).Value, known, nil))
		}
	})
	of, name := rules.SplitTool(r.Tool)
	switch {
	case len(f.problems) > before:
	case r.Runner == "":
		f.Problem(node.At(item), path, "has no runner; add runner: container, or runner: local")
	case of != "" && pack != nil:
		f.Problem(node.At(tool), path+".tool", "is "+problem.Show(r.Tool)+", which names the pack too; remove pack, or the part of tool before the last slash")
	case r.Image != "" && r.Runner != RunnerContainer:
		f.Problem(node.At(item), path, "has an image, and a program that runs locally has none; remove image")
	case of != "":
		r.Pack, r.Tool = of, name
	}
	return r
}

// RunnerOf returns where a program runs: according to the first matching entry of Runners,
// or else to Runner. image is the container's image, or empty if none is configured for
// this run. The author of an untrusted pack chose its name and those of its tools, so no
// entry takes it out of containers, and an entry with its own image for certain names only
// gives it the usual image.
func (s *Sandbox) RunnerOf(pack, tool, kind string, trusted bool) (runner, image string) {
	for _, r := range s.Runners {
		if r.Runner == RunnerLocal && !trusted {
			continue
		}
		if matches(r.Pack, pack) && (tool == "" && r.Tool == everything || tool != "" && matches(r.Tool, tool)) && (len(r.Kinds) == 0 || slices.Contains(r.Kinds, kind)) {
			if r.Image != "" && (trusted || r.Pack == everything && r.Tool == everything) {
				return r.Runner, r.Image
			}
			return r.Runner, s.Container.Image
		}
	}
	return s.Runner, s.Container.Image
}

// Images returns the images of all containers that the configuration names.
func (s *Sandbox) Images() []string {
	var all []string
	add := func(runner, image string) {
		if runner == RunnerContainer && image != "" && !slices.Contains(all, image) {
			all = append(all, image)
		}
	}
	add(s.Runner, s.Container.Image)
	for _, r := range s.Runners {
		image := r.Image
		if image == "" {
			image = s.Container.Image
		}
		add(r.Runner, image)
	}
	return all
}

// runsContainers reports whether a program may run in a container, and whether one of
// these has no image.
func (s *Sandbox) runsContainers() (some, without bool) {
	some = s.Runner == RunnerContainer
	without = some && s.Container.Image == ""
	for _, r := range s.Runners {
		some = some || r.Runner == RunnerContainer
		without = without || r.Runner == RunnerContainer && r.Image == "" && s.Container.Image == ""
	}
	return some, without
}

// containersTogether checks that every run that belongs in a container has one configured.
func (l *loader) containersTogether() {
	some, without := l.cfg.Sandbox.runsContainers()
	where := l.origin["sandbox.runner"]
	if some && l.cfg.Sandbox.Container.Socket == "" {
		l.add(where, containerSection+".socket", "is missing, and programs are to run in containers; name the engine's socket, such as /run/podman/podman.sock")
	}
	if without {
		l.add(where, containerSection+".image", "is missing, and programs are to run in containers of it; "+wantImage)
	}
}

// matches reports whether a name fits a pattern of the configuration.
func matches(pattern, name string) bool {
	if pattern == everything {
		return true
	}
	ok, err := slashpath.Match(pattern, name)
	return err == nil && ok
}
