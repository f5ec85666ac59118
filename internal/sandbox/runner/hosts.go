package runner

import (
	"net"
	"os"
	"strconv"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/egress"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/level"
)

// serveHosts lets the program reach the Policy's Hosts through a listener, which it
// takes over. Without it, the program reaches nothing.
func (t *task) serveHosts(listener *os.File) {
	ln, err := net.FileListener(listener)
	_ = listener.Close()
	if err != nil {
		t.r.o.Logger.Error("a run reaches none of its hosts", "run", t.Command.RunID, "err", err)
		return
	}
	t.proxy = egress.Start(ln, t.Policy.Hosts)
}

// proxyEnv are the variables by which programs find the proxy. Each is read by some
// programs and not by others. Connections of a program to itself do not use the
// proxy.
func proxyEnv() []string {
	proxy := "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(level.ListenPort))
	own := "localhost,127.0.0.1,::1"
	return []string{
		"HTTP_PROXY=" + proxy, "HTTPS_PROXY=" + proxy, "ALL_PROXY=" + proxy, "NO_PROXY=" + own,
		"http_proxy=" + proxy, "https_proxy=" + proxy, "all_proxy=" + proxy, "no_proxy=" + own,
		"NODE_USE_ENV_PROXY=1", // Node.js 22.21 and 24 read the others only with this
	}
}
