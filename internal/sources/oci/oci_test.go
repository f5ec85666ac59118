package oci

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/sourcestest"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
	"github.com/packs-mcp/packs-mcp/test/upstream"
)

// publish publishes the pack at a path of a source, as the command does.
func publish(t *testing.T, w *web.Access, s sources.Snapshot, under string, r address.Reference, sign func(p *Publication) []byte) (string, error) {
	b, err := sources.NewBundle(t.Context(), s, under)
	if err != nil {
		return "", err
	}
	defer b.Close()
	p, err := Prepare(t.Context(), w, b, r)
	if err != nil {
		return "", err
	}
	defer p.Close()
	var signature []byte
	if sign != nil {
		signature = sign(p)
	}
	return p.Digest, p.Publish(t.Context(), signature)
}

// A pack is published with and without a signature, and is fetched with the same
// digest. The tag comes last, and the same files have the same digest.
func TestPublish(t *testing.T) {
	for _, referrers := range []bool{true, false} {
		t.Run(fmt.Sprintf("referrers=%v", referrers), func(t *testing.T) {
			g := newTestRegistry(t)
			g.login, g.referrers = "user:secret", referrers
			w := sourcestest.Here()
			w.Logins = loginsOf(t, `{"auths":{"`+g.host()+`":{"auth":"`+base64.StdEncoding.EncodeToString([]byte(g.login))+`"}}}`)
			dir := sourcestest.Pack(t)
			before, _, err := sourcestest.Fill(t, sourcestest.Open(t, dir), "")
			if err != nil {
				t.Fatal(err)
			}
			sign := func(p *Publication) []byte { return []byte(`{"signs":"` + p.Digest + `"}`) }
			pin, err := publish(t, w, sourcestest.Open(t, dir), "", sourcestest.Parse(t, g.ref(":v1")), sign)
			if err != nil {
				t.Fatal(err)
			}
			if want := []string{"blob", "blob", "manifest", "blob", "signature", "tag v1"}; referrers && !slices.Equal(g.log, want) {
				t.Errorf("changes = %q, want %q", g.log, want)
			}
			if last := g.log[len(g.log)-1]; last != "tag v1" {
				t.Errorf("the last change is %q, want the tag", last)
			}
			if err := os.Chtimes(filepath.Join(dir, "SKILL.md"), testTime, testTime); err != nil {
				t.Fatal(err)
			}
			if again, err := publish(t, w, sourcestest.Open(t, filepath.Dir(dir)), "triage", sourcestest.Parse(t, g.ref(":v2")), nil); err != nil || again != pin {
				t.Errorf("published again: %s, %v, want %s", again, err, pin)
			}
			for _, address := range []string{g.ref(":v1"), g.ref("@" + pin)} {
				s, err := Open(t.Context(), w, sourcestest.Parse(t, address))
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				if s.Pin() != pin || s.Resolved() != g.ref("@"+pin) {
					t.Errorf("%s: pin %s, resolved %s, want %s", address, s.Pin(), s.Resolved(), pin)
				}
				after, _, err := sourcestest.Fill(t, s, "")
				if err != nil {
					t.Fatal(err)
				}
				if after.Digest() != before.Digest() {
					t.Errorf("%q came back, and %q was published", sourcestest.Paths(after), sourcestest.Paths(before))
				}
			}
			all, err := proofs(t.Context(), w, sourcestest.Parse(t, g.ref("")), pin)
			if err != nil || len(all) != 1 || string(all[0].Bundle) != `{"signs":"`+pin+`"}` {
				t.Errorf("bundles = %v, %v", all, err)
			}
			g.configs = true
			if all, err := proofs(t.Context(), w, sourcestest.Parse(t, g.ref("")), pin); err != nil || len(all) != 1 {
				t.Errorf("bundles by the types of configs = %v, %v", all, err)
			}
			if all, err := proofs(t.Context(), w, sourcestest.Parse(t, g.ref("")), sumOf([]byte("x"))); err != nil || len(all) > 0 {
				t.Errorf("bundles of nothing = %v, %v", all, err)
			}
		})
	}
}

