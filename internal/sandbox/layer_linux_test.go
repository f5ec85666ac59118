//go:build amd64 || arm64

package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLayerOverlay(t *testing.T) {
	r := New(Options{Skip: skipped(), TempDir: t.TempDir()})
	defer r.Close()
	t.Logf("%+v", r.Probe(t.Context()))
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := shell(t, dir, "echo after >file; echo new >new; mkdir d; ls -la; cat /proc/self/mountinfo | grep overlay")
	c.Workspace = ""
	p := Policy{Layers: r.Layers(t.Context(), []string{dir})}
	t.Logf("%+v", p.Layers)
	res, err := r.Run(t.Context(), p, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d %s %s", res.ExitCode, res.Stdout.Bytes(), res.Stderr.Bytes())
	got, _ := os.ReadFile(filepath.Join(dir, "file"))
	t.Logf("%s", got)
}
