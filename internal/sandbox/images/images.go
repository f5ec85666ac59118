// Package images handles what a run finds in place of a folder or file, such as the
// private copy of a pack. It checks the Images of a [sandbox.Policy]. For levels that
// cannot mount a copy elsewhere, it gives the run the copies' own paths.
//
// It makes no copy and mounts nothing.
package images

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

// A List is the checked Images of a Policy. No From has symbolic links.
type List []Image

// An Image is a [sandbox.Image], or the copy of a layered folder in its place.
type Image struct {
	At, From string
	Writable bool // From is the run's own copy of a layered folder
}

// Open checks the Policy's Images. An error is a [*sandbox.CommandError].
func Open(p *sandbox.Policy) (List, error) {
	if len(p.Images) == 0 {
		return nil, nil
	}
	fail := func(err error, format string, args ...any) (List, error) {
		return nil, &sandbox.CommandError{Problem: fmt.Sprintf(format, args...), Err: err}
	}
	var im List
	for _, i := range p.Images {
		for _, path := range []string{i.At, i.From} {
			switch {
			case strings.ContainsRune(path, 0):
				return fail(nil, "image path %q has a NUL byte", path)
			case !filepath.IsAbs(path) || filepath.Clean(path) != path:
				return fail(nil, "image path %q is not absolute and clean", path)
			}
		}
		from, err := filepath.EvalSymlinks(i.From)
		if err != nil {
			return fail(err, "image %q", i.From)
		}
		// With a link on the way, the folder would have two names, only one of which leads
		// to the copy.
		switch at, err := filepath.EvalSymlinks(i.At); {
		case err != nil: // it existed when the Policy was made
			return nil, &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("image at %q", i.At), Err: errors.Unwrap(err)}
		case !paths.Same(at, i.At):
			return nil, &sandbox.CommandError{Folder: true, Problem: fmt.Sprintf("image at %q is reached through a symbolic link", i.At)}
		}
		im = append(im, Image{At: i.At, From: from})
	}
	writable := paths.Spellings(slices.Concat(p.Writable, p.LayerFolders()))
	for n, i := range im {
		if slices.ContainsFunc(writable, func(dir string) bool { return paths.Inside([]string{i.At}, dir) }) {
			return fail(nil, "image %q has a writable folder in it", i.At)
		}
		// A run that can change the copy does not run what was approved.
		if paths.Inside(writable, i.From) {
			return fail(nil, "image %q of %q is in a writable folder", i.From, i.At)
		}
		for m, other := range im {
			if nested(i.At, other.From) || n != m && nested(i.At, other.At) {
				return fail(nil, "images at %q and of %q are in each other", i.At, other.From)
			}
		}
	}
	return im, nil
}

// nested reports whether one path is the other or below it.
func nested(a, b string) bool { return paths.Inside([]string{a}, b) || paths.Inside([]string{b}, a) }

// Covers reports whether path is an image's At or below it.
func (im List) Covers(path string) bool {
	return slices.ContainsFunc(im, func(i Image) bool { return paths.Inside([]string{i.At}, path) })
}

// path returns the real path on this machine for an absolute path of a run.
func (im List) path(path string) string {
	for _, i := range im {
		if rel, ok := paths.Below(i.At, path); ok {
			return filepath.Join(i.From, rel)
		}
	}
	return path
}

// Files returns c with the real paths of its program and its working folder. A working
// folder in an image loses its DirID: the image was checked instead.
func (im List) Files(c *sandbox.Command) *sandbox.Command {
	if len(im) == 0 {
		return c
	}
	there := *c
	c = &there
	c.Program.Path, c.Program.Resolved = im.path(c.Program.Path), im.path(c.Program.Resolved)
	c.Program.Interpreters = slices.Clone(c.Program.Interpreters)
	for n := range c.Program.Interpreters {
		i := &c.Program.Interpreters[n]
		i.Path, i.Resolved = im.path(i.Path), im.path(i.Resolved)
	}
	if im.Covers(c.Dir) {
		c.Dir, c.DirID = im.path(c.Dir), nil
	}
	return c
}

