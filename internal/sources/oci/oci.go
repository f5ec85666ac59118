// Package oci reads packs from registries of OCI artifacts, in our format and
// ToolHive's, and publishes packs there.
//
// It finds the signatures of an artifact but does not verify them; see package trust.
package oci

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/address"
	"github.com/packs-mcp/packs-mcp/internal/sources/archive"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
	"github.com/packs-mcp/packs-mcp/internal/sources/web"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// ArtifactType is the type of a pack in a registry: a manifest with one layer, the
// tar.gz of the pack's folder.
const ArtifactType = "application/vnd.packs-mcp.pack.v1"

// toolhiveType is ToolHive's type for a skill, which has the same layout.
const toolhiveType = "dev.toolhive.skills.v1"

// toolhiveVersion is ToolHive's annotation with a skill's version.
const toolhiveVersion = "dev.toolhive.skills.version"

// bundleType is the type of a Sigstore bundle that refers to an artifact.
const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json"

// sshType is the type of an armored SSH signature of an artifact's manifest, in the
// namespace "file".
const sshType = "application/vnd.packs-mcp.ssh-signature.v1"

// Bounds on a registry's answers.
const (
	maxManifest  = 1 << 20
	maxBundle    = 1 << 20
	maxReferrers = 64
)

// tokenHost returns the other host that issues a registry's tokens and may get the
// password, or "".
func tokenHost(host string) string {
	switch host {
	case web.DockerHub:
		return "auth.docker.io"
	case "registry.gitlab.com":
		return "gitlab.com"
	}
	return ""
}

// artifact is a pack in a registry.
type artifact struct {
	*archive.Archive // its layer
	at, pin          string
	created, version string // from its manifest, or ""
	w                *web.Access
	r                address.Reference
}

func (a *artifact) Resolved() string { return a.at + "@" + a.pin }

// Pin returns the digest of the manifest, or of the index that a tag named.
func (a *artifact) Pin() string { return a.pin }

func (a *artifact) About() sources.Skill {
	return sources.Skill{UpdatedAt: a.created, Version: a.version}
}

// Signer returns nil: signatures are detached; see proofs.
func (a *artifact) Signer() (*lock.Signature, error) { return nil, nil }

// Proofs implements [sources.Bundled].
func (a *artifact) Proofs(ctx context.Context) ([]sources.Proof, error) {
	return proofs(ctx, a.w, a.r, a.pin)
}

// Open fetches one artifact of a registry.
func Open(ctx context.Context, w *web.Access, r address.Reference) (sources.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, web.FetchTime)
	defer cancel()
	o, err := newRepository(ctx, w, r)
	if err != nil {
		return nil, err
	}
	defer o.client.CloseIdleConnections()
	s, err := o.open(ctx, r)
	if err != nil {
		return nil, o.explain(err)
	}
	return s, nil
}

func (o *repository) open(ctx context.Context, r address.Reference) (sources.Snapshot, error) {
	ref := r.Ref
	if ref == "" {
		ref = "latest"
	}
	m, pin, err := o.manifest(ctx, ref)
	if err != nil {
		return nil, err
	}
	if m.MediaType == ocispec.MediaTypeImageIndex {
		// ToolHive has the same layer for every processor.
		if len(m.Manifests) == 0 {
			return nil, fmt.Errorf("%s is an empty index", o.at)
		}
		first := m.Manifests[0].Digest.String()
		if !sources.IsDigest(first) {
			return nil, fmt.Errorf("%s is an index of %q, which is no SHA-256 digest", o.at, first)
		}
		if m, _, err = o.manifest(ctx, first); err != nil {
			return nil, err
		}
	}
	switch {
	case m.ArtifactType != ArtifactType && m.ArtifactType != toolhiveType:
		return nil, fmt.Errorf("%s is not a pack: its artifact type is %q, and a pack's is %q or %q", o.at, m.ArtifactType, ArtifactType, toolhiveType)
	case len(m.Layers) != 1:
		return nil, fmt.Errorf("%s has %d layers, and a pack has one", o.at, len(m.Layers))
	}
	layer := m.Layers[0]
	switch {
	case layer.MediaType != ocispec.MediaTypeImageLayerGzip:
		return nil, fmt.Errorf("the layer of %s is %q, and a pack's is %q", o.at, layer.MediaType, ocispec.MediaTypeImageLayerGzip)
	case !sources.IsDigest(layer.Digest.String()):
		return nil, fmt.Errorf("the layer of %s has no SHA-256 digest", o.at)
	case layer.Size < 0 || layer.Size > archive.MaxSize:
		return nil, fmt.Errorf("the layer of %s: %w: it has %d MiB, and %d is the limit", o.at, stage.ErrTooLarge, layer.Size>>20, archive.MaxSize>>20)
	}
	f, err := web.NewFile()
	if err != nil {
		return nil, err
	}
	if err := o.get(ctx, "blobs/"+layer.Digest.String(), "", func(res *http.Response) error { return web.CopyAtMost(f, res.Body, layer.Size) }); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	a, err := archive.New(f, o.at, layer.Digest.Encoded())
	if err != nil {
		return nil, err
	}
	version := cmp.Or(m.Annotations[ocispec.AnnotationVersion], m.Annotations[toolhiveVersion])
	return &artifact{a, o.at, pin, m.Annotations[ocispec.AnnotationCreated], version, o.w, r}, nil
}

