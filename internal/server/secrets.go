package server

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/packs-mcp/packs-mcp/internal/redact"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
)

// checkPrivate makes sure that no run reads what Options.Private names because
// it lies where every run reads.
func checkPrivate(private []string) error {
	for _, path := range private {
		if everyRunReads(path) {
			return fmt.Errorf("%q is for packs-mcp alone, and in a folder of the system's, which every program of a pack may read; keep it elsewhere", path)
		}
	}
	return nil
}

// everyRunReads reports whether a path is in a folder of the system's that runs
// are shown. Of /etc, runs of root's get only what everybody may read.
func everyRunReads(path string) bool {
	if path == "" || !paths.IsSystem(path) {
		return false
	}
	if runtime.GOOS == "linux" && os.Getuid() == 0 && within(path, "/etc") {
		info, err := os.Stat(path)
		return err != nil || info.Mode()&0o004 != 0
	}
	return true
}

// keepsOut says why nothing of a pack is given: its folder has in it what only
// this program may read. It is nil for every other pack.
func (s *Server) keepsOut(packID, dir string) error {
	if !s.holdsPrivate(dir) {
		return nil
	}
	return failf(codePathDenied, "Tell the user to move the pack into a folder of its own.",
		"the folder of pack %q holds keys or tokens of packs-mcp itself, so nothing in it is given", packID)
}

// withoutTokens refuses a call that has a token of this server in its arguments:
// a person has to be shown all of it, and the log keeps it.
func (s *Server) withoutTokens(c *call) error {
	said := []json.RawMessage{c.args}
	if c.meta != nil {
		if raw, err := json.Marshal(c.meta.AdditionalFields[contextKey]); err == nil {
			said = append(said, raw)
		}
	}
	if slices.ContainsFunc(said, s.tokens.InJSON) {
		return failf(codeInvalidArguments, "Leave it out, and tell the user where you have it from.", "the arguments have a token in them that lets people use this server")
	}
	return nil
}

// secretsOf are the values that are taken out of results and the log: tokens of
// this server, and what the environment has.
func secretsOf(o *Options) *redact.Secrets {
	all := slices.Clone(o.Tokens)
	for _, s := range redact.Environ(o.Environ) {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return redact.New(all...)
}

// clientName is how a client calls itself, without tokens: people see it.
func (s *Server) clientName(name, version string) string {
	return s.tokens.Hide(strings.TrimSpace(name + " " + version))
}
