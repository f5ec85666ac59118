//go:build linux

// Package internet simulates an internet for tests of runs that name hosts: an address that
// leads to this machine, in the test's own network and file tree, with names and servers. It
// defines what a program tries there, and the expected results. It needs no network.
package internet

import (
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/hosts"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// ownNetworkVar is set if the test has its own network and file tree.
const ownNetworkVar = "PACKS_TEST_OWN_NETWORK"

// Own reports whether the test has its own network. If not, Own runs the test again in one,
// reports the result, and returns false.
func Own(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownNetworkVar) != "" {
		return true
	}
	inOwnNetwork(t)
	return false
}

// Check makes a program try everything. run starts it with this Policy and these variables,
// so that it calls [Reach] with these arguments, in a place where it can read dir. A program
// with network hosts reaches these through the proxy in its environment, and nothing else in
// any other way.
func Check(t *testing.T, dir string, run func(p sandbox.Policy, args, env []string) (*sandbox.Result, error)) {
	t.Helper()
	const public, name = "9.9.9.1", "api.example.com"
	const own = "11.9.9.1" // also on the internet, and belongs to this machine
	makeInternet(t, public, own, map[string]string{name: public, "own.example.com": own, "localhost.example.com": "127.0.0.1"})
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "%s for %s", r.URL.Path, r.Host) })
	secure := serve(t, handler, public+":443", true)
	_ = serve(t, handler, public+":80", false)
	_ = serve(t, handler, public+":81", false)
	_ = serve(t, handler, own+":80", false)
	_ = serve(t, handler, "127.0.0.1:80", false)

	args := []string{
		"get", "https://" + name + "/tls", "get", "http://" + name + "/plain",
		"get", "http://" + name + ":81/port", "get", "https://" + public + "/address", "get", "http://localhost.example.com/this-machine", "get", "http://own.example.com/this-machine",
		"tcp", public + ":443", "tcp", "127.0.0.1:80", "tcp", "[::1]:80", "udp", public + ":443", "look-up", "evil.example.com", "listen", "127.0.0.1:3128", "listen", "127.0.0.1:0",
	}
	ca := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	policy := sandbox.Policy{Network: sandbox.NetworkHosts}
	for _, h := range []string{name + ":443", name + ":80", "localhost.example.com:80", "own.example.com:80"} {
		host, err := hosts.Parse(h)
		if err != nil {
			t.Fatal(err)
		}
		policy.Hosts = append(policy.Hosts, host)
	}
	res, err := run(policy, args, []string{"SSL_CERT_FILE=" + ca, "HTTPS_PROXY=http://192.0.2.1:1", "GODEBUG=netdns=go"})
	if err != nil || res.ExitCode != 0 {
		t.Fatalf("Run = %+v, %v", res, err)
	}
	got := strings.Split(strings.TrimSuffix(string(res.Stdout.Bytes()), "\n"), "\n")
	want := []string{
		"get https://" + name + "/tls: 200 /tls for " + name,
		"get http://" + name + "/plain: 200 /plain for " + name,
		"get http://" + name + ":81/port: 403 packs-mcp: the tool does not name this host; this tool may reach " + strings.Join(policy.Reach()[1:], ", "),
		"get https://" + public + "/address: Forbidden",
		"get http://localhost.example.com/this-machine: 403 packs-mcp: its name leads to an address that is not on the internet, or to this machine or its network; this tool may reach " + strings.Join(policy.Reach()[1:], ", "),
		"get http://own.example.com/this-machine: 403 packs-mcp: its name leads to an address that is not on the internet, or to this machine or its network; this tool may reach " + strings.Join(policy.Reach()[1:], ", "),
		"tcp " + public + ":443: network is unreachable",
		"tcp 127.0.0.1:80: connection refused",
		"tcp [::1]:80: ",
		"udp " + public + ":443: network is unreachable",
		"look-up evil.example.com: ",
		"listen 127.0.0.1:3128: address already in use",
		"listen 127.0.0.1:0: ok",
	}
	for i, line := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], line) || strings.HasSuffix(line, ": ") && strings.HasSuffix(got[i], ": ok") {
			t.Errorf("line %d is %q, want %q", i, slices.Concat(got, make([]string, len(want)))[i], line)
		}
	}
	reached := 0
	for _, c := range res.Contacts {
		if c.Refused == "" && c.Address == public {
			reached++
		}
	}
	if len(res.Contacts) != 6 || reached != 2 {
		t.Errorf("contacts %+v, want two that were reached at %s and four that were refused", res.Contacts, public)
	}
}