// A repository is one repository of a registry.
type repository struct {
	at     string // oci://REGISTRY/REPOSITORY
	w      *web.Access
	logins *web.Logins
	repo   *remote.Repository
	client *http.Client
	auth   *auth.Client
	other  string // the host that the password was not sent to
}

func newRepository(ctx context.Context, w *web.Access, r address.Reference) (*repository, error) {
	ref, err := registry.ParseReference(r.At)
	if err == nil && r.Ref != "" {
		named := ref
		named.Reference = r.Ref
		err = named.ValidateReference()
	}
	if err != nil {
		return nil, fmt.Errorf("%q is not an address of an artifact: %w", "oci://"+r.At, err)
	}
	o := &repository{at: "oci://" + r.At, w: w}
	host := ref.Host()
	if w.Logins != nil {
		if o.logins, err = w.Logins(); err != nil {
			return nil, err
		}
	}
	login := o.logins.Of(host, ref.Repository)
	o.client = w.ClientFor(func(req *http.Request) bool {
		if at := strings.ToLower(req.URL.Host); at == strings.ToLower(host) || at == tokenHost(host) {
			return true
		}
		if req.Header.Get("Authorization") != "" {
			o.other = req.URL.Host
		}
		return false
	})
	o.auth = &auth.Client{Client: o.client, Cache: auth.NewCache(), Credential: func(_ context.Context, at string) (auth.Credential, error) {
		if at != host {
			return auth.EmptyCredential, nil
		}
		return login, nil
	}}
	o.repo = &remote.Repository{Client: o.auth, Reference: ref, MaxMetadataBytes: maxManifest}
	return o, o.scheme(ctx)
}

// scheme finds out whether to use http for a registry whose host may be asked over
// http.
func (o *repository) scheme(ctx context.Context) error {
	at := url.URL{Scheme: "https", Host: o.repo.Reference.Host(), Path: "/v2/"}
	if !o.w.IsPrivate(at.Hostname()) {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	res, err := o.client.Do(req)
	if err == nil {
		return res.Body.Close()
	}
	o.repo.PlainHTTP = errors.Is(err, http.ErrSchemeMismatch)
	return nil // another error will occur again, where it is reported
}

// get requests something from the repository.
func (o *repository) get(ctx context.Context, what, accept string, do func(*http.Response) error) error {
	scheme := "https"
	if o.repo.PlainHTTP {
		scheme = "http"
	}
	ctx = auth.AppendRepositoryScope(ctx, o.repo.Reference, auth.ActionPull)
	at := url.URL{Scheme: scheme, Host: o.repo.Reference.Host(), Path: "/v2/" + o.repo.Reference.Repository + "/" + what}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	res, err := o.auth.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return &web.StatusError{URL: at.String(), Status: res.StatusCode}
	}
	return do(res)
}

// manifest is an image's manifest or an index; each sets different members.
type manifest struct {
	MediaType    string               `json:"mediaType"`
	ArtifactType string               `json:"artifactType"`
	Manifests    []ocispec.Descriptor `json:"manifests"`
	Layers       []ocispec.Descriptor `json:"layers"`
	Subject      *ocispec.Descriptor  `json:"subject"`
	Annotations  map[string]string    `json:"annotations"`

	data []byte // all of it
}

// manifest fetches what a tag or digest names. It computes the returned digest from
// the bytes, whatever the registry says.
func (o *repository) manifest(ctx context.Context, ref string) (*manifest, string, error) {
	var data bytes.Buffer
	var said string
	err := o.get(ctx, "manifests/"+ref, ocispec.MediaTypeImageManifest+", "+ocispec.MediaTypeImageIndex, func(res *http.Response) error {
		said = res.Header.Get("Docker-Content-Digest")
		return web.CopyAtMost(&data, res.Body, maxManifest)
	})
	if err != nil {
		return nil, "", err
	}
	found := sources.Digest(data.Bytes())
	for _, want := range []string{ref, said} {
		if strings.Contains(want, ":") && want != found {
			return nil, "", &sources.PinError{At: o.at, Want: want, Got: found}
		}
	}
	m := &manifest{data: data.Bytes()}
	if err := strictjson.Unmarshal(data.Bytes(), m); err != nil {
		return nil, "", fmt.Errorf("the manifest of %s: %w", o.at, err)
	}
	if m.MediaType != ocispec.MediaTypeImageManifest && m.MediaType != ocispec.MediaTypeImageIndex {
		return nil, "", fmt.Errorf("%s is %q, and neither a manifest nor an index of OCI", o.at, m.MediaType)
	}
	return m, found, nil
}

