//go:build unix

package main

import (
	"bytes"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/packs-mcp/packs-mcp/internal/store/storetest"
	"github.com/packs-mcp/packs-mcp/test/idp"
)

// What compose.team.yaml and the files beside it say. A member that is not here is an
// error, except in the configuration of the servers, which they read themselves.
type (
	composeFile struct {
		Server   composeService    `yaml:"x-server"`
		Secrets  map[string]string `yaml:"x-secrets"`
		Services map[string]composeService
		Volumes  map[string]any
	}
	composeService struct {
		Build, Image string
		Command      []string
		Environment  map[string]string
		Network      string `yaml:"network_mode"`
		Ports        []string
		Volumes      []string
		ReadOnly     bool     `yaml:"read_only"`
		Tmpfs        []string `yaml:"tmpfs"`
		CapDrop      []string `yaml:"cap_drop"`
		SecurityOpt  []string `yaml:"security_opt"`
		Restart      string
		StopGrace    string   `yaml:"stop_grace_period"`
		DependsOn    []string `yaml:"depends_on"`
	}
	composeProvider struct {
		Issuer  string
		Storage map[string]string
		Web     map[string]string
		OAuth2  map[string]any    `yaml:"oauth2"`
		Expiry  map[string]string `yaml:"expiry"`
		Clients []struct {
			ID, Name string
			Public   bool
		} `yaml:"staticClients"`
		HasPasswords bool `yaml:"enablePasswordDB"`
		People       []struct {
			Email, Username, Hash string
			ID                    string `yaml:"userID"`
			Groups                []string
		} `yaml:"staticPasswords"`
	}
	composeConfig struct {
		HTTP struct {
			OIDC struct {
				Issuer, Audience, Client string
				Scopes, Allow            []string
			}
		}
		Approvers []struct{ Who []string }
	}
)

// read reads a file beside compose.team.yaml, and returns its text.
func read(t *testing.T, file string, into any, strict bool) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", file))
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(strict)
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return string(text)
}

// The servers, the provider and its people in compose.team.yaml fit together. The provider
// is Dex: it takes any address of this machine for a public client that names none, for
// logins with a device only if its own address has no path, and its tokens are for the
// client that asked.
func TestComposeOfATeamFits(t *testing.T) {
	var file composeFile
	var provider composeProvider
	var config composeConfig
	read(t, "compose.team.yaml", &file, true)
	read(t, "compose.team/dex.yaml", &provider, true)
	read(t, "compose.team/packs-mcp.yaml", &config, false)
	o, dex := config.HTTP.OIDC, file.Services["dex"]
	if len(provider.Clients) != 1 || provider.Clients[0].ID != o.Client || !provider.Clients[0].Public || o.Audience != o.Client {
		t.Errorf("the provider's clients are %+v, and the servers are %q for %q", provider.Clients, o.Client, o.Audience)
	}
	at, err := url.Parse(o.Issuer)
	if err != nil || o.Issuer != provider.Issuer || at.Hostname() != "127.0.0.1" || at.Path != "" || provider.Web["http"] != "0.0.0.0:"+at.Port() {
		t.Errorf("the servers ask %q, and the provider is %q at %v", o.Issuer, provider.Issuer, provider.Web)
	}
	published := func(port string) bool { return slices.Contains(dex.Ports, "127.0.0.1:"+port+":"+port) }
	if !published(at.Port()) {
		t.Errorf("port %s of the provider is not published: %q", at.Port(), dex.Ports)
	}
	servers := 0
	for name, s := range file.Services {
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, err := os.Stat(filepath.Join("..", "..", from)); strings.HasPrefix(from, "./compose") && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if s.Build == "" {
			continue
		}
		servers++
		_, port, _ := strings.Cut(s.Environment["PACKS_MCP_HTTP_ADDR"], "0.0.0.0:")
		if s.Network != "service:dex" || !published(port) || s.Environment["PACKS_MCP_HTTP_PUBLIC_URL"] != "http://127.0.0.1:"+port {
			t.Errorf("%s is at %v, in the network %q with the ports %q", name, s.Environment, s.Network, dex.Ports)
		}
	}
	if servers != 3 || len(dex.Ports) != 4 {
		t.Errorf("there are %d servers and %d ports, want 3 and 4", servers, len(dex.Ports))
	}
	groups := make(map[string]bool)
	for _, p := range provider.People {
		for _, g := range p.Groups {
			groups[g] = true
		}
		// The people of the tests are the same, so that what these show is true of the file.
		if want := map[string][]string{idp.Ada: {"staff", "sre"}, idp.Grace: {"staff"}}[p.Username]; p.Email != p.Username+"@example.com" || !slices.Equal(p.Groups, want) {
			t.Errorf("%s is %s in %q, want the groups %q", p.Username, p.Email, p.Groups, want)
		}
	}
	wanted := o.Allow
	for _, a := range config.Approvers {
		for _, who := range a.Who {
			wanted = append(wanted, strings.TrimPrefix(who, "group:"))
		}
	}
	for _, g := range wanted {
		if !groups[g] {
			t.Errorf("nobody is in the group %q", g)
		}
	}
}

