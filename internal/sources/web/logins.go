package web

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/packs-mcp/packs-mcp/internal/sources/userfile"
)

// maxLogins is the largest file of logins that is read, in bytes.
const maxLogins = 1 << 20

// Logins are the users and passwords in the files of Docker and Podman. Passwords that
// a helper program keeps are not included: no program is started.
type Logins struct {
	auths   map[string]auth.Credential // :: host, or host/repository → login
	helpers map[string]string          // :: host → the program that knows the password
	all     string                     // the program that knows the others
}

// ReadLogins reads files such as ~/.docker/config.json, and auth.json of Podman in
// $XDG_RUNTIME_DIR/containers or ~/.config/containers. A missing file is skipped.
// Earlier files win.
func ReadLogins(files ...string) (*Logins, error) {
	l := &Logins{auths: map[string]auth.Credential{}, helpers: map[string]string{}}
	for _, name := range files {
		err := l.read(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("reading the logins in %q: %w", name, err)
		}
	}
	return l, nil
}

func (l *Logins) read(name string) error {
	data, err := userfile.Read(name, maxLogins)
	if err != nil {
		return err
	}
	var file struct {
		Auths map[string]struct {
			Auth          string `json:"auth"`
			Username      string `json:"username"`
			Password      string `json:"password"`
			IdentityToken string `json:"identitytoken"`
			RegistryToken string `json:"registrytoken"`
		} `json:"auths"`
		CredHelpers map[string]string `json:"credHelpers"`
		CredsStore  string            `json:"credsStore"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return errors.New("it is not JSON") // the error could quote a password
	}
	for key, a := range file.Auths {
		c := auth.Credential{Username: a.Username, Password: a.Password, RefreshToken: a.IdentityToken, AccessToken: a.RegistryToken}
		if a.Auth != "" {
			plain, err := base64.StdEncoding.DecodeString(a.Auth)
			user, password, ok := strings.Cut(string(plain), ":")
			if err != nil || !ok {
				return fmt.Errorf(`"auth" of %q is not base64 of USER:PASSWORD`, key)
			}
			c.Username, c.Password = user, strings.TrimRight(password, "\x00")
		}
		if key = loginKey(key); c != auth.EmptyCredential {
			if _, ok := l.auths[key]; !ok {
				l.auths[key] = c
			}
		}
	}
	for key, helper := range file.CredHelpers {
		if key = loginKey(key); l.helpers[key] == "" {
			l.helpers[key] = helper
		}
	}
	if l.all == "" {
		l.all = file.CredsStore
	}
	return nil
}

// DockerHub is the registry that Docker Hub's images come from; its logins have other
// names.
const DockerHub = "registry-1.docker.io"

// loginKey returns a key of the file without what old versions put around the host.
func loginKey(key string) string {
	key = strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	key = strings.TrimSuffix(key, "/")
	host, rest, _ := strings.Cut(key, "/")
	host = strings.ToLower(host)
	if host == "docker.io" || host == "index.docker.io" {
		host = DockerHub
	}
	if rest == "" || rest == "v1" || rest == "v2" {
		return host
	}
	return host + "/" + rest
}

// Of returns the login for a repository: the one for the longest matching part of its
// address.
func (l *Logins) Of(host, repository string) auth.Credential {
	if l == nil {
		return auth.EmptyCredential
	}
	host = strings.ToLower(host)
	for key := host + "/" + repository; ; key = key[:strings.LastIndexByte(key, '/')] {
		if c, ok := l.auths[key]; ok {
			return c
		}
		if key == host {
			return auth.EmptyCredential
		}
	}
}

// Helper returns the name of the program that knows a host's password, or "".
func (l *Logins) Helper(host string) string {
	if l == nil {
		return ""
	}
	if h := l.helpers[strings.ToLower(host)]; h != "" {
		return "docker-credential-" + h
	}
	if l.all != "" {
		return "docker-credential-" + l.all
	}
	return ""
}
