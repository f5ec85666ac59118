package trust

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
)

const takesOlder = "; --allow-older takes it"

// Older refuses a pack that is older than the one it would replace. A server that
// serves an old version with its genuine signature would otherwise bring back what was
// mended since (a rollback attack).
//
// It compares the versions, the times of the signatures and the dates of the source. The
// pack is refused if any of them is lower than before. It is also refused if the same
// source no longer has its version or date, and nothing else says that it is newer. It
// is not refused if there is nothing to compare: then its age is unknown.
func Older(before *lock.Entry, now lock.Entry) *Refusal {
	if before == nil {
		return nil
	}
	newer, lost := false, (*Refusal)(nil)
	for _, m := range []struct {
		what, before, now string
		compare           func(a, b string) int
		valid             func(string) bool
		optional          bool // another kind of signature has none
	}{
		{what: "version", before: before.Version, now: now.Version, compare: compareVersions, valid: IsVersion},
		{what: "time of the signature", before: before.SignedAt, now: now.SignedAt, compare: compareTimes, valid: isTime, optional: true},
		{what: "date", before: before.UpdatedAt, now: now.UpdatedAt, compare: compareTimes, valid: isTime},
	} {
		switch {
		case !m.valid(m.before):
		case !m.valid(m.now):
			if !m.optional && before.Source == now.Source && lost == nil {
				lost = &Refusal{Reason: "it may be older than what is here: it no longer has a " + m.what + takesOlder, Old: m.what + " " + m.before, New: "no " + m.what}
			}
		default:
			switch c := m.compare(m.now, m.before); {
			case c < 0:
				return &Refusal{Reason: "it is older than what is here" + takesOlder, Old: m.what + " " + m.before, New: m.what + " " + m.now}
			case c > 0:
				newer = true
			}
		}
	}
	if lost != nil && !newer {
		return lost
	}
	return nil
}

func isTime(text string) bool {
	_, err := time.Parse(time.RFC3339, text)
	return err == nil
}

// compareTimes compares two times that isTime accepts.
func compareTimes(a, b string) int {
	x, _ := time.Parse(time.RFC3339, a)
	y, _ := time.Parse(time.RFC3339, b)
	return x.Compare(y)
}

// A version is one that has an order: numbers with dots between them, and what stands
// behind a hyphen for a version that precedes it (semver.org, with any number of
// numbers).
type version struct {
	numbers []uint64
	before  []string // of a pre-release; empty for none
}

const versionChars = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-.+"

// parseVersion reads "1.2.3", "v2", "2026.11.28" or "1.0.0-rc.1+build".
func parseVersion(text string) (v version, ok bool) {
	const most = 64
	if len(text) > most || strings.Trim(text, versionChars) != "" {
		return v, false
	}
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "v"), "+")
	numbers, pre, isPre := strings.Cut(text, "-")
	for digits := range strings.SplitSeq(numbers, ".") {
		n, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			return v, false
		}
		v.numbers = append(v.numbers, n)
	}
	if isPre {
		v.before = strings.Split(pre, ".")
	}
	return v, !slices.Contains(v.before, "")
}

// IsVersion reports whether a text is a version that has an order.
func IsVersion(text string) bool {
	_, ok := parseVersion(text)
	return ok
}

// compareVersions compares two versions that IsVersion accepts. A missing number is
// zero.
func compareVersions(a, b string) int {
	x, _ := parseVersion(a)
	y, _ := parseVersion(b)
	at := func(numbers []uint64, i int) uint64 {
		if i < len(numbers) {
			return numbers[i]
		}
		return 0
	}
	for i := range max(len(x.numbers), len(y.numbers)) {
		if c := cmp.Compare(at(x.numbers, i), at(y.numbers, i)); c != 0 {
			return c
		}
	}
	if len(x.before) == 0 || len(y.before) == 0 {
		return cmp.Compare(len(y.before), len(x.before)) // the release follows its pre-releases
	}
	for i := range min(len(x.before), len(y.before)) {
		if c := comparePart(x.before[i], y.before[i]); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(x.before), len(y.before))
}

// comparePart compares parts of pre-releases: numbers by value and before words.
func comparePart(a, b string) int {
	x, errA := strconv.ParseUint(a, 10, 64)
	y, errB := strconv.ParseUint(b, 10, 64)
	switch {
	case errA == nil && errB == nil:
		return cmp.Compare(x, y)
	case errA == nil:
		return -1
	case errB == nil:
		return 1
	}
	return strings.Compare(a, b)
}
