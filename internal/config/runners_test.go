package config

import (
	"strings"
	"testing"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// The first runner that matches counts, and without one the usual runner.
func TestRunnerOf(t *testing.T) {
	s := Sandbox{Runner: RunnerLocal, Container: Containers{Image: "usual"}, Runners: []Runner{
		{Pack: "acme/*", Tool: "build", Runner: RunnerContainer, Image: "build"},
		{Pack: "acme/*", Tool: "*", Kinds: []string{"exec"}, Runner: RunnerContainer},
		{Pack: "acme/trusted", Tool: "*", Runner: RunnerLocal},
		{Pack: "acme/*", Tool: "*", Runner: RunnerContainer, Image: "acme"},
	}}
	for _, c := range []struct{ pack, tool, kind, runner, image string }{
		{"acme/x", "build", "run", RunnerContainer, "build"},
		{"acme/x", "", "exec", RunnerContainer, "usual"},
		{"acme/trusted", "", "exec", RunnerContainer, "usual"},
		{"acme/trusted", "test", "run", RunnerLocal, "usual"},
		{"acme/x", "test", "run", RunnerContainer, "acme"},
		{"other", "test", "run", RunnerLocal, "usual"},
	} {
		if runner, image := s.RunnerOf(c.pack, c.tool, c.kind, true); runner != c.runner || image != c.image {
			t.Errorf("RunnerOf(%q, %q, %q) = %q, %q, want %q, %q", c.pack, c.tool, c.kind, runner, image, c.runner, c.image)
		}
	}
	// A pack that is not trusted gets into a container by its name, and not out of one.
	for _, tool := range []string{"build", "test"} {
		if runner, image := s.RunnerOf("acme/trusted", tool, "run", false); runner != RunnerContainer || image != "usual" {
			t.Errorf("without trust, RunnerOf(%q) = %q, %q, want a container of the usual image", tool, runner, image)
		}
	}
	for trusted, want := range map[bool]string{true: "tools", false: ""} {
		s := Sandbox{Runner: RunnerLocal, Runners: []Runner{{Pack: "*", Tool: "build", Runner: RunnerContainer, Image: "tools"}}}
		if runner, image := s.RunnerOf("any", "build", "run", trusted); runner != RunnerContainer || image != want {
			t.Errorf("with trust %v and no usual image, RunnerOf = %q, %q, want a container of %q", trusted, runner, image, want)
		}
	}
	every := Sandbox{Runner: RunnerLocal, Runners: []Runner{{Pack: "*", Tool: "*", Runner: RunnerContainer, Image: "tools"}}}
	if _, image := every.RunnerOf("any", "build", "run", false); image != "tools" {
		t.Errorf("an image for all packs is %q for one that is not trusted, want tools", image)
	}
	s = Sandbox{Runner: RunnerContainer, Container: Containers{Image: "usual"}, Runners: []Runner{{Pack: "*", Tool: "*", Runner: RunnerLocal}}}
	for trusted, want := range map[bool]string{true: RunnerLocal, false: RunnerContainer} {
		if runner, _ := s.RunnerOf("any", "test", "run", trusted); runner != want {
			t.Errorf("with trust %v, RunnerOf = %q, want %q", trusted, runner, want)
		}
	}
}

func TestRunnersInAFile(t *testing.T) {
	const engine = "  container: {socket: /run/podman/podman.sock, image: \"docker.io/library/python@" + digest + "\", runtime: runsc}\n"
	for _, c := range []struct{ name, file, wrong string }{
		{"all", "sandbox:\n  runner: container\n" + engine, ""},
		{"one pack", "sandbox:\n  container: {socket: /s}\n  runners:\n    - {pack: acme/x, kind: run, runner: container, image: \"" + digest + "\"}\n", ""},
		{"one tool", "sandbox:\n" + engine + "  runners: [{tool: acme/x/build, runner: container}, {runner: local}]\n", ""},
		{"no socket", "sandbox:\n  runner: container\n  container: {image: \"" + digest + "\"}\n", "sandbox.container.socket: is missing"},
		{"no image", "sandbox:\n  runner: container\n  container: {socket: /s}\n", "sandbox.container.image: is missing"},
		{"a tag", "sandbox:\n  container: {socket: /s, image: \"python:3\"}\n", "want an image with its digest"},
		{"a short digest", "sandbox:\n  container: {socket: /s, image: \"python@sha256:12\"}\n", "want an image with its digest"},
		{"an unknown runner", "sandbox:\n  runner: kubernetes\n", "want local or container"},
		{"no runner", "sandbox:\n  runners: [{pack: acme/x}]\n", "has no runner"},
		{"an image of none", "sandbox:\n  runners: [{pack: acme/x, runner: local, image: \"" + digest + "\"}]\n", "has an image"},
		{"the pack twice", "sandbox:\n" + engine + "  runners: [{pack: acme/x, tool: acme/x/build, runner: container}]\n", "names the pack too"},
		{"an odd runtime", "sandbox:\n  container: {socket: /s, runtime: \"a b\"}\n", "the engine's name of a runtime"},
		{"an unknown key", "sandbox:\n  runners: [{pack: acme/x, runner: local, socket: /s}]\n", "unknown key"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, err := load(t, c.file, nil)
			if c.wrong == "" && err != nil || c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)) {
				t.Errorf("Load = %v, want %q", err, c.wrong)
			}
		})
	}
}
