//go:build amd64 || arm64

package runner

import (
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/hosts"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/test/internet"
)

func TestHosts(t *testing.T) {
	if !internet.Own(t) {
		return
	}
	r := New(Options{Skip: skipped(), TempDir: t.TempDir()})
	defer r.Close()
	if !r.Probe(t.Context()).Loopback {
		t.Skip("no level here has a network of its own")
	}
	c := behave(t, "reach")
	internet.Check(t, c.Workspace, func(p sandbox.Policy, args, env []string) (*sandbox.Result, error) {
		c.Args, c.Env = append(c.Args, args...), append(c.Env, env...)
		policy := allow(sandbox.Limits{}, c)
		policy.Network, policy.Hosts = p.Network, p.Hosts
		return r.Run(t.Context(), policy, c)
	})
}

// If a run has the machine's network, nothing restricts it to its hosts.
func TestHostsWithoutOwnNetwork(t *testing.T) {
	r := New(Options{Skip: []sandbox.Level{sandbox.LevelFull}, TempDir: t.TempDir()})
	defer r.Close()
	if r.Probe(t.Context()).Loopback {
		t.Skip("level partial has a network of its own here")
	}
	c := behave(t, "args")
	policy := allow(sandbox.Limits{}, c)
	policy.Network, policy.Hosts = sandbox.NetworkHosts, []hosts.Host{{Name: "api.example.com", Port: 443}}
	if res, err := r.Run(t.Context(), policy, c); err == nil {
		t.Errorf("Run = %+v, want it not started", res)
	}
}