// inOwnNetwork runs the test again as root of new namespaces.
func inOwnNetwork(t *testing.T) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), ownNetworkVar+"=1", "GODEBUG=netdns=go")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: gid, Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	switch text := string(out); {
	case err != nil && len(out) == 0:
		t.Skipf("no namespaces for a network of the test's own: %v", err)
	case err != nil:
		t.Errorf("%v\n%s", err, text)
	case strings.Contains(text, "--- SKIP"):
		t.Skip(text)
	case !strings.Contains(text, "--- PASS: "+t.Name()):
		t.Errorf("the test did not run:\n%s", text)
	}
}

// makeInternet routes the address public to this machine, gives the loopback interface the
// address own, and gives addresses names.
func makeInternet(t *testing.T, public, own string, names map[string]string) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	up := func(of string, set func(*unix.Ifreq), request uint) {
		t.Helper()
		ifr, err := unix.NewIfreq(of)
		if err != nil {
			t.Fatal(err)
		}
		set(ifr)
		if err := unix.IoctlIfreq(fd, request, ifr); err != nil {
			t.Fatal(err)
		}
	}
	up("lo", func(i *unix.Ifreq) { i.SetUint16(unix.IFF_UP) }, unix.SIOCSIFFLAGS)
	up("lo:1", func(i *unix.Ifreq) {
		if err := i.SetInet4Addr(net.ParseIP(own).To4()); err != nil {
			t.Fatal(err)
		}
	}, unix.SIOCSIFADDR)
	leadHere(t, public)
	file := filepath.Join(t.TempDir(), "hosts")
	var text strings.Builder
	text.WriteString("127.0.0.1 localhost\n")
	for name, address := range names {
		text.WriteString(address + " " + name + "\n")
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, m := range []struct {
		from, at string
		flags    uintptr
	}{{"", "/", unix.MS_REC | unix.MS_PRIVATE}, {file, "/etc/hosts", unix.MS_BIND}} {
		if err := unix.Mount(m.from, m.at, "", m.flags, ""); err != nil {
			t.Fatalf("mount %s: %v", m.at, err)
		}
	}
}

// leadHere adds a route that makes an address local, though no interface has it.
func leadHere(t *testing.T, address string) {
	t.Helper()
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	const size = unix.SizeofNlMsghdr + unix.SizeofRtMsg + 2*(unix.SizeofRtAttr+4)
	order := binary.NativeEndian
	message := order.AppendUint32(nil, size)
	message = order.AppendUint16(message, unix.RTM_NEWROUTE)
	message = order.AppendUint16(message, unix.NLM_F_REQUEST|unix.NLM_F_CREATE|unix.NLM_F_ACK)
	message = append(message, make([]byte, 8)...) // no sequence number, no port
	message = append(message, unix.AF_INET, 32, 0, 0, unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL, 0, 0, 0, 0)
	for _, attr := range []struct {
		kind  uint16
		value []byte
	}{{unix.RTA_DST, net.ParseIP(address).To4()}, {unix.RTA_OIF, order.AppendUint32(nil, uint32(lo.Index))}} {
		message = order.AppendUint16(message, unix.SizeofRtAttr+4)
		message = append(order.AppendUint16(message, attr.kind), attr.value...)
	}
	if err := unix.Sendto(fd, message, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil || n < unix.SizeofNlMsghdr+4 {
		t.Fatalf("adding a route: %d bytes, %v", n, err)
	}
	if errno := -int32(order.Uint32(answer[unix.SizeofNlMsghdr:])); errno != 0 {
		t.Fatalf("adding a route: %v", unix.Errno(errno))
	}
}

// serve serves one address of this machine, with TLS if secure is set.
func serve(t *testing.T, h http.Handler, at string, secure bool) *httptest.Server {
	t.Helper()
	ln, err := net.Listen("tcp4", at)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: ln, Config: &http.Server{Handler: h}}
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}