// explain rewords the most common errors.
func (o *repository) explain(err error) error {
	status := 0
	if e, ok := errors.AsType[*web.StatusError](err); ok {
		status = e.Status
	}
	if e, ok := errors.AsType[*errcode.ErrorResponse](err); ok {
		status = e.StatusCode
	}
	host := o.repo.Reference.Host()
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden, errors.Is(err, auth.ErrBasicCredentialNotFound):
		switch helper := o.logins.Helper(host); {
		case o.other != "":
			return fmt.Errorf("%s wants to know who asks, and names %s for it: a password is sent to no other host than its own", o.at, o.other)
		case helper != "" && o.logins.Of(host, o.repo.Reference.Repository) == auth.EmptyCredential:
			return fmt.Errorf("%s wants to know who asks, and %s keeps the password: packs-mcp starts no such program, and reads passwords only where they are in \"auths\" of the file itself", o.at, helper)
		}
		return fmt.Errorf("%s wants to know who asks, or there is nothing for who does", o.at)
	case status == http.StatusNotFound:
		return fmt.Errorf("there is nothing at %s under this tag or digest", o.at)
	}
	return fmt.Errorf("asking for %s: %w", o.at, web.PlainError(err))
}

// proofs returns the signatures that a registry has for an artifact: Sigstore bundles for
// its digest, and SSH signatures of its manifest.
func proofs(ctx context.Context, w *web.Access, r address.Reference, pin string) ([]sources.Proof, error) {
	ctx, cancel := context.WithTimeout(ctx, web.FetchTime)
	defer cancel()
	o, err := newRepository(ctx, w, r)
	if err != nil {
		return nil, err
	}
	defer o.client.CloseIdleConnections()
	all, err := o.proofs(ctx, pin)
	if err != nil {
		return nil, o.explain(err)
	}
	return all, nil
}

