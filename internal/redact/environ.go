package redact

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The bounds of a value of the environment, in bytes, that is taken for a
// secret: shorter ones are words, and longer ones files.
const (
	minEnvironSecret = 8
	maxEnvironSecret = 32 << 10
)

// Environ returns the values of environ that are secrets, going by their
// names, and the passwords of its URLs: clients give their servers the keys
// that they use themselves. The names of files that exist are none.
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

// isEnvironSecret reports whether the variable called name is a secret. A key
// is one here, other than among the parameters of a tool.
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