// A pack with problems, or that could not be added, is not published.
func TestPublishRefuses(t *testing.T) {
	g := newTestRegistry(t)
	dir := sourcestest.Pack(t)
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if _, err := publish(t, sourcestest.Here(), sourcestest.Open(t, dir), "", sourcestest.Parse(t, g.ref(":v1")), nil); !errors.As(err, new(*stage.RefusedError)) {
		t.Errorf("a link that leads out: %v", err)
	}
	if err := errors.Join(os.Remove(filepath.Join(dir, "link")), os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("no frontmatter"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := publish(t, sourcestest.Here(), sourcestest.Open(t, dir), "", sourcestest.Parse(t, g.ref(":v1")), nil); err == nil {
		t.Error("a pack without frontmatter was published")
	}
	if g.mans["v1"] != nil {
		t.Error("there is a tag")
	}
}

const layerType = "application/vnd.oci.image.layer.v1.tar+gzip"

func with(m map[string]any, key string, value any) map[string]any {
	m[key] = value
	return m
}

// ToolHive's skills are an index over manifests with one layer.
func TestToolHive(t *testing.T) {
	g := newTestRegistry(t)
	layer := with(g.put(upstream.TarGz(t, upstream.Files{"SKILL.md": sourcestest.Document})), "mediaType", layerType)
	config := with(g.put([]byte(`{"config":{}}`)), "mediaType", "application/vnd.oci.image.config.v1+json")
	m := map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": toolhiveType, "config": config, "layers": []any{layer}}
	d := g.tag(t, "one", m)
	index := g.tag(t, "1.0.0", map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "artifactType": toolhiveType,
		"manifests": []any{map[string]any{"mediaType": m["mediaType"], "digest": d, "size": len(g.mans[d]), "platform": map[string]any{"os": "linux", "architecture": "amd64"}}}})
	for tag, pin := range map[string]string{"one": d, "1.0.0": index} {
		s, err := Open(t.Context(), sourcestest.Here(), sourcestest.Parse(t, g.ref(":"+tag)))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		found, err := sources.Survey(t.Context(), s, "")
		if err != nil || len(found) != 1 || found[0].Name != "triage" || s.Pin() != pin {
			t.Errorf("%s: %+v, %v, pin %s, want triage and %s", tag, found, err, s.Pin(), pin)
		}
	}
}

// A registry that lies, and artifacts that are not packs.
func TestHostileRegistry(t *testing.T) {
	pack := upstream.TarGz(t, upstream.Files{"SKILL.md": sourcestest.Document})
	other := upstream.TarGz(t, upstream.Files{"SKILL.md": sourcestest.Document + "more"})
	for name, tt := range map[string]struct {
		change func(g *testRegistry, m, layer map[string]any)
		answer func(g *testRegistry) func(http.ResponseWriter, *http.Request) bool
		digest bool
		pin    bool // the error is a *sources.PinError
		large  bool // the error is ErrTooLarge
		want   string
	}{
		"another manifest for a digest": {digest: true, pin: true, answer: func(g *testRegistry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if manifestPath.MatchString(r.URL.Path) {
					serve(w, r, append(slices.Clone(g.mans["v1"]), ' '), "application/vnd.oci.image.manifest.v1+json")
				}
				return manifestPath.MatchString(r.URL.Path)
			}
		}},
		"another digest in the header": {pin: true, answer: func(g *testRegistry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if manifestPath.MatchString(r.URL.Path) {
					w.Header().Set("Docker-Content-Digest", sumOf(nil))
					_, _ = w.Write(g.mans["v1"])
				}
				return manifestPath.MatchString(r.URL.Path)
			}
		}},
		"another layer": {pin: true, answer: func(*testRegistry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if blobPath.MatchString(r.URL.Path) {
					_, _ = w.Write(other[:len(pack)])
				}
				return blobPath.MatchString(r.URL.Path)
			}
		}},
		"a longer layer": {large: true, answer: func(*testRegistry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if blobPath.MatchString(r.URL.Path) {
					_, _ = w.Write(append(slices.Clone(pack), 0))
				}
				return blobPath.MatchString(r.URL.Path)
			}
		}},
		"a cut layer": {want: "EOF", answer: func(*testRegistry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if blobPath.MatchString(r.URL.Path) {
					w.Header().Set("Content-Length", fmt.Sprint(len(pack)))
					_, _ = w.Write(pack[:len(pack)/2])
					panic(http.ErrAbortHandler)
				}
				return false
			}
		}},
		"a large manifest": {large: true, answer: func(*testRegistry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if manifestPath.MatchString(r.URL.Path) {
					_, _ = w.Write(bytes.Repeat([]byte(" "), maxManifest+1))
				}
				return manifestPath.MatchString(r.URL.Path)
			}
		}},
		"a redirect to http elsewhere": {want: "packs come over https", answer: func(*testRegistry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if blobPath.MatchString(r.URL.Path) {
					http.Redirect(w, r, "http://example.org/x", http.StatusFound)
				}
				return blobPath.MatchString(r.URL.Path)
			}
		}},
		"a redirect to a private address": {want: "its address is private", answer: func(*testRegistry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if blobPath.MatchString(r.URL.Path) {
					http.Redirect(w, r, "https://169.254.169.254/latest", http.StatusFound)
				}
				return blobPath.MatchString(r.URL.Path)
			}
		}},
		"an image":   {want: "is not a pack", change: func(_ *testRegistry, m, _ map[string]any) { delete(m, "artifactType") }},
		"two layers": {want: "has 2 layers", change: func(_ *testRegistry, m, layer map[string]any) { m["layers"] = []any{layer, layer} }},
		"no layer":   {want: "has 0 layers", change: func(_ *testRegistry, m, _ map[string]any) { m["layers"] = []any{} }},
		"an uncompressed layer": {want: "the layer of", change: func(_ *testRegistry, _, layer map[string]any) {
			layer["mediaType"] = "application/vnd.oci.image.layer.v1.tar"
		}},
		"a layer of 10 GB":       {large: true, change: func(_ *testRegistry, _, layer map[string]any) { layer["size"] = 10 << 30 }},
		"a layer of -1":          {large: true, change: func(_ *testRegistry, _, layer map[string]any) { layer["size"] = -1 }},
		"a layer that is a path": {want: "no SHA-256 digest", change: func(_ *testRegistry, _, layer map[string]any) { layer["digest"] = "sha256:../../../manifests/x" }},
		"a layer with SHA-512":   {want: "no SHA-256 digest", change: func(_ *testRegistry, _, layer map[string]any) { layer["digest"] = "sha512:" + strings.Repeat("0", 128) }},
		"Docker's manifest": {want: "neither a manifest nor an index", change: func(_ *testRegistry, m, _ map[string]any) {
			m["mediaType"] = "application/vnd.docker.distribution.manifest.v2+json"
		}},
		"layers twice":    {want: "occurs twice", change: func(_ *testRegistry, m, layer map[string]any) { m["Layers"] = []any{layer} }},
		"an empty index":  {want: "empty index", change: func(_ *testRegistry, m, _ map[string]any) { m["mediaType"] = "application/vnd.oci.image.index.v1+json" }},
		"a missing layer": {want: "nothing at", change: func(g *testRegistry, _, layer map[string]any) { delete(g.blobs, layer["digest"].(string)) }},
		"a layer that is no tar": {want: "unpacking", change: func(g *testRegistry, _, layer map[string]any) {
			d := g.put([]byte("text"))
			layer["digest"], layer["size"] = d["digest"], d["size"]
		}},
		"an index of itself": {want: "nothing at", change: func(_ *testRegistry, m, _ map[string]any) {
			m["mediaType"] = "application/vnd.oci.image.index.v1+json"
			m["manifests"] = []any{map[string]any{"digest": sumOf([]byte("x"))}}
		}},
		"an index of no digest": {want: "no SHA-256 digest", change: func(_ *testRegistry, m, _ map[string]any) {
			m["mediaType"] = "application/vnd.oci.image.index.v1+json"
			m["manifests"] = []any{map[string]any{"digest": "../x"}}
		}},
		"a manifest that is a text": {want: "the manifest of", answer: func(*testRegistry) func(http.ResponseWriter, *http.Request) bool {
			return func(w http.ResponseWriter, r *http.Request) bool {
				if manifestPath.MatchString(r.URL.Path) {
					_, _ = w.Write([]byte("<html>"))
				}
				return manifestPath.MatchString(r.URL.Path)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := newTestRegistry(t)
			layer := with(g.put(pack), "mediaType", layerType)
			m := map[string]any{"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": ArtifactType, "layers": []any{layer}}
			if tt.change != nil {
				tt.change(g, m, layer)
			}
			address := g.ref(":v1")
			if d := g.tag(t, "v1", m); tt.digest {
				address = g.ref("@" + d)
			}
			if tt.answer != nil {
				g.answer = tt.answer(g)
			}
			temp := t.TempDir()
			t.Setenv("TMPDIR", temp)
			s, err := Open(t.Context(), sourcestest.Here(), sourcestest.Parse(t, address))
			if err == nil {
				_, err = sources.Survey(t.Context(), s, "")
				_ = s.Close()
			}
			switch {
			case err == nil:
				t.Fatal("it was taken")
			case tt.pin && !errors.As(err, new(*sources.PinError)), tt.large && !errors.Is(err, stage.ErrTooLarge), !strings.Contains(err.Error(), tt.want):
				t.Errorf("%v, want %q (pin %v, large %v)", err, tt.want, tt.pin, tt.large)
			}
			if left, _ := os.ReadDir(temp); len(left) > 0 {
				t.Errorf("%s is left", left[0].Name())
			}
		})
	}
}