func (o *repository) proofs(ctx context.Context, pin string) ([]sources.Proof, error) {
	if !sources.IsDigest(pin) {
		return nil, fmt.Errorf("%q is not a digest", pin)
	}
	var found []ocispec.Descriptor
	// All of them, whatever their type: some registries list the type of the config
	// instead.
	err := o.repo.Referrers(ctx, ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.Digest(pin)}, "", func(page []ocispec.Descriptor) error {
		if found = append(found, page...); len(found) > maxReferrers {
			return fmt.Errorf("more than %d artifacts refer to it", maxReferrers)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var all []sources.Proof
	for _, d := range found {
		if !sources.IsDigest(d.Digest.String()) {
			return nil, fmt.Errorf("a signature has the name %q, which is no SHA-256 digest", d.Digest)
		}
		m, _, err := o.manifest(ctx, d.Digest.String())
		if err != nil {
			return nil, err
		}
		if m.ArtifactType != bundleType && m.ArtifactType != sshType { // such as a list of parts, or another kind of attestation
			continue
		}
		if m.Subject == nil || m.Subject.Digest.String() != pin || len(m.Layers) != 1 || !sources.IsDigest(m.Layers[0].Digest.String()) {
			return nil, fmt.Errorf("the signature %s is not one file", d.Digest)
		}
		var data bytes.Buffer
		want := m.Layers[0].Digest
		err = o.get(ctx, "blobs/"+want.String(), "", func(res *http.Response) error { return web.CopyAtMost(&data, res.Body, maxBundle) })
		if err != nil {
			return nil, err
		}
		if got := digest.FromBytes(data.Bytes()); got != want {
			return nil, &sources.PinError{At: o.at, Want: want.String(), Got: got.String()}
		}
		if m.ArtifactType == bundleType {
			all = append(all, sources.Proof{Bundle: data.Bytes()})
			continue
		}
		signed, _, err := o.manifest(ctx, pin)
		if err != nil {
			return nil, err
		}
		all = append(all, sources.SSHProof(data.Bytes(), signed.data))
	}
	return all, nil
}

// A Publication is a pack on its way into a registry.
type Publication struct {
	Digest string // of the manifest: the registry's name for these bytes
	Before string // the digest that the tag names now, or ""
	Tag    string

	at       *repository
	layer    []byte
	manifest ocispec.Descriptor
	data     []byte // of the manifest
}

// Prepare makes the artifact, and asks the registry what the tag names now. It
// changes nothing.
func Prepare(ctx context.Context, w *web.Access, b *sources.Bundle, r address.Reference) (*Publication, error) {
	if r.Kind != address.OCI {
		return nil, errors.New("packs are published to a registry, under oci://REGISTRY/REPOSITORY[:TAG]")
	}
	if strings.HasPrefix(r.Ref, "sha256:") {
		return nil, errors.New("a pack is published under a tag, and not under a digest")
	}
	ctx, cancel := context.WithTimeout(ctx, web.FetchTime)
	defer cancel()
	o, err := newRepository(ctx, w, r)
	if err != nil {
		return nil, err
	}
	p := &Publication{Tag: r.Ref, at: o}
	if p.Tag == "" {
		p.Tag = "latest"
	}
	if p.layer, err = archive.Write(b.Dir, b.Tree); err != nil {
		return nil, err
	}
	notes := map[string]string{ocispec.AnnotationTitle: b.Pack.Name, ocispec.AnnotationDescription: b.Pack.Description}
	if p.manifest, p.data, err = newManifest(ArtifactType, ocispec.MediaTypeImageLayerGzip, p.layer, notes, nil); err != nil {
		return nil, err
	}
	p.Digest = p.manifest.Digest.String()
	_, p.Before, err = o.manifest(ctx, p.Tag)
	if e, ok := errors.AsType[*web.StatusError](err); ok && e.Status == http.StatusNotFound {
		err = nil
	}
	if err != nil {
		return nil, errors.Join(o.explain(err), p.Close())
	}
	return p, nil
}

// Close ends the connections to the registry.
func (p *Publication) Close() error {
	p.at.client.CloseIdleConnections()
	return nil
}

// Manifest returns the bytes to sign; Digest is their digest.
func (p *Publication) Manifest() []byte { return p.data }

// Signed returns the signatures that the registry already has; none for a pack that it
// lacks.
func (p *Publication) Signed(ctx context.Context) ([]sources.Proof, error) {
	if p.Before != p.Digest {
		return nil, nil
	}
	all, err := p.at.proofs(ctx, p.Digest)
	if err != nil {
		return nil, p.at.explain(err)
	}
	return all, nil
}

// Publish uploads the pack with its signature: a Sigstore bundle for the digest, or an
// armored SSH signature of the manifest; nil for none. The tag comes last, so it never
// names an incomplete pack.
func (p *Publication) Publish(ctx context.Context, signature []byte) error {
	ctx, cancel := context.WithTimeout(ctx, web.FetchTime)
	defer cancel()
	if err := p.at.publish(ctx, p, signature); err != nil {
		return p.at.explain(err)
	}
	return nil
}

func (o *repository) publish(ctx context.Context, p *Publication, signature []byte) error {
	if err := o.push(ctx, p.manifest, p.data, ocispec.MediaTypeImageLayerGzip, p.layer); err != nil {
		return err
	}
	if signature != nil {
		kind := bundleType
		if bytes.HasPrefix(signature, []byte("-----BEGIN ")) {
			kind = sshType
		}
		m, data, err := newManifest(kind, kind, signature, nil, &p.manifest)
		if err != nil {
			return err
		}
		if err := o.push(ctx, m, data, kind, signature); err != nil {
			return err
		}
	}
	return o.repo.Manifests().PushReference(ctx, p.manifest, bytes.NewReader(p.data), p.Tag)
}

// newManifest returns a manifest with one layer.
func newManifest(kind, layerType string, layer []byte, notes map[string]string, subject *ocispec.Descriptor) (ocispec.Descriptor, []byte, error) {
	data, err := json.Marshal(ocispec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageManifest, ArtifactType: kind,
		Config: ocispec.DescriptorEmptyJSON, Layers: []ocispec.Descriptor{blobOf(layerType, layer)}, Annotations: notes, Subject: subject,
	})
	return ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, ArtifactType: kind, Digest: digest.FromBytes(data), Size: int64(len(data))}, data, err
}

func blobOf(kind string, data []byte) ocispec.Descriptor {
	return ocispec.Descriptor{MediaType: kind, Digest: digest.FromBytes(data), Size: int64(len(data))}
}

// push uploads a manifest with one layer under its digest.
func (o *repository) push(ctx context.Context, m ocispec.Descriptor, data []byte, layerType string, layer []byte) error {
	for _, b := range []struct {
		ocispec.Descriptor
		data []byte
	}{{blobOf(layerType, layer), layer}, {ocispec.DescriptorEmptyJSON, []byte("{}")}} {
		b.Data = nil
		there, err := o.repo.Blobs().Exists(ctx, b.Descriptor)
		if err == nil && !there {
			err = o.repo.Blobs().Push(ctx, b.Descriptor, bytes.NewReader(b.data))
		}
		if err != nil {
			return err
		}
	}
	return o.repo.Manifests().Push(ctx, m, bytes.NewReader(data))
}
