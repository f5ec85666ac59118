//go:build unix

package storetest

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/packs-mcp/packs-mcp/internal/store"
)

// An Engine is a server on this machine with an empty store. It ends with its test.
type Engine struct {
	Name  string // "nats" or "postgres"
	addr  string
	url   func(addr string) string
	start func()
	stop  func()
	// standby is nil for an engine that has none.
	standby func(t testing.TB)
	empty   func(t testing.TB)
}

// Each runs a test with each engine.
func Each(t *testing.T, test func(t *testing.T, e *Engine)) {
	t.Run("nats", func(t *testing.T) { test(t, NATS(t)) })
	t.Run("postgres", func(t *testing.T) { test(t, Postgres(t)) })
}

// URL returns the URL of the engine.
func (e *Engine) URL() string { return e.url(e.addr) }

// Replica returns a copy of the store at url that follows it, as a replica with this key has.
func Replica(t testing.TB, url, key string) (*store.Mirror, store.Keys) {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := store.ParseKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	m, err := store.Follow(t.Context(), store.Seal(s, keys), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m, keys
}

// Restart stops the engine and starts it again with its data.
func (e *Engine) Restart() {
	e.stop()
	e.start()
}

// Standby makes PostgreSQL a standby, as of a primary that is away, until the test ends: it
// answers reads with what it has, and takes no writes.
func (e *Engine) Standby(t testing.TB) { e.standby(t) }

// Empty removes all of the engine's data, as if somebody set up the store anew while it
// is in use.
func (e *Engine) Empty(t testing.TB) { e.empty(t) }

// freeAddr returns an address of the loopback interface that nobody listens on.
func freeAddr(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// deadline is how long a test waits for an expected event.
const deadline = 30 * time.Second

// NATS starts a NATS server with JetStream that syncs every write.
func NATS(t testing.TB) *Engine {
	addr, dir := freeAddr(t), t.TempDir()
	port, _ := strconv.Atoi(addr[strings.LastIndexByte(addr, ':')+1:])
	var s *server.Server
	e := &Engine{Name: "nats", addr: addr, url: func(addr string) string { return "nats://" + addr + "/test" }}
	e.start = func() {
		var err error
		s, err = server.NewServer(&server.Options{
			Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir, SyncAlways: true, NoSigs: true, NoLog: true,
		})
		if err != nil {
			t.Fatalf("starting a NATS server: %v", err)
		}
		s.Start()
		if !s.ReadyForConnections(deadline) {
			t.Fatal("the NATS server does not accept connections")
		}
	}
	e.stop = func() {
		s.Shutdown()
		s.WaitForShutdown()
	}
	e.empty = func(t testing.TB) {
		conn, err := nats.Connect(e.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		js, err := jetstream.New(conn)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"test", "test-chains"} {
			if err := js.DeleteStream(t.Context(), name); err != nil {
				t.Fatalf("deleting the stream %s: %v", name, err)
			}
		}
	}
	e.start()
	t.Cleanup(func() { e.stop() })
	return e
}

// Main runs the tests of a package, and then ends the PostgreSQL server that they share.
func Main(m *testing.M) {
	status := m.Run()
	End()
	os.Exit(status)
}

// End ends the PostgreSQL server, for tests whose package has a main function of its own.
func End() { postgres.end() }

// postgres is one server for all tests of a process: making one takes seconds.
var postgres cluster

// A cluster is a PostgreSQL server that is made on first use.
type cluster struct {
	making    sync.Mutex
	dir, bin  string
	port      string
	as        *syscall.SysProcAttr
	databases int
}

// Postgres returns an empty database of a PostgreSQL server. [Main] ends that.
func Postgres(t testing.TB) *Engine {
	c := &postgres
	c.making.Lock()
	defer c.making.Unlock()
	if c.dir == "" {
		c.make(t)
	}
	c.databases++
	name := fmt.Sprint("test", c.databases)
	addr := net.JoinHostPort("127.0.0.1", c.port)
	conn, err := pgx.Connect(t.Context(), "postgres://packs@"+addr+"/postgres")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), "create database "+name); err != nil {
		t.Fatal(err)
	}
	e := &Engine{Name: "postgres", addr: addr, url: func(addr string) string { return "postgres://packs@" + addr + "/" + name }}
	e.start = func() { c.start(t) }
	e.stop = func() { c.run(t, "pg_ctl", "stop", "--pgdata", c.data(), "--wait", "--mode", "immediate") }
	e.standby = func(t testing.TB) {
		mark := filepath.Join(c.data(), "standby.signal")
		e.stop()
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			e.stop()
			if err := os.Remove(mark); err != nil {
				t.Error(err)
			}
			e.start()
		})
		e.start()
	}
	e.empty = func(t testing.TB) {
		conn, err := pgx.Connect(t.Context(), e.URL())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
		if _, err := conn.Exec(t.Context(), "truncate packs_mcp_entries, packs_mcp_chains; update packs_mcp_revision set n = 0"); err != nil {
			t.Fatalf("emptying the tables: %v", err)
		}
	}
	return e
}

