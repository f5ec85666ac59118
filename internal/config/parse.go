package config

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
	}{{"TiB", 1024 * gib}, {"GiB", gib}, {"MiB", mib}, {"KiB", kib}, {"B", 1}}
}

// parseSize reads 10000, 16KiB or 64 MiB.
func parseSize(s string) (int64, bool) {
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

// sizeText returns the shortest text that parseSize reads as n.
func sizeText(n int64) string {
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

func parseCount(s string) (int, bool) {
	n, ok := parseDigits(s)
	return int(n), ok && n <= math.MaxInt32
}

// parseDuration reads 45s, 5m or 1h30m.
func parseDuration(s string) (time.Duration, bool) {
	d, err := time.ParseDuration(s)
	return d, err == nil && s != "0"
}

// durationText writes a duration without its zero parts: 10m, not 10m0s.
func durationText(d time.Duration) string {
	switch {
	case d > 0 && d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d > 0 && d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return d.String()
}
