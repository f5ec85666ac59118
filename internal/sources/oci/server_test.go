package oci

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// A testRegistry follows the distribution specification, including referrers. It asks
// for a password if it has one.
type testRegistry struct {
	*httptest.Server
	login     string // USER:PASSWORD; "": no login needed
	basic     bool   // it wants the password itself, and not a token
	realm     string // where tokens are; "": here
	answer    func(w http.ResponseWriter, r *http.Request) bool
	referrers bool // it lists them
	configs   bool // it lists the types of their configs, as some do

	mu    sync.Mutex
	blobs map[string][]byte
	mans  map[string][]byte // :: digest or tag → manifest
	log   []string          // what changed, in order
	heard []string          // received Authorization headers
}

func newTestRegistry(t *testing.T) *testRegistry {
	t.Helper()
	g := &testRegistry{blobs: map[string][]byte{}, mans: map[string][]byte{}, referrers: true}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

func (g *testRegistry) host() string { return strings.TrimPrefix(g.URL, "http://") }

func (g *testRegistry) ref(rest string) string { return "oci://" + g.host() + "/acme/triage" + rest }

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// put stores a blob, as if it had been pushed.
func (g *testRegistry) put(data []byte) map[string]any {
	g.blobs[sumOf(data)] = data
	return map[string]any{"digest": sumOf(data), "size": len(data)}
}

// tag stores a manifest, and returns its digest.
func (g *testRegistry) tag(t *testing.T, tag string, m any) string {
	t.Helper()
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	d := sumOf(data)
	g.mans[d], g.mans[tag] = data, data
	return d
}

var (
	uploadPath   = regexp.MustCompile(`^/v2/(.+)/blobs/uploads/$`)
	blobPath     = regexp.MustCompile(`^/v2/(.+)/blobs/(sha256:[0-9a-f]{64})$`)
	manifestPath = regexp.MustCompile(`^/v2/(.+)/manifests/([^/]+)$`)
	referrerPath = regexp.MustCompile(`^/v2/(.+)/referrers/(.+)$`)
)

func (g *testRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := r.Header.Get("Authorization"); a != "" {
		g.heard = append(g.heard, a)
	}
	if r.URL.Path == "/token" {
		g.token(w, r)
		return
	}
	if g.login != "" && r.Header.Get("Authorization") != "Bearer open" && !(g.basic && r.Header.Get("Authorization") == g.basicAuth()) {
		realm := g.realm
		if realm == "" {
			realm = g.URL + "/token"
		}
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="x"`, realm))
		if g.basic {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
		}
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if g.answer != nil && g.answer(w, r) {
		return
	}
	switch p := r.URL.Path; {
	case p == "/v2/":
	case uploadPath.MatchString(p):
		g.upload(w, r)
	case blobPath.MatchString(p):
		serve(w, r, g.blobs[blobPath.FindStringSubmatch(p)[2]], "application/octet-stream")
	case manifestPath.MatchString(p):
		g.manifest(w, r, manifestPath.FindStringSubmatch(p)[2])
	case referrerPath.MatchString(p) && g.referrers:
		g.refer(w, referrerPath.FindStringSubmatch(p)[2])
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (g *testRegistry) basicAuth() string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(g.login))
}

func (g *testRegistry) token(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	if r.Header.Get("Authorization") != g.basicAuth() && form.Get("refresh_token") != g.login {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	fmt.Fprint(w, `{"token":"open","access_token":"open"}`)
}

func (g *testRegistry) upload(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		w.Header().Set("Location", r.URL.Path)
		w.WriteHeader(http.StatusAccepted)
		return
	}
	data, _ := io.ReadAll(r.Body)
	d := r.URL.Query().Get("digest")
	if sumOf(data) != d {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	g.blobs[d] = data
	g.log = append(g.log, "blob")
	w.WriteHeader(http.StatusCreated)
}

func (g *testRegistry) manifest(w http.ResponseWriter, r *http.Request, ref string) {
	if r.Method != http.MethodPut {
		var m struct{ MediaType string }
		_ = json.Unmarshal(g.mans[ref], &m)
		serve(w, r, g.mans[ref], m.MediaType)
		return
	}
	data, _ := io.ReadAll(r.Body)
	var m struct {
		Subject *struct{ Digest string }
		Layers  []struct{ Digest string }
	}
	if json.Unmarshal(data, &m) != nil || len(m.Layers) > 0 && g.blobs[m.Layers[0].Digest] == nil || strings.Contains(ref, ":") && ref != sumOf(data) {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	g.mans[sumOf(data)], g.mans[ref] = data, data
	what := "manifest"
	if m.Subject != nil {
		what = "signature"
		if g.referrers {
			w.Header().Set("OCI-Subject", m.Subject.Digest)
		}
	}
	if !strings.Contains(ref, ":") {
		what = "tag " + ref
	}
	g.log = append(g.log, what)
	w.Header().Set("Docker-Content-Digest", sumOf(data))
	w.WriteHeader(http.StatusCreated)
}

func (g *testRegistry) refer(w http.ResponseWriter, subject string) {
	all := []map[string]any{}
	for ref, data := range g.mans {
		var m struct {
			MediaType, ArtifactType string
			Subject                 *struct{ Digest string }
		}
		if strings.Contains(ref, ":") && json.Unmarshal(data, &m) == nil && m.Subject != nil && m.Subject.Digest == subject {
			if g.configs {
				m.ArtifactType = "application/vnd.oci.empty.v1+json"
			}
			all = append(all, map[string]any{"mediaType": m.MediaType, "artifactType": m.ArtifactType, "digest": ref, "size": len(data)})
		}
	}
	w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
	_ = json.NewEncoder(w).Encode(map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": all})
}

func serve(w http.ResponseWriter, r *http.Request, data []byte, kind string) {
	if data == nil {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Docker-Content-Digest", sumOf(data))
	w.Header().Set("Content-Length", fmt.Sprint(len(data)))
	if r.Method == http.MethodGet {
		_, _ = w.Write(data)
	}
}
