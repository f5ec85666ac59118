package container

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// An engine is a client of a container engine, with the few calls of Docker's API
// that a run needs. Its errors are for people.
type engine struct {
	socket string
	http   http.Client
}

func newEngine(socket string) *engine {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
		if err != nil {
			return nil, err
		}
		if err := trusted(conn.(*net.UnixConn)); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return conn, nil
	}
	return &engine{socket: socket, http: http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}}
}

// callTime bounds one call that changes something, and askTime a question. An engine starts
// a container in some 100 milliseconds, and answers in some 10.
const (
	callTime = time.Minute
	askTime  = 20 * time.Second
)

// maxAnswer bounds an answer: the list of a busy machine's containers takes some 100
// KiB.
const maxAnswer = 16 << 20

// A statusError is an engine's refusal.
type statusError struct {
	Code    int
	Message string
}

func (e *statusError) Error() string { return fmt.Sprintf("%s (status %d)", e.Message, e.Code) }

// isStatus reports whether err is the engine's refusal with one of these codes.
func isStatus(err error, codes ...int) bool {
	e, ok := errors.AsType[*statusError](err)
	for _, code := range codes {
		if ok && e.Code == code {
			return true
		}
	}
	return false
}

// call sends a request, and decodes the answer into out unless that is nil.
func (e *engine) call(ctx context.Context, method, at string, in, out any) error {
	most := callTime
	if method == http.MethodGet {
		most = askTime
	}
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://engine"+at, body)
	if err != nil {
		return err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := e.http.Do(req)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return fmt.Errorf("asking the container engine at %q: %w", e.socket, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("reading the container engine's answer: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		var said struct{ Message, Cause string }
		_ = json.Unmarshal(text, &said)
		return &statusError{resp.StatusCode, cmp.Or(said.Message, said.Cause, http.StatusText(resp.StatusCode))}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("reading the container engine's answer: %w", err)
	}
	return nil
}

// Versions of the API: the oldest that has every feature used here, and the newest
// that was tested.
const (
	oldestAPI = 40
	newestAPI = 44
)

// An about describes an engine, in its own words.
type about struct {
	Name, Version string // "Podman Engine", "4.3.1"
	api           string // path prefix with the API's version
}

// about asks for the engine's version.
func (e *engine) about(ctx context.Context) (about, error) {
	var v struct {
		Version, ApiVersion string //nolint:revive // as the API has it
		Components          []struct{ Name, Version string }
	}
	if err := e.call(ctx, http.MethodGet, "/version", nil, &v); err != nil {
		return about{}, err
	}
	minor, err := strconv.Atoi(strings.TrimPrefix(v.ApiVersion, "1."))
	if err != nil || minor < oldestAPI {
		return about{}, fmt.Errorf("the container engine speaks version %q of the API, which is older than 1.%d", v.ApiVersion, oldestAPI)
	}
	a := about{Name: "Engine", Version: v.Version, api: "/v1." + strconv.Itoa(min(minor, newestAPI))}
	if len(v.Components) > 0 {
		a.Name = v.Components[0].Name
	}
	return a, nil
}

// rootless reports whether the engine runs with only its user's rights. The root of a
// container is that user then.
func (e *engine) rootless(ctx context.Context, a about) (bool, error) {
	var info struct {
		SecurityOptions []string // Docker's
		Rootless        bool     // Podman's
	}
	if err := e.call(ctx, http.MethodGet, a.api+"/info", nil, &info); err != nil {
		return false, err
	}
	return info.Rootless || slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.HasPrefix(o, "name=rootless") }), nil
}

// An image is the engine's description of an image.
type image struct {
	ID          string `json:"Id"` // sha256:…, of its configuration, which covers all its files
	RepoDigests []string
	OS          string `json:"Os"`
	Config      struct{ Env []string }
}

// image returns an image by its name or id.
func (e *engine) image(ctx context.Context, a about, name string) (*image, error) {
	i := &image{}
	err := e.call(ctx, http.MethodGet, a.api+"/images/"+url.PathEscape(name)+"/json", nil, i)
	return i, err
}

