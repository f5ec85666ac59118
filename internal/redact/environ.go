package redact

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds in bytes on environment values that count as secrets: shorter ones are
// words, longer ones files.
const (
	minEnvironSecret = 8
	maxEnvironSecret = 32 << 10
)

// Environ returns the values in environ that are secrets, judged by their names, and
// the passwords in its URLs: clients pass their own keys to their servers. Paths of
// existing files are not secrets.
func Environ(environ []string) []string {
	var out []string
	add := func(value string) {
		if len(value) >= minEnvironSecret && len(value) <= maxEnvironSecret && !slices.Contains(out, value) {
			out = append(out, value)
		}
	}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if u, err := url.Parse(value); err == nil && u.User != nil {
			if password, ok := u.User.Password(); ok && password != u.User.Username() {
				add(password)
			}
		}
		if !isEnvironSecret(name) || isFile(value) {
			continue
		}
		add(value)
	}
	return out
}

// isEnvironSecret reports whether the variable name is a secret. Unlike a tool's
// parameter, a variable with "key" in its name is.
func isEnvironSecret(name string) bool {
	upper := strings.ToUpper(name)
	return SensitiveName(name) || upper == "KEY" || strings.HasSuffix(upper, "_KEY") || strings.HasSuffix(upper, "_KEYS") ||
		strings.HasSuffix(upper, "_PASS") || strings.HasSuffix(upper, "_PAT")
}

func isFile(value string) bool {
	if !filepath.IsAbs(value) {
		return false
	}
	_, err := os.Lstat(value)
	return err == nil
}
