package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/packs-mcp/packs-mcp/internal/config/node"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/config/units"
	"github.com/packs-mcp/packs-mcp/internal/quota"
)

// maxGroups is how many groups a key may limit: each request looks at those of its person.
const maxGroups = 100

// An amount is what a group may have: its form and its example, and how it is read.
type amount struct {
	want string // "a group and …, such as …"
	read func(string) (int64, bool)
}

// aNumber is an amount of calls or the like.
var aNumber = amount{"a group and a number from 1 to 100000, such as contractors=20", func(s string) (int64, bool) {
	n, err := strconv.Atoi(s)
	return int64(n), err == nil && strconv.Itoa(n) == s && 1 <= n && n <= 100_000
}}

// aSize is an amount of memory.
var aSize = amount{"a group and a size from 16MiB to 1TiB, such as contractors=16GiB", func(s string) (int64, bool) {
	n, ok := units.ParseSize(s)
	return n, ok && 16*mib <= n && n <= 1024*gib
}}

// orNone returns a key that also takes none: no limit.
func orNone(k key, field func(*Config) *int64) key {
	k = or(k, "none", func(c *Config, s string) bool {
		if s == "none" {
			*field(c) = 0
		}
		return s == "none"
	})
	k.tags = []string{node.TagInt, node.TagString}
	return k
}

// each returns a key for a number that one person may have.
func each(name string, least, most int64, field func(*Config) *int64) key {
	want := fmt.Sprintf("want a number from %d to %d", least, most)
	return key{path: name, want: want, tags: []string{node.TagInt}, set: func(c *Config, s string, _ places.Base) string {
		n, ok := units.ParseCount(s)
		if !ok || int64(n) < least || int64(n) > most {
			return want
		}
		*field(c) = int64(n)
		return ""
	}}
}

// ofGroups returns a key for what groups may have. An element is the name of a group and
// an amount: contractors=20.
func ofGroups(name string, of amount, field func(*Config) *quota.Limits) key {
	want := "want " + of.want
	return key{path: name, want: want, list: ",", none: true, clear: func(c *Config) { field(c).Group = nil }, set: func(c *Config, s string, _ places.Base) string {
		i := strings.LastIndexByte(s, '=')
		if i < 1 {
			return want
		}
		group := s[:i]
		n, ok := of.read(s[i+1:])
		if !ok || len(group) > 256 || strings.TrimSpace(group) != group || strings.ContainsFunc(group, unicode.IsControl) {
			return want
		}
		q := field(c)
		if _, twice := q.Group[group]; twice {
			return "name the group once"
		}
		if len(q.Group) == maxGroups {
			return fmt.Sprintf("name at most %d groups", maxGroups)
		}
		if q.Group == nil {
			q.Group = make(map[string]int64)
		}
		q.Group[group] = n
		return ""
	}}
}

// quotasTogether checks that each limit of memory is enough for one program, and warns of
// limits for groups that nobody is in: a provider's people can be in any.
func (l *loader) quotasTogether() {
	h := &l.cfg.HTTP
	needs := cmp.Or(l.cfg.Limits.MemoryTogether, l.cfg.Limits.Memory)
	small := func(key string, n int64) {
		l.add(l.origin[key], key, fmt.Sprintf("is %s, and each program may take %s; raise it, or lower limits.memory", units.SizeText(n), units.SizeText(needs)))
	}
	if n := h.MemoryOf.Each; n != 0 && n < needs {
		small("http.memory_each", n)
	}
	for _, group := range slices.Sorted(maps.Keys(h.MemoryOf.Group)) {
		if n := h.MemoryOf.Group[group]; n < needs {
			small("http.memory_group", n)
		}
	}
	if h.OIDC.Issuer != "" {
		return
	}
	for _, q := range []struct {
		key string
		of  quota.Limits
	}{{"http.calls_group", h.CallsOf}, {"http.runs_group", h.RunsOf}, {"http.questions_group", h.WaitingOf}, {"http.memory_group", h.MemoryOf}} {
		for _, group := range slices.Sorted(maps.Keys(q.of.Group)) {
			if !slices.ContainsFunc(h.Tokens, func(t Token) bool { return slices.Contains(t.Groups, group) }) {
				l.warn("%s limits the group %q, and nobody in http.tokens is in it", q.key, group)
			}
		}
	}
}