// Signatures for something else, or that do not match their digest, are errors. Other
// things that refer to an artifact are not signatures.
func TestHostileBundles(t *testing.T) {
	pin := sumOf([]byte("x"))
	for name, tt := range map[string]struct {
		change func(g *testRegistry, m, layer map[string]any)
		want   string // "": none, and no error
		pin    bool
	}{
		"a list of parts": {change: func(_ *testRegistry, m, _ map[string]any) { m["artifactType"] = "application/spdx+json" }},
		"two layers":      {change: func(_ *testRegistry, m, layer map[string]any) { m["layers"] = []any{layer, layer} }, want: "is not one file"},
		"another bundle":  {change: func(g *testRegistry, _, layer map[string]any) { g.blobs[layer["digest"].(string)] = []byte("{ }") }, pin: true, want: "not what it should be"},
		"a large bundle": {change: func(g *testRegistry, _, layer map[string]any) {
			g.blobs[layer["digest"].(string)] = make([]byte, maxBundle+1)
		}, want: "more than"},
		"a digest of text": {change: func(_ *testRegistry, _, layer map[string]any) { layer["digest"] = "sha256:x" }, want: "is not one file"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newTestRegistry(t)
			layer := with(g.put([]byte("{}")), "mediaType", bundleType)
			m := map[string]any{"mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": bundleType, "layers": []any{layer}, "subject": map[string]any{"digest": pin}}
			tt.change(g, m, layer)
			g.tag(t, "signature", m)
			all, err := proofs(t.Context(), sourcestest.Here(), sourcestest.Parse(t, g.ref("")), pin)
			if tt.want == "" && (err != nil || len(all) > 0) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) || tt.pin && !errors.As(err, new(*sources.PinError)) {
				t.Errorf("%v, %v, want %q", all, err, tt.want)
			}
		})
	}
	g := newTestRegistry(t)
	d := g.tag(t, "signature", map[string]any{"mediaType": "application/vnd.oci.image.manifest.v1+json", "artifactType": bundleType, "layers": []any{with(g.put([]byte("{}")), "mediaType", bundleType)}, "subject": map[string]any{"digest": sumOf([]byte("y"))}})
	g.answer = func(w http.ResponseWriter, r *http.Request) bool {
		if !referrerPath.MatchString(r.URL.Path) {
			return false
		}
		w.Header().Set("Content-Type", "application/vnd.oci.image.index.v1+json")
		fmt.Fprintf(w, `{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","artifactType":%q,"digest":%q,"size":%d}]}`, bundleType, d, len(g.mans[d]))
		return true
	}
	if all, err := proofs(t.Context(), sourcestest.Here(), sourcestest.Parse(t, g.ref("")), pin); err == nil {
		t.Errorf("the signature of something else was taken: %v", all)
	}
}

