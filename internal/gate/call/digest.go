package call

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strconv"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// digest identifies this exact call. It covers every field of r that the comment of
// [Request] does not exempt.
func (r *Request) digest(level sandbox.Level) string {
	s := newSum("call")
	r.addSubject(s)
	s.add("chat end", r.Caller.ChatEnd)
	s.add("method", r.Method)
	s.add("about", r.Pack.About)
	s.add("path", r.Path)
	s.add("workspace", r.Workspace, fmt.Sprint(r.Scratch))
	s.add("hidden", r.Hidden)
	s.add("tools", r.Tools...)
	for _, f := range r.Fields {
		s.add("field", f.Name, f.Title)
	}
	s.add("arguments", r.Arguments.Canonical())
	s.add("always ask", fmt.Sprint(r.AlwaysAsk))
	s.add("act", fmt.Sprint(r.Caller.Act))
	if r.Run != nil {
		r.Run.addPlan(s, level)
		s.add("arguments of the program", r.Run.Command.Args...)
		s.add("environment", r.Run.Command.Env...)
		s.add("environment shown", r.Run.Env...)
		s.add("input", string(r.Run.Command.Stdin))
		s.add("run id", r.Run.Command.RunID)
		s.add("changes are of", r.Run.Command.Pack, r.Run.Command.Tool)
		for _, l := range r.Run.Policy.Layers {
			s.add("layer because", l.Reason)
		}
		s.add("about the tool", r.Run.About)
		s.add("declares read only", fmt.Sprint(r.Run.DeclaresReadOnly))
	}
	return s.String()
}

// addSubject adds who asks, and about which pack.
func (r *Request) addSubject(s *sum) {
	s.add("chat", r.Caller.Chat)
	s.add("person", r.Caller.Person, fmt.Sprint(int(r.Caller.Origin)))
	s.add("kind", string(r.Kind))
	s.add("pack", r.Pack.ID, r.Pack.Dir, r.Pack.Digest, string(r.Pack.Trust), r.Pack.Attached, fmt.Sprint(r.Pack.Loose), fmt.Sprint(r.Pack.Partial))
	s.add("pack from", r.Pack.From.Source, r.Pack.From.Signer, fmt.Sprint(r.Pack.From.Differs))
}

// addPlan adds what is started and under which rules, without the arguments.
// Everything added here must be a fact of grants too; see [Call.Facts].
func (r *Run) addPlan(s *sum, level sandbox.Level) {
	c, p := r.Command, r.Policy
	s.add("tool", r.Tool, r.Definition)
	s.add("read only", fmt.Sprint(r.ReadOnly))
	s.add("program", c.Program.Name, c.Program.Path, c.Program.Resolved, c.Program.Digest, c.Program.Shim)
	s.add("interpreters", interpreters(c.Program.Interpreters)...)
	s.add("the program needs", c.Program.Needs...)
	for _, l := range c.Program.Links {
		s.add("the program's link", l.Path, l.Target)
	}
	s.add("folder", c.Dir, fmt.Sprint(r.UsualDir))
	s.add("workspace", c.Workspace)
	s.add("join", fmt.Sprint(c.Join))
	s.add("may read", p.ReadOnly...)
	s.add("may write", p.Writable...)
	s.add("layers", layers(p.Layers)...)
	s.add("changes", fmt.Sprint(p.Review), fmt.Sprint(p.GitWrite), r.ReviewRule)
	s.add("cache", r.Cache, p.Cache)
	s.add("private", p.Private...)
	for _, l := range p.Links {
		s.add("link", l.Path, l.Target)
	}
	for _, i := range p.Images {
		s.add("image", i.At, i.From)
	}
	for _, f := range r.Inputs {
		s.add("file of the arguments", f.Path, f.Digest)
	}
	s.add("project", r.Project)
	s.add("granted variables", r.Granted.Env...)
	s.add("granted variables without a value", r.Granted.Unset...)
	s.add("granted folders", r.Granted.Folders...)
	for _, m := range r.Granted.LeftOut {
		s.add("granted and left out", m.What, m.Why)
	}
	s.add("home", r.Granted.Home)
	s.add("network", p.Reach()...)
	s.add("limits", limitsOf(p)...)
	s.add("level", level.String())
	s.add("place", place(r.Place)...)
}

// A sum digests facts byte for byte. It writes the length before each value, and the
// name and count before each fact, so that different facts never give the same bytes.
// (JSON would not do: it writes all bytes that are not UTF-8 the same.)
type sum struct {
	hash.Hash
	b []byte // buffer for add, so that it need not allocate for each fact
}

// newSum begins a digest. domain keeps digests for different purposes apart.
func newSum(domain string) *sum {
	s := &sum{Hash: sha256.New()}
	s.add("packs-mcp", domain)
	return s
}

func (s *sum) add(name string, values ...string) {
	b := append(s.b[:0], name...)
	b = append(strconv.AppendInt(append(b, ' '), int64(len(values)), 10), '\n')
	for _, v := range values {
		b = append(strconv.AppendInt(b, int64(len(v)), 10), ':')
		b = append(append(b, v...), '\n')
		s.Write(b) // a hash never fails
		b = b[:0]
	}
	s.Write(b)
	s.b = b
}

func (s *sum) String() string { return hex.EncodeToString(s.Sum(nil)) }

// hexSum returns the SHA-256 digest of b in hex.
func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// limitsOf returns the limits of a run, in numbers only.
func limitsOf(p sandbox.Policy) []string {
	all := []string{fmt.Sprintf("%+v", p.Limits)}
	if p.Together != (sandbox.Together{}) {
		all = append(all, fmt.Sprintf("%+v", p.Together))
	}
	return all
}
