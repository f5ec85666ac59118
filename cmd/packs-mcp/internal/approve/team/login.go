// Package team lets a user log in to a team's server on another machine: the commands login
// and logout, the file that keeps the logins, and the flags that name a server. It shows and
// answers no calls; package approve does that, through [Server].
package team

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/approvals/terminal"
	"github.com/packs-mcp/packs-mcp/internal/launch"
	"github.com/packs-mcp/packs-mcp/internal/oidc/login"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// An app is the user of the commands; its methods are the commands.
type app struct{ *cli.Env }

// Commands returns the commands login and logout.
func Commands(e *cli.Env) []*cobra.Command {
	a := &app{e}
	return []*cobra.Command{a.loginCommand(), a.logoutCommand()}
}

// loginTime is how long a person may take to log in with a browser.
const loginTime = 10 * time.Minute

func (a *app) loginCommand() *cobra.Command {
	var client string
	var device bool
	cmd := &cobra.Command{
		Use:   "login URL",
		Short: "Log in to your team's server, to answer calls there",
		Long: `Log in to your team's server, so that packs-mcp approvals --server URL shows you the calls
that you may decide about. You log in at the identity provider that the server names, in your
browser; with --device, or where no browser can be opened, on any other device, with a code. The
login is kept in a file of yours alone, renewed while the provider allows it, and sent to this
server only.`,
		Example: `  packs-mcp login https://packs.example.com
  packs-mcp login https://packs.example.com --device`,
		Args: cli.Needs(1, 1, "the URL of your team's server"),

		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.logIn(cmd.Context(), args[0], client, device)
		},
	}
	cmd.Flags().BoolVar(&device, "device", false, "log in on another device")
	cmd.Flags().StringVar(&client, "client", "", "the `ID` under which the identity provider knows this program, if the server does not say it")
	_ = cmd.RegisterFlagCompletionFunc("client", cobra.NoFileCompletions)
	a.ConfigFlag(cmd)
	return cmd
}

func (a *app) logoutCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "logout URL | --all",
		Short: "End a login to a team's server",
		Long: `End a login to a team's server: the file with it forgets it, and the identity provider is told
that nobody may renew it. A token that was issued already is good until it ends, in some minutes.`,
		Example: "  packs-mcp logout https://packs.example.com\n  packs-mcp logout --all",
		Args:    cli.Misuse(cobra.MaximumNArgs(1)),

		ValidArgsFunction: cli.First(a.completeLogins),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (len(args) == 1) == all {
				return &cli.UsageError{Err: errors.New("logout takes the URL of a server, or --all"), Hint: "as in: packs-mcp logout https://packs.example.com"}
			}
			return a.logOut(cmd.Context(), strings.Join(args, ""), all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "end all logins")
	a.ConfigFlag(cmd)
	return cmd
}

func (a *app) completeLogins(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	cfg, _, err := a.Load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	all, err := openSessions(cfg).load()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	servers := make([]string, len(all))
	for i, s := range all {
		servers[i] = safetext.Line(s.Server)
	}
	return servers, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) logIn(ctx context.Context, address, client string, device bool) error {
	cfg, _, err := a.Load()
	if err != nil {
		return err
	}
	kept := openSessions(cfg)
	if _, err := kept.load(); err != nil { // before anybody logs in for nothing
		return err
	}
	about, err := terminal.AboutOf(ctx, address)
	if errors.Is(err, terminal.ErrNoLogin) {
		return cli.WithHint(err, "put your token into a file of yours alone, and name it: packs-mcp approvals --server %s --token-file FILE", safetext.Line(address))
	}
	if err != nil {
		return fmt.Errorf("finding out where to log in: %w", err)
	}
	if client == "" {
		client = about.Client
	}
	if client == "" {
		return cli.WithHint(errors.New("the server does not say under which name its identity provider knows this program"),
			"its operator sets http.oidc.client; or give it here: --client ID")
	}
	one := session{Server: about.Server, Resource: about.Resource, Issuer: about.Issuer, Client: client, Scopes: about.Scopes}
	p, err := login.Open(ctx, one.options())
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Screen(a.Stderr), "Logging in to %s at %s.\n", safetext.Line(one.Server), safetext.Line(one.Issuer))
	got, err := a.tokens(ctx, p, device)
	if err != nil {
		return fmt.Errorf("logging in: %w", err)
	}
	one.take(got)
	// Ask the server whether it takes the token, so that a wrong audience or a missing
	// group is seen here.
	s, err := terminal.Remote(one.Server, terminal.Fixed(one.Access))
	if err != nil {
		return err
	}
	if _, err := s.Pending(ctx); err != nil {
		return cli.WithHint(errors.Join(fmt.Errorf("you logged in, but %s refuses you: %w", safetext.Line(one.Server), err), p.Revoke(ctx, got)),
			"ask the server's operator; its log says why, such as a token for another audience or a missing group")
	}
	if err := kept.keep(one); err != nil {
		return errors.Join(err, p.Revoke(ctx, got))
	}
	_, err = fmt.Fprintf(a.Stdout, "You are logged in. See the calls that wait for you: packs-mcp approvals --server %s\n", safetext.Line(one.Server))
	return err
}

// tokens has the person log in, in a browser or on another device.
func (a *app) tokens(ctx context.Context, p *login.Provider, device bool) (login.Tokens, error) {
	if !device && p.HasBrowser() {
		got, err := a.inBrowser(ctx, p)
		if !errors.Is(err, errNoBrowser) || !p.HasDevice() {
			return got, err
		}
	}
	return p.Device(ctx, func(to login.Prompt) {
		fmt.Fprintf(a.Screen(a.Stderr), "Open this page on any device:  %s\nand type this code there:      %s\nIt is good until %s. Type it nowhere else.\n", to.URL, to.Code, to.Until.Local().Format(time.TimeOnly))
	})
}

