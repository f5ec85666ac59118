//go:build amd64 || arm64

package container

import (
	"net"
	"net/http"
	"path/filepath"
	"testing"
)

// Docker and Podman each say in their own way that they are rootless. If that goes unnoticed, a
// container's processes have another user than the server, and the helper cannot connect.
func TestRootless(t *testing.T) {
	for name, c := range map[string]struct {
		info string
		want bool
	}{
		"Podman":           {`{"Rootless": true, "SecurityOptions": ["name=seccomp,profile=default"]}`, true},
		"Podman as root":   {`{"Rootless": false, "SecurityOptions": ["name=seccomp,profile=default"]}`, false},
		"Docker":           {`{"SecurityOptions": ["name=seccomp,profile=builtin", "name=rootless"]}`, true},
		"Docker of root's": {`{"SecurityOptions": ["name=seccomp,profile=builtin"]}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "s")
			ln, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(c.info)) })}
			go func() { _ = server.Serve(ln) }()
			defer server.Close()
			if got, err := newEngine(socket).rootless(t.Context(), about{}); got != c.want || err != nil {
				t.Errorf("rootless = %v, %v, want %v", got, err, c.want)
			}
		})
	}
}