// Rename returns p and c with each image's From in place of its At, for a level that
// cannot show From at At.
func (im List) Rename(p sandbox.Policy, c sandbox.Command) (sandbox.Policy, sandbox.Command, error) {
	if len(im) == 0 {
		return p, c, nil
	}
	if slices.ContainsFunc(c.Program.Interpreters, func(i program.Interpreter) bool { return im.Covers(i.Path) }) {
		// The kernel reads the interpreter's path from the script itself.
		return p, c, &sandbox.CommandError{Problem: fmt.Sprintf(
			"the script %q names in its first line an interpreter by its path in the pack or project, which a run at this sandbox level gets at another path",
			c.Program.Path)}
	}
	var readable, writable []string
	for _, path := range p.ReadOnly {
		// The path is in At or leads there, and the bytes there are not the approved
		// ones.
		if resolved, err := filepath.EvalSymlinks(path); im.Covers(path) || err == nil && im.Covers(resolved) {
			continue
		}
		readable = append(readable, path)
	}
	p.Private = slices.Clone(p.Private)
	for _, i := range im {
		if i.Writable {
			writable = append(writable, i.From)
		} else {
			readable = append(readable, i.From)
		}
		p.Private = append(p.Private, i.From)
	}
	p.ReadOnly, p.Writable = readable, slices.Concat(p.Writable, writable)

	dir := c.Dir
	c = *im.Files(&c)
	c.Args, c.Env = slices.Clone(c.Args), slices.Clone(c.Env)
	for i, arg := range c.Args {
		c.Args[i] = im.relative(dir, im.text(arg))
	}
	for i, kv := range c.Env {
		name, value, ok := strings.Cut(kv, "=")
		if ok {
			c.Env[i] = name + "=" + im.text(value)
		}
	}
	if len(c.Stdin) > 0 {
		c.Stdin = []byte(im.text(string(c.Stdin)))
	}
	return p, c, nil
}

// relative returns arg, or the part after its "=", changed to the path in From if it
// leads from the working folder dir into At. A run in At itself is in From.
func (im List) relative(dir, arg string) string {
	before, path, ok := strings.Cut(arg, "=")
	if ok {
		before += "="
	} else {
		before, path = "", arg
	}
	if path == "" || filepath.IsAbs(path) || im.Covers(dir) {
		return arg
	}
	if at := filepath.Join(dir, path); im.Covers(at) {
		return before + im.path(at)
	}
	return arg
}

// text returns s with At replaced by From wherever it is a whole path or the
// beginning of one.
func (im List) text(s string) string {
	for _, i := range im {
		s = replacePath(s, i.At, i.From)
		if runtime.GOOS == "windows" { // in JSON
			s = replacePath(s, escapeBackslash(i.At), escapeBackslash(i.From))
		}
	}
	return s
}

func escapeBackslash(path string) string { return strings.ReplaceAll(path, `\`, `\\`) }

// Characters that can precede and follow a path that is not part of another one:
// separators, quotes, brackets and space.
const (
	beforePath = "=:,;|@<>&\"'`([{ \t\r\n"
	afterPath  = "=:,;|@<>&\"'`)]} \t\r\n/\x00" + string(filepath.Separator)
)

// replacePath replaces the absolute path at with from wherever s has it as a whole
// path or as the beginning of one.
func replacePath(s, at, from string) string {
	var b strings.Builder
	done := 0
	for i := 0; i+len(at) <= len(s); {
		end := i + len(at)
		if !sameText(s[i:end], at) || !beginsPath(s[:i]) || end < len(s) && strings.IndexByte(afterPath, s[end]) < 0 {
			i++
			continue
		}
		b.WriteString(s[done:i])
		b.WriteString(from)
		i, done = end, end
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// sameText compares two spellings of a path without cleaning them.
func sameText(a, b string) bool {
	return a == b || runtime.GOOS == "windows" && strings.EqualFold(a, b)
}

// beginsPath reports whether an absolute path can begin after before: at the start,
// after a character that is no part of a path, or after a one-letter flag, as in
// "-I/usr/include".
func beginsPath(before string) bool {
	n := len(before)
	if n == 0 || strings.IndexByte(beforePath, before[n-1]) >= 0 || strings.HasSuffix(before, "file://") {
		return true
	}
	return n == 2 && before[0] == '-'
}

// Live reports whether somebody could replace what a running program finds at an
// image's At. A mount moves with the folder under it, and others can rename that
// folder if the run sees the folder that contains it.
func (im List) Live(p *sandbox.Policy, c *sandbox.Command) bool {
	seen := paths.Spellings(slices.Concat(paths.SystemDirs(), c.Program.Needs, p.ReadOnly, p.Writable, p.LayerFolders()))
	return slices.ContainsFunc(im, func(i Image) bool {
		return slices.ContainsFunc(seen, func(dir string) bool {
			return !paths.Inside([]string{i.At}, dir) && paths.Inside([]string{dir}, i.At)
		})
	})
}
