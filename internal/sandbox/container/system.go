package container

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// Options say which containers are made.
type Options struct {
	Socket  string // absolute path of the engine's socket
	Image   string // NAME@sha256:DIGEST, or sha256:ID; empty: none, and everything is refused
	Runtime string // as the engine names it; empty: its usual one

	Logger *slog.Logger // gets problems that end no run; nil: they are dropped
}

// A System makes containers of one image. Safe for concurrent use.
type System struct {
	o      Options
	engine *engine

	mu     sync.Mutex
	pinned *pinned                    // guarded by mu; nil: not found yet
	found  map[sought]program.Program // guarded by mu
}

// A sought is the key of a look-up. Its result is the same as long as the image and the
// pack have the same bytes.
type sought struct{ name, packDir, packDigest string }

// maxFound bounds how many look-ups are remembered: more than a server's tools.
const maxFound = 512

// pinned describes the engine and the image. It never changes.
type pinned struct {
	about about
	image *image
	user  string // of the processes in a container, as uid:gid
}

// New returns a System. It does not contact the engine yet.
func New(o Options) *System {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &System{o: o, engine: newEngine(o.Socket)}
}

// parseImage returns the name and the digest of an image in a configuration; the name
// is empty for an id.
func parseImage(text string) (name, digest string, err error) {
	name, digest, ok := strings.Cut(text, "@")
	if !ok {
		name, digest = "", text
	}
	if ok && !regexp.MustCompile(`^[a-z0-9][a-z0-9._:/-]*$`).MatchString(name) || !regexp.MustCompile(`^sha256:[0-9a-f]{64}$`).MatchString(digest) {
		return "", "", fmt.Errorf("image %q is neither NAME@sha256:DIGEST nor sha256:ID, with 64 hex digits", text)
	}
	return name, digest, nil
}

// open finds the engine and the image, once. Callers do not wait for each other: an
// engine that does not answer delays only the caller that asks it.
func (s *System) open(ctx context.Context) (*pinned, error) {
	s.mu.Lock()
	p := s.pinned
	s.mu.Unlock()
	if p != nil {
		return p, nil
	}
	a, err := s.engine.about(ctx)
	if err != nil {
		return nil, err
	}
	i, err := s.find(ctx, a)
	if err != nil {
		return nil, err
	}
	rootless, err := s.engine.rootless(ctx, a)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pinned == nil {
		s.pinned = &pinned{about: a, image: i, user: userOf(rootless)}
	}
	return s.pinned, nil
}

// here is open with an error that is fit to answer a call.
func (s *System) here(ctx context.Context) (*pinned, error) {
	p, err := s.open(ctx)
	if err != nil {
		return nil, &sandbox.ConfineError{Level: sandbox.LevelFull, Step: "finding the container engine and the image", Err: err}
	}
	return p, nil
}

// find returns the image of the configuration.
func (s *System) find(ctx context.Context, a about) (*image, error) {
	if s.o.Image == "" {
		return nil, errors.New("the configuration has no image for packs that you have not trusted: it names images only for some packs or tools, and their authors choose those names; set sandbox.container.image")
	}
	name, digest, err := parseImage(s.o.Image)
	if err != nil {
		return nil, err
	}
	other := ""
	for _, ask := range []string{name, s.o.Image} {
		if ask == "" {
			continue
		}
		i, err := s.engine.image(ctx, a, ask)
		switch {
		case isStatus(err, http.StatusNotFound):
			continue
		case err != nil:
			return nil, err
		case i.ID == digest || slices.ContainsFunc(i.RepoDigests, func(d string) bool { return strings.HasSuffix(d, "@"+digest) }):
			if i.ID = "sha256:" + strings.TrimPrefix(i.ID, "sha256:"); i.OS != "linux" {
				return nil, fmt.Errorf("image %q is for %q, not for Linux", s.o.Image, i.OS)
			}
			return i, nil
		}
		other = i.ID
	}
	if other != "" {
		return nil, fmt.Errorf("image %q has the id %s here, and no digest %s as in the configuration", name, other, digest)
	}
	return nil, fmt.Errorf("the container engine has no image %q; pull it first", s.o.Image)
}

// Place returns the place of runs, if the engine and the image are available.
func (s *System) Place(ctx context.Context) (sandbox.Place, error) {
	p, err := s.here(ctx)
	if err != nil {
		return sandbox.Place{}, err
	}
	return sandbox.Place{Runner: sandbox.RunnerContainer, Image: p.image.ID, Name: s.o.Image, Runtime: s.o.Runtime, Terms: terms()}, nil
}

// About returns the engine's name and version, and the image's id; both are empty if
// they are not available.
func (s *System) About(ctx context.Context) (engine, image string) {
	p, err := s.open(ctx)
	if err != nil {
		return "", ""
	}
	return p.about.Name + " " + p.about.Version, p.image.ID
}

// Environ returns the variables that the image sets, with a PATH of absolute folders: any
// other would mean the folder that a run works in.
func (s *System) Environ(ctx context.Context) ([]string, error) {
	p, err := s.here(ctx)
	if err != nil {
		return nil, err
	}
	var env []string
	path := "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	for _, kv := range p.image.Config.Env {
		if list, ok := strings.CutPrefix(kv, "PATH="); ok {
			dirs := slices.DeleteFunc(strings.Split(list, ":"), func(dir string) bool { return !strings.HasPrefix(dir, "/") })
			path = cmp.Or(strings.Join(dirs, ":"), path)
		} else {
			env = append(env, kv)
		}
	}
	return append(env, "PATH="+path), nil
}

// Hint says how to get containers on this machine.
func (s *System) Hint(r *sandbox.Report) string {
	if why := r.Problem(); why != "" && r.Level == sandbox.LevelNone {
		return fmt.Sprintf("see that the container engine at %q runs and has the image: %s", s.o.Socket, why)
	}
	return ""
}

// noOverlay is the reason for having no layers in memory.
const noOverlay = "a container works with copies"

// Lookup finds a program as a run would find it: on the image's PATH, in the image, or in
// the pack, which the container sees at its own path. It starts nothing but this
// program's helper. What was found in the image, and in a pack with a digest, is
// remembered. The error is one of [program.Lookup], or says why there is no container.
func (s *System) Lookup(ctx context.Context, name, packDir, packDigest string) (program.Program, error) {
	key := sought{name, packDir, packDigest}
	s.mu.Lock()
	p, ok := s.found[key]
	s.mu.Unlock()
	if ok {
		return p, nil
	}
	p, err := s.lookup(ctx, name, packDir)
	if err == nil && packDigest != "" {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.found == nil || len(s.found) >= maxFound {
			s.found = make(map[sought]program.Program)
		}
		s.found[key] = p
	}
	return p, err
}
