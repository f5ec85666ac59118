package container

import (
	"slices"
	"testing"
)

// No entry of a run's PATH means its working folder, where anyone may have put a program:
// env(1) must find what the look-up found.
func TestEnvironPath(t *testing.T) {
	const usual = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for in, want := range map[string]string{
		"PATH=/opt/tools:/bin":            "PATH=/opt/tools:/bin",
		"PATH=:/opt/tools:bin:./x:/bin::": "PATH=/opt/tools:/bin",
		"PATH=":                           usual,
		"PATH=.":                          usual,
		"LANG=C":                          usual,
	} {
		s := &System{pinned: &pinned{image: &image{}}}
		s.pinned.image.Config.Env = []string{in}
		env, err := s.Environ(t.Context())
		if err != nil || !slices.Contains(env, want) {
			t.Errorf("with %q, Environ = %q, %v, want %q", in, env, err, want)
		}
		if s.pinned.image.Config.Env[0] != in {
			t.Errorf("Environ changed the image to %q", s.pinned.image.Config.Env)
		}
	}
}
