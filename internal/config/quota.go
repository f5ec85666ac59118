package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/packs-mcp/packs-mcp/internal/config/node"
	"github.com/packs-mcp/packs-mcp/internal/config/places"
	"github.com/packs-mcp/packs-mcp/internal/config/units"
)

// A Quota is how much of something each person, and each group's people together, may
// have at the same time.
type Quota struct {
	Each  int64            // of one person; 0: no limit
	Group map[string]int64 // :: group → of its people together; a group that is not in it has no limit
}

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
func ofGroups(name string, of amount, field func(*Config) *Quota) key {
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
