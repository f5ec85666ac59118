package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/caches"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/grantfile"
	"github.com/packs-mcp/packs-mcp/internal/gate/grants"
)

// Doctor lists the caches of tools. Revoking an answer empties its caches and no
// others.
func TestCachesCommands(t *testing.T) {
	home := t.TempDir()
	command := func(args ...string) string {
		t.Helper()
		var out bytes.Buffer
		_ = run(t.Context(), args, []string{"HOME=" + home, "PACKS_MCP_HOME=" + home}, strings.NewReader(""), &out, &out)
		return out.String()
	}
	if out := command("doctor"); strings.Contains(out, "caches") {
		t.Errorf("doctor, without a cache, prints:\n%s", out)
	}
	store := caches.Open(filepath.Join(home, "caches"), caches.Options{})
	revoked, stays, third := strings.Repeat("a", 64), strings.Repeat("b", 64), strings.Repeat("c", 64)
	for i, key := range []string{revoked, stays, third} {
		c, err := store.Take(t.Context(), key, caches.About{Subject: key, Version: "1", Person: "ada", Pack: "acme/go", Tool: "build\x1b[2J", Name: "go-build"})
		if err != nil {
			t.Fatal(err)
		}
		c.Release(caches.Held{Bytes: int64(i+1) << 20})
	}
	out := command("doctor")
	for _, part := range []string{"tools keep 6 MiB in 3 caches", filepath.Join(home, "caches"), `build\x1b[2J of acme/go for ada: go-build`} {
		if !strings.Contains(strings.Join(strings.Fields(out), " "), part) {
			t.Errorf("doctor does not print %q:\n%s", part, out)
		}
	}
	if out := command("doctor", "--json"); !strings.Contains(out, `"bytes": 1048576`) {
		t.Errorf("doctor --json prints:\n%s", out)
	}
	kept := grantfile.Open(filepath.Join(home, "state", "grants.json"))
	err := kept.Update(func(all []grants.Grant) ([]grants.Grant, error) {
		for _, key := range []string{revoked, stays} {
			all = append(all, grants.Grant{ID: key[:8], Digest: key, Subject: "s", Since: time.Now(), Kind: call.KindRun, Pack: "acme/go", Tool: "build"})
		}
		return all, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if out := command("approvals", "revoke", revoked[:8]); !strings.Contains(out, "emptied 1 cache\n") {
		t.Errorf("revoke prints:\n%s", out)
	}
	if list, err := store.List(); err != nil || len(list) != 2 {
		t.Errorf("List = %+v, %v, want what was not revoked", list, err)
	}
	if out := command("approvals", "revoke", "--all"); !strings.Contains(out, "emptied 2 caches\n") {
		t.Errorf("revoke --all prints:\n%s", out)
	}
	if list, err := store.List(); err != nil || len(list) != 0 {
		t.Errorf("List = %+v, %v, want none", list, err)
	}
}