// A spec describes a container to make. The names are the API's.
type spec struct {
	Image       string
	Entrypoint  []string
	Cmd         []string
	Env         []string
	User        string
	WorkingDir  string
	Hostname    string `json:",omitempty"`
	Labels      map[string]string
	Healthcheck struct{ Test []string }
	HostConfig  hostConfig
}

type hostConfig struct {
	NetworkMode    string
	IpcMode        string //nolint:revive // as the API has it
	CgroupnsMode   string
	ReadonlyRootfs bool
	CapDrop        []string
	SecurityOpt    []string
	PidsLimit      int64
	Memory         int64
	MemorySwap     int64
	NanoCpus       int64 `json:",omitempty"` //nolint:revive // as the API has it
	ShmSize        int64
	Ulimits        []ulimit
	Mounts         []mount
	Tmpfs          map[string]string
	LogConfig      struct{ Type string }
	Runtime        string `json:",omitempty"`
}

type ulimit struct {
	Name       string
	Soft, Hard int64
}

type mount struct {
	Type, Source, Target string
	ReadOnly             bool
	BindOptions          struct{ Propagation string }
}

// create makes a container, and returns its id.
func (e *engine) create(ctx context.Context, a about, s *spec) (string, error) {
	var made struct {
		ID string `json:"Id"`
	}
	err := e.call(ctx, http.MethodPost, a.api+"/containers/create", s, &made)
	if err == nil && !plainID(made.ID) {
		err = fmt.Errorf("the container engine gave a container the id %q", made.ID)
	}
	return made.ID, err
}

// plainID reports whether an id is safe in a path.
func plainID(id string) bool {
	return id != "" && len(id) <= 128 && strings.Trim(id, "0123456789abcdef") == ""
}

func (e *engine) start(ctx context.Context, a about, id string) error {
	return e.call(ctx, http.MethodPost, a.api+"/containers/"+id+"/start", nil, nil)
}

// wait returns when a container has ended.
func (e *engine) wait(ctx context.Context, a about, id string) error {
	return e.call(ctx, http.MethodPost, a.api+"/containers/"+id+"/wait", nil, nil)
}

// A state is the engine's description of a container.
type state struct {
	Image string // the image's id
	State struct {
		Status, Error string
		ExitCode      int
		OOMKilled     bool // the kernel killed a process of it, since all together had too much memory
	}
	HostConfig struct{ Runtime string }
}

// runtime returns the runtime of a container. Podman's answer to Docker's API does not
// name it, but a Podman service has one runtime for all containers.
func (e *engine) runtime(ctx context.Context, a about, id string, s *state) (string, error) {
	if a.Name != podmanName {
		return s.HostConfig.Runtime, nil
	}
	var own struct{ OCIRuntime string }
	err := e.call(ctx, http.MethodGet, "/v4.0.0/libpod/containers/"+id+"/json", nil, &own)
	return path.Base(own.OCIRuntime), err
}

// podmanName is Podman's name for itself.
const podmanName = "Podman Engine"

func (e *engine) inspect(ctx context.Context, a about, id string) (*state, error) {
	s := &state{}
	return s, e.call(ctx, http.MethodGet, a.api+"/containers/"+id+"/json", nil, s)
}

// remove kills and removes a container, with the volumes that its image asked for.
func (e *engine) remove(ctx context.Context, a about, id string) error {
	err := e.call(ctx, http.MethodDelete, a.api+"/containers/"+id+"?force=1&v=1", nil, nil)
	if isStatus(err, http.StatusNotFound, http.StatusConflict) { // it is being removed, or gone
		return nil
	}
	return err
}

// ended returns the containers with a label that do not run: id → the label's value.
func (e *engine) ended(ctx context.Context, a about, label string) (map[string]string, error) {
	filters, err := json.Marshal(map[string][]string{"label": {label}})
	if err != nil {
		return nil, err
	}
	var list []struct {
		ID     string `json:"Id"`
		State  string
		Labels map[string]string
	}
	err = e.call(ctx, http.MethodGet, a.api+"/containers/json?all=1&filters="+url.QueryEscape(string(filters)), nil, &list)
	all := make(map[string]string)
	for _, c := range list {
		if value, ok := c.Labels[label]; ok && plainID(c.ID) && c.State != "running" {
			all[c.ID] = value
		}
	}
	return all, err
}