func (c *cluster) data() string { return filepath.Join(c.dir, "data") }

func (c *cluster) make(t testing.TB) {
	initdb := find("initdb")
	if initdb == "" {
		Skip(t, "postgres", "there is no initdb")
	}
	dir, err := os.MkdirTemp("", "packs-mcp-pg")
	if err != nil {
		t.Fatal(err)
	}
	addr := freeAddr(t)
	c.as = owner(t, dir)
	c.dir, c.bin, c.port = dir, filepath.Dir(initdb), addr[strings.LastIndexByte(addr, ':')+1:]
	c.run(t, "initdb", "--pgdata", c.data(), "--auth", "trust", "--username", "packs", "--no-sync", "--encoding", "UTF8", "--locale", "C")
	c.start(t)
}

func (c *cluster) start(t testing.TB) {
	c.run(t, "pg_ctl", "start", "--pgdata", c.data(), "--wait", "--log", filepath.Join(c.dir, "log"), "--options",
		fmt.Sprintf("-c listen_addresses=127.0.0.1 -c port=%s -c unix_socket_directories= -c shared_buffers=16MB -c max_connections=60", c.port))
}

// run runs one of PostgreSQL's programs.
func (c *cluster) run(t testing.TB, name string, args ...string) {
	cmd := exec.Command(filepath.Join(c.bin, name), args...)
	cmd.SysProcAttr, cmd.Dir = c.as, c.dir
	// The server that pg_ctl starts keeps inherited streams open, so give it a file.
	out, err := os.Create(filepath.Join(c.dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		said, _ := os.ReadFile(out.Name())
		t.Fatalf("%s: %v\n%s", name, err, said)
	}
}

func (c *cluster) end() {
	c.making.Lock()
	defer c.making.Unlock()
	if c.dir == "" {
		return
	}
	stop := exec.Command(filepath.Join(c.bin, "pg_ctl"), "stop", "--pgdata", c.data(), "--wait", "--mode", "immediate")
	stop.SysProcAttr, stop.Dir = c.as, c.dir
	if err := stop.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "ending PostgreSQL:", err)
	}
	_ = os.RemoveAll(c.dir)
	c.dir = ""
}

// find returns the path of one of PostgreSQL's server programs, or "".
func find(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	all, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(all) == 0 {
		return ""
	}
	slices.Sort(all)
	return all[len(all)-1]
}

// owner gives a folder to a user who may run PostgreSQL, which refuses root, and
// returns how to start programs as that user.
func owner(t testing.TB, dir string) *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		Skip(t, "postgres", "there is no user postgres")
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

// Skip skips a test, unless PACKS_MCP_REQUIRE has the name of what is missing.
func Skip(t testing.TB, name, reason string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), name) {
		t.Fatalf("%s: required by PACKS_MCP_REQUIRE, but %s", name, reason)
	}
	t.Skipf("%s: %s", name, reason)
}
