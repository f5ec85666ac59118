package upstream

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TarGz is an archive of files. The same files give the same bytes.
func TarGz(t testing.TB, files Files) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(files[name])), Mode: int64(mode(name))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(files[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Pages are the pages of a server on the loopback interface, by path. They may be set
// at any time.
type Pages struct {
	URL string

	t   testing.TB
	mu  sync.Mutex
	all map[string]page
}

type page struct {
	kind string
	data []byte
}

// NewPages starts a server without pages.
func NewPages(t testing.TB) *Pages {
	t.Helper()
	p := &Pages{t: t, all: map[string]page{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		found, ok := p.all[r.URL.EscapedPath()]
		p.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", found.kind)
		w.Header().Set("Docker-Content-Digest", Sum(found.data))
		_, _ = w.Write(found.data)
	}))
	t.Cleanup(server.Close)
	p.URL = server.URL
	return p
}

// Host is the server's address without a scheme.
func (p *Pages) Host() string { return strings.TrimPrefix(p.URL, "http://") }

// Set creates or replaces a page.
func (p *Pages) Set(path, kind string, data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[path] = page{kind, data}
}

func (p *Pages) setJSON(path, kind string, v any) []byte {
	p.t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Set(path, kind, data)
	return data
}

// Sum is the digest of bytes, as packs and registries write it.
func Sum(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Skill makes the pack the only one in the site's index of skills, version 0.2.
func (p *Pages) Skill(name string, files Files) {
	p.t.Helper()
	const dir = "/.well-known/agent-skills/"
	data := TarGz(p.t, files)
	p.Set(dir+name+".tar.gz", "application/gzip", data)
	p.setJSON(dir+"index.json", "application/json", map[string]any{
		"$schema": "https://schemas.agentskills.io/discovery/0.2.0/schema.json",
		"skills":  []any{map[string]any{"name": name, "type": "archive", "description": "x", "url": name + ".tar.gz", "digest": Sum(data)}},
	})
}

// Artifact puts a pack under a tag in a repository of the registry, and returns its
// digest.
func (p *Pages) Artifact(repository, tag string, files Files) string {
	p.t.Helper()
	const kind = "application/vnd.oci.image.manifest.v1+json"
	base := "/v2/" + repository
	blob := func(data []byte, kind string) map[string]any {
		p.Set(base+"/blobs/"+Sum(data), "application/octet-stream", data)
		return map[string]any{"mediaType": kind, "digest": Sum(data), "size": len(data)}
	}
	p.Set("/v2/", "application/json", []byte("{}"))
	m := p.setJSON(base+"/manifests/"+tag, kind, map[string]any{
		"schemaVersion": 2, "mediaType": kind, "artifactType": "application/vnd.packs-mcp.pack.v1",
		"config": blob([]byte("{}"), "application/vnd.oci.empty.v1+json"),
		"layers": []any{blob(TarGz(p.t, files), "application/vnd.oci.image.layer.v1.tar+gzip")},
	})
	p.Set(base+"/manifests/"+Sum(m), kind, m)
	p.setJSON(base+"/referrers/"+Sum(m), "application/vnd.oci.image.index.v1+json", map[string]any{
		"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": []any{},
	})
	return Sum(m)
}

// Rulebook makes a rulebook the only one in the server's API, which is at the root.
func (p *Pages) Rulebook(uri, description, content string) {
	p.t.Helper()
	listed := map[string]any{"id": "1", "uri": uri, "description": description, "visibility": "PUBLIC", "tags": []string{}}
	p.setJSON("/v1/rules", "application/json", map[string]any{"results": []any{listed}})
	full := maps.Clone(listed)
	full["content"] = content
	p.setJSON("/v1/rules/"+url.PathEscape(uri), "application/json", full)
}