// The servers of compose.team.yaml start with the settings in it and beside it, here as
// plain processes with a local NATS server and the provider of the tests. People log in
// with the command and on the page, and what one asks at a server, another allows at
// another.
func TestComposeOfATeam(t *testing.T) {
	var file composeFile
	var config composeConfig
	read(t, "compose.team.yaml", &file, true)
	text := read(t, "compose.team/packs-mcp.yaml", &config, false)
	e, p, packs := storetest.NATS(t), idp.Start(t), t.TempDir()
	plantPack(t, packs, "notes", "echo ran as $PACKS_RUN_ID\n")
	p.Redirect("http://127.0.0.1/callback")
	for from, to := range map[string]string{
		config.HTTP.OIDC.Issuer: p.Issuer, "nats://nats:4222/packs-mcp": e.URL(), "path: /packs,": fmt.Sprintf("path: %q,", packs),
		"log: {format: json}": "log: {format: text}", // which startTeam reads
	} {
		if strings.Count(text, from) != 1 {
			t.Fatalf("compose.team/packs-mcp.yaml does not have %q once", from)
		}
		text = strings.Replace(text, from, to, 1)
	}
	if config.HTTP.OIDC.Client != idp.Audience {
		t.Fatalf("the client is %q, and the provider of the tests knows %q", config.HTTP.OIDC.Client, idp.Audience)
	}
	values := map[string]string{"PACKS_MCP_TOKEN": adasToken, "PACKS_MCP_STORE_KEY": strings.Repeat("5e", 32)}
	data := t.TempDir()
	var all []*publicServer
	var replicas []*replica
	for _, name := range slices.Sorted(maps.Keys(file.Services)) {
		s := file.Services[name]
		if s.Build == "" {
			continue // the engine and the provider
		}
		if want := []string{"serve", "--config", "/etc/packs-mcp/config.yaml"}; !slices.Equal(s.Command, want) || !slices.Contains(s.Volumes, "./compose.team/packs-mcp.yaml:"+want[2]+":ro") {
			t.Fatalf("%s runs %q with %q; this test starts %q", name, s.Command, s.Volumes, want)
		}
		dir, env := home(t)
		env = append(env, "PACKS_MCP_HOME=", "XDG_DATA_HOME="+data, "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR=")
		address, lead := public(t)
		p.Redirect(address + "/approvals/callback")
		for variable, value := range s.Environment {
			if given, ok := values[variable]; ok {
				if !strings.HasPrefix(value, "${"+variable+":?") {
					t.Errorf("%s: %s is %q, want it to be asked for", name, variable, value)
				}
				value = given
			}
			if variable == "PACKS_MCP_HTTP_PUBLIC_URL" {
				value = address
			}
			env = append(env, variable+"="+value)
		}
		r := &replica{env: env, config: filepath.Join(dir, "config.yaml")}
		write(t, r.config, text)
		r.team = startTeam(t, dir, env, r.config)
		if status, _, body := r.get("/readyz"); status != http.StatusOK {
			t.Errorf("%s is not ready: %d, %s", name, status, body)
		}
		lead(strings.TrimSuffix(r.url, "/mcp"))
		replicas = append(replicas, r)
		all = append(all, &publicServer{teamServer: &teamServer{t: t, url: address, dir: dir, env: env}, public: address, p: p})
	}
	if len(all) != 3 {
		t.Fatalf("there are %d servers, want 3", len(all))
	}
	a, c := all[0], all[2]

	// The token is good at each server, and an answer for it holds at all.
	if got := replicas[0].open("always"); got != "allowed" {
		t.Errorf("the answer: %s", got)
	}
	for _, r := range replicas[1:] {
		if got := r.open(""); got != "allowed" {
			t.Errorf("on another server: %s", got)
		}
	}

	// Grace asks at one server; Ada logs in at another in a terminal and on the page of a
	// third, and allows it there.
	program, opened := browser(t)
	l := a.login([]string{"BROWSER=" + program})
	res, err := http.Get(p.Login(idp.Ada, opened()).String())
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if said, ok := l.end(); !ok || !strings.Contains(said, "You are logged in.") {
		t.Fatalf("packs-mcp login: %v, %s", ok, said)
	}
	page := c.window()
	page.login(idp.Ada)
	called, grace := make(chan string, 1), p.Token(idp.Grace, idp.Audience)
	go func() {
		text, _ := replicas[1].call(grace, "capability_packs_exec_best_effort", map[string]any{"pack_id": "notes", "command": "./go.sh"})
		called <- text
	}()
	code := waitFor(t, page.events(), `"code":"([^"]+)"`)[1]
	if out, ok := a.run("approvals", "list", "--server", a.url); !ok || !strings.Contains(out, code) {
		t.Errorf("approvals list: %v, %s", ok, out)
	}
	if res, body := page.script("POST", "/approvals/decide", `{"code":"`+code+`","decision":"once","values":{},"client_gone":false}`); res.StatusCode != http.StatusOK {
		t.Fatalf("allowing it on the page: %s %s", res.Status, body)
	}
	if text := <-called; !strings.Contains(text, "ran as run-") {
		t.Errorf("the call: %s", text)
	}
}