// errNoBrowser means that no browser can be opened.
var errNoBrowser = errors.New("no browser can be opened here")

// inBrowser has the person log in with a browser of this machine, which comes back to a
// server that is there only for this (RFC 8252).
func (a *app) inBrowser(ctx context.Context, p *login.Provider) (login.Tokens, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return login.Tokens{}, fmt.Errorf("waiting for your browser: %w", err)
	}
	back := &callback{p: p, host: l.Addr().String(), done: make(chan arrival, 1)}
	if back.attempt, err = p.Begin("http://" + back.host + callbackPath); err != nil {
		return login.Tokens{}, errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, loginTime, login.ErrLate)
	defer cancel()
	back.ctx = ctx
	s := &http.Server{Handler: back, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 5 * time.Second, WriteTimeout: time.Minute, MaxHeaderBytes: 64 << 10}
	served := make(chan struct{})
	go func() { _ = s.Serve(l); close(served) }()
	defer func() {
		ending, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer stop()
		_ = s.Shutdown(ending) // the browser gets its last page
		_ = s.Close()
		<-served
	}()
	dir, file, err := writeRedirect(back.attempt.URL)
	if err != nil {
		return login.Tokens{}, err
	}
	defer os.RemoveAll(dir)
	if err := launch.Browser(a.Environ, file); err != nil {
		return login.Tokens{}, fmt.Errorf("%w: %w", errNoBrowser, err)
	}
	fmt.Fprintf(a.Screen(a.Stderr), "Your browser opens. If it does not, open this file there: %s\nOr end this, and log in on another device: --device\n", safetext.Line(file))
	select {
	case got := <-back.done:
		return got.tokens, got.err
	case <-ctx.Done():
		return login.Tokens{}, context.Cause(ctx)
	}
}

// writeRedirect writes a file that leads a browser to a URL, in a folder of its own. The
// URL is in no list of processes: who knows its state could answer in the person's place.
func writeRedirect(url string) (dir, file string, err error) {
	if dir, err = os.MkdirTemp("", "packs-mcp-login-"); err != nil {
		return "", "", fmt.Errorf("opening your browser: %w", err)
	}
	at := html.EscapeString(url)
	text := `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Log in</title><meta name="referrer" content="no-referrer">` +
		`<meta http-equiv="refresh" content="0; url=` + at + `"></head><body><p><a href="` + at + `">Log in</a></p></body></html>`
	file = filepath.Join(dir, "login.html")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", "", errors.Join(fmt.Errorf("opening your browser: %w", err), os.RemoveAll(dir))
	}
	return dir, file, nil
}

// callbackPath is where the browser comes back to.
const callbackPath = "/callback"

// A callback waits for the browser. It takes the first answer that belongs to its
// attempt.
type callback struct {
	p       *login.Provider
	attempt *login.Attempt
	ctx     context.Context // of the command
	host    string          // what Host must be: a name that leads here is somebody else's
	done    chan arrival    // has room for the one outcome
}

type arrival struct {
	tokens login.Tokens
	err    error
}

func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Connection", "close")
	mode := r.Header.Get("Sec-Fetch-Mode")
	if r.Method != http.MethodGet || r.Host != c.host || r.URL.Path != callbackPath || r.Header.Get("Origin") != "" || mode != "" && mode != "navigate" {
		http.Error(w, "There is nothing here.", http.StatusNotFound)
		return
	}
	got, err := c.p.Finish(c.ctx, c.attempt, r.URL.Query())
	if errors.Is(err, login.ErrNotOurs) {
		http.Error(w, "This answer does not belong to the login that waits here. Go on in the window that your terminal opened.", http.StatusBadRequest)
		return
	}
	select {
	case c.done <- arrival{got, err}:
	default: // a second answer
		http.Error(w, "This login is over.", http.StatusConflict)
		return
	}
	if err != nil {
		http.Error(w, "You are not logged in; your terminal says why. You can close this window.", http.StatusForbidden)
		return
	}
	_, _ = fmt.Fprintln(w, "You are logged in. You can close this window, and go on in your terminal.")
}

func (a *app) logOut(ctx context.Context, address string, all bool) error {
	cfg, _, err := a.Load()
	if err != nil {
		return err
	}
	server := ""
	if !all {
		s, err := terminal.Remote(address, nil)
		if err != nil {
			return &cli.UsageError{Err: err, Hint: "say where the server is, as in: packs-mcp logout https://packs.example.com"}
		}
		server = s.Name
	}
	var gone []session
	err = openSessions(cfg).update(func(have []session) ([]session, error) {
		if all {
			gone = have
			return nil, nil
		}
		left := without(have, server)
		for _, one := range have {
			if one.Server == server {
				gone = append(gone, one)
			}
		}
		return left, nil
	})
	if err != nil {
		return err
	}
	if len(gone) == 0 {
		fmt.Fprintln(a.Screen(a.Stderr), "You were not logged in.")
		return nil
	}
	for _, one := range gone {
		fmt.Fprintf(a.Stdout, "You are logged out of %s.\n", safetext.Line(one.Server))
		p, err := login.Open(ctx, one.options())
		if err == nil {
			err = p.Revoke(ctx, one.tokens())
		}
		if err != nil {
			fmt.Fprintf(a.Screen(a.Stderr), "packs-mcp: warning: the identity provider was not told: %s\n", safetext.Line(err.Error()))
		}
	}
	return nil
}
