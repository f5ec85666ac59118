package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/program/file"
)

// isRustupProxy reports whether path is a symbolic or hard link to rustup that stands for
// a program of Rust.
func isRustupProxy(path, resolved string) bool {
	if !slices.Contains([]string{
		"cargo", "cargo-clippy", "cargo-fmt", "cargo-miri", "clippy-driver", "rls", "rust-analyzer", "rust-gdb", "rust-gdbgui",
		"rust-lldb", "rustc", "rustdoc", "rustfmt",
	}, filepath.Base(path)) {
		return false
	}
	if filepath.Base(resolved) == "rustup" || filepath.Base(resolved) == "rustup-init" {
		return true
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return false
	}
	rustup, err := os.Stat(filepath.Join(filepath.Dir(resolved), "rustup"))
	return err == nil && os.SameFile(info, rustup)
}

// rustup looks for the toolchain in RUSTUP_TOOLCHAIN, and for each folder from
// Dir upwards in the overrides of settings.toml and in rust-toolchain.toml, and
// else takes the default one. The programs of a toolchain find each other in their own
// folder, so they do not need rustup.
func (s *Shim) rustup() (string, error) {
	name, source, err := s.rustToolchain()
	if err != nil {
		return "", err
	}
	if err := checkName("toolchain", name, source); err != nil {
		return "", err
	}
	dir := filepath.Join(s.root, "toolchains")
	found := name
	if !file.IsDir(filepath.Join(dir, name)) {
		arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64", "386": "i686"}[runtime.GOARCH]
		hosts, _ := filepath.Glob(filepath.Join(globEscape(dir), name+"-"+arch+"-*"))
		if arch == "" || len(hosts) != 1 {
			return "", fmt.Errorf("toolchain %q, which %s names, is not installed", name, source)
		}
		found = filepath.Base(hosts[0])
	}
	path := filepath.Join(dir, found, "bin", s.Name)
	if !file.Runnable(path) {
		return "", fmt.Errorf("toolchain %q has no %q", found, s.Name)
	}
	return path, nil
}

func (s *Shim) rustToolchain() (name, source string, err error) {
	if v := s.o.Environ.Get("RUSTUP_TOOLCHAIN"); v != "" {
		return v, "RUSTUP_TOOLCHAIN", nil
	}
	settings := filepath.Join(s.root, "settings.toml")
	text, err := s.read(settings)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", errors.New("no toolchain is set")
	} else if err != nil {
		return "", "", err
	}
	entries, err := parseTOML(text)
	if err != nil {
		return "", "", fmt.Errorf("%q cannot be understood: %w", settings, err)
	}
	source = fmt.Sprintf("%q", settings)
	for _, dir := range s.versionDirs() {
		if v := tomlString(entries, "overrides", dir); v != "" {
			return v, source, nil
		}
		for _, base := range []string{"rust-toolchain", "rust-toolchain.toml"} {
			file := filepath.Join(dir, base)
			text, err := s.read(file)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			} else if err != nil {
				return "", "", err
			}
			line := strings.TrimSpace(text)
			if base == "rust-toolchain" && line != "" && !strings.ContainsAny(line, "\n[=") {
				return line, fmt.Sprintf("%q", file), nil
			}
			entries, err := parseTOML(text)
			channel := tomlString(entries, "toolchain", "channel")
			if err != nil || channel == "" {
				return "", "", fmt.Errorf("%q names no channel that could be understood", file)
			}
			return channel, fmt.Sprintf("%q", file), nil
		}
	}
	if v := tomlString(entries, "default_toolchain"); v != "" {
		return v, source, nil
	}
	return "", "", errors.New("no toolchain is set")
}

// tomlString returns the string that entries have for a key, or "".
func tomlString(entries []tomlEntry, key ...string) string {
	for _, e := range entries {
		if slices.Equal(e.key, key) && e.simple && len(e.values) == 1 {
			return e.values[0]
		}
	}
	return ""
}
