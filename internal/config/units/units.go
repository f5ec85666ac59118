// Package units reads and writes sizes, numbers and times as people write them in a
// configuration. It does not say which are allowed.
package units

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// units returns the units of sizes, largest first.
func units() []struct {
	name  string
	bytes int64
} {
	return []struct {
		name  string
		bytes int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
}

// ParseSize reads 10000, 16KiB or 64 MiB.
func ParseSize(s string) (int64, bool) {
	for _, u := range units() {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, ok := parseDigits(strings.TrimSuffix(digits, " "))
		if !ok || n > math.MaxInt64/u.bytes {
			return 0, false
		}
		return n * u.bytes, true
	}
	return parseDigits(s)
}

// SizeText returns the shortest text that [ParseSize] reads as n.
func SizeText(n int64) string {
	for _, u := range units() {
		if n >= u.bytes && n%u.bytes == 0 && u.bytes > 1 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// parseDigits reads a number written with digits only. YAML also has octals,
// underscores and signs, which nobody means here.
func parseDigits(s string) (int64, bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n, err == nil
}

// ParseCount reads a number of at most 2147483647.
func ParseCount(s string) (int, bool) {
	n, ok := parseDigits(s)
	return int(n), ok && n <= math.MaxInt32
}

// ParseDuration reads 45s, 5m or 1h30m.
func ParseDuration(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	return d, err == nil && s != "0"
}

// DurationText writes a duration without its zero parts: 10m, not 10m0s.
func DurationText(d time.Duration) string {
	switch {
	case d > 0 && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d > 0 && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}
