package container_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/container"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
)

// between returns the socket of a proxy before the tests' engine. It passes each request on as
// rewrite changes it, and each answer as modify does.
func between(t *testing.T, rewrite func(*httputil.ProxyRequest), modify func(*http.Response) error) string {
	t.Helper()
	needsPodman(t)
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	dial := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", podman.Socket)
	}}
	server := &http.Server{Handler: &httputil.ReverseProxy{
		Transport: dial,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "engine"
			rewrite(r)
		},
		ModifyResponse: modify,
	}}
	go func() { _ = server.Serve(ln) }()
	t.Cleanup(func() { _ = server.Close() })
	return socket
}

// altered returns the JSON in a body as alter changes it.
func altered(t *testing.T, body io.Reader, alter func(map[string]any)) []byte {
	t.Helper()
	var all map[string]any
	if err := json.NewDecoder(body).Decode(&all); err != nil {
		t.Error(err)
		return nil
	}
	alter(all)
	text, err := json.Marshal(all)
	if err != nil {
		t.Error(err)
	}
	return text
}

// dropping returns the socket of an engine that makes of each container what alter makes of
// it.
func dropping(t *testing.T, alter func(spec, host map[string]any)) string {
	t.Helper()
	return between(t, func(r *httputil.ProxyRequest) {
		if !strings.HasSuffix(r.In.URL.Path, "/containers/create") {
			return
		}
		text := altered(t, r.In.Body, func(spec map[string]any) { alter(spec, spec["HostConfig"].(map[string]any)) })
		r.Out.Body, r.Out.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
		r.Out.Header.Set("Content-Length", strconv.Itoa(len(text)))
	}, nil)
}

// What an engine drops is seen from inside of the container, and nothing of a pack runs in
// it, nor is looked up.
func TestDropped(t *testing.T) {
	for name, c := range map[string]struct {
		alter func(spec, host map[string]any)
		want  string // empty: it is as it was asked for
	}{
		"nothing":           {func(_, _ map[string]any) {}, ""},
		"bound on memory":   {func(_, host map[string]any) { delete(host, "Memory"); delete(host, "MemorySwap") }, "did not bound the container's memory"},
		"bound on tasks":    {func(_, host map[string]any) { delete(host, "PidsLimit") }, "did not bound the container's processes"},
		"read-only root":    {func(_, host map[string]any) { delete(host, "ReadonlyRootfs") }, "root folder read-only"},
		"capabilities":      {func(_, host map[string]any) { delete(host, "CapDrop") }, "did not drop the container's capabilit"},
		"no new privileges": {func(_, host map[string]any) { delete(host, "SecurityOpt") }, "no_new_privs"},
		"network":           {func(_, host map[string]any) { host["NetworkMode"] = "host" }, "network interface"},
		"read-only folder": {func(_, host map[string]any) {
			for _, m := range host["Mounts"].([]any) {
				m.(map[string]any)["ReadOnly"] = false
			}
		}, "read-only in the container"},
		"a folder": {func(_, host map[string]any) {
			var rest []any
			for _, m := range host["Mounts"].([]any) {
				if at := m.(map[string]any)["Target"].(string); strings.HasPrefix(at, "/.packs-mcp") {
					rest = append(rest, m)
				}
			}
			host["Mounts"] = rest
		}, "did not give the container"},
	} {
		t.Run(name, func(t *testing.T) {
			system := container.New(container.Options{Socket: dropping(t, c.alter), Image: podman.Image})
			pack := project(t)
			_, err := system.Lookup(t.Context(), "sh", pack, "")
			said := ""
			if err != nil {
				said = err.Error()
			}
			if (said == "") != (c.want == "") || !strings.Contains(said, c.want) {
				t.Errorf("Lookup = %v, want %q", err, c.want)
			}
			if name != "bound on memory" { // a run looks at the same
				return
			}
			r := runner.New(runner.Options{System: system})
			defer r.Close()
			report := r.Probe(t.Context())
			res, err := r.Run(t.Context(), sandbox.Policy{}, sandbox.Command{Program: shell(t), Args: []string{"-c", "exit 0"}, Dir: "/"})
			if report.Level != sandbox.LevelNone || !errors.As(err, new(*sandbox.ConfineError)) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Probe = %+v, Run = %+v, %v, want %q", report, res, err, c.want)
			}
		})
	}
}

// A slow engine holds up those who ask it, each for its own time, and not each other.
func TestSlowEngine(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	asked := make(chan net.Conn)
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			asked <- conn // and it never answers
		}
	}()
	s := container.New(container.Options{Socket: socket, Image: "sha256:" + strings.Repeat("0", 64)})
	answers := make(chan error)
	for range 2 {
		go func() {
			_, err := s.Place(t.Context())
			answers <- err
		}()
	}
	first, second := <-asked, <-asked // both ask at the same time
	_, _ = first.Close(), second.Close()
	for range 2 {
		if err := <-answers; err == nil {
			t.Error("Place succeeds without an answer")
		}
	}
}