// An SSH signature of an artifact covers its manifest and nothing else.
func TestSSHProofs(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		message   func(p *Publication) []byte
		namespace string
		wrong     string
	}{
		"the manifest":      {func(p *Publication) []byte { return p.Manifest() }, trust.NamespaceFile, ""},
		"its digest":        {func(p *Publication) []byte { return []byte(p.Digest) }, trust.NamespaceFile, "does not fit"},
		"another namespace": {func(p *Publication) []byte { return p.Manifest() }, trust.NamespaceGit, `is for "git"`},
	} {
		g := newTestRegistry(t)
		pin, err := publish(t, sourcestest.Here(), sourcestest.Open(t, sourcestest.Pack(t)), "", sourcestest.Parse(t, g.ref(":v1")), func(p *Publication) []byte {
			sig, err := trust.SignSSH(signer, c.message(p), c.namespace)
			if err != nil {
				t.Fatal(err)
			}
			return sig
		})
		if err != nil {
			t.Fatal(err)
		}
		all, err := proofs(t.Context(), sourcestest.Here(), sourcestest.Parse(t, g.ref("")), pin)
		if err != nil || len(all) != 1 || all[0].Bundle != nil {
			t.Fatalf("%s: %v, %v", name, all, err)
		}
		if by := all[0].SSH; c.wrong == "" && (by == nil || by.Key != ssh.FingerprintSHA256(signer.PublicKey())) || c.wrong != "" && (by != nil || !strings.Contains(all[0].Wrong, c.wrong)) {
			t.Errorf("%s: %+v, want %q", name, all[0], c.wrong)
		}
	}
}
