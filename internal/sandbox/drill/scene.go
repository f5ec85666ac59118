package drill

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// keyVariable is in the environment of the simulated server, where clients put keys.
const keyVariable = "PACKS_MCP_ATTACK_KEY"

// A stage is what all tries share: a folder, programs that listen, and another process
// of the user's. The tries touch nothing else.
type stage struct {
	dir    string // resolved
	names  map[string]string
	closes []func()
}

// newStage makes a stage in dir. self is the path of this program.
func newStage(dir, self string) (_ *stage, err error) {
	s := &stage{dir: dir, names: map[string]string{}}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for name, at := range map[string][2]string{
		"tcp": {"tcp", "127.0.0.1:0"}, "unix": {"unix", filepath.Join(dir, "s")}, "abstract": {"unix", fmt.Sprintf("@packs-mcp-attack-%d", os.Getpid())},
	} {
		if name == "abstract" && runtime.GOOS != "linux" {
			continue
		}
		l, err := net.Listen(at[0], at[1])
		if err != nil && runtime.GOOS == "windows" {
			continue // unix sockets came with Windows 10, and Wine has none
		}
		if err != nil {
			return nil, fmt.Errorf("listening for the tries: %w", err)
		}
		s.closes = append(s.closes, func() { _ = l.Close() })
		go func() { // accepts connections and does nothing else
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_ = conn.Close()
			}
		}()
		s.names[name] = l.Addr().String()
		if at, is := l.Addr().(*net.TCPAddr); is {
			s.names[name] = strconv.Itoa(at.Port)
		}
	}
	switch udp, err := net.ListenPacket("udp", "127.0.0.1:0"); {
	case err == nil:
		s.closes = append(s.closes, func() { _ = udp.Close() })
		s.names["udp"] = strconv.Itoa(udp.LocalAddr().(*net.UDPAddr).Port)
	case runtime.GOOS != "windows":
		return nil, fmt.Errorf("listening for the tries: %w", err)
	}
	terminal, done := openTerminal()
	s.closes = append(s.closes, done)
	if terminal != "" {
		s.names["pty"] = terminal
	}
	return s, s.startVictim(self)
}

// startVictim starts a process that waits for the end of its input.
func (s *stage) startVictim(self string) error {
	victim := &exec.Cmd{Path: self, Args: []string{self, Arg, opWait}, Env: append(os.Environ(), keyVariable+"=canary")}
	in, err := victim.StdinPipe()
	if err == nil {
		err = victim.Start()
	}
	if err != nil {
		return fmt.Errorf("starting a process for the tries: %w", err)
	}
	s.closes = append(s.closes, func() {
		_ = in.Close()
		_ = victim.Process.Kill()
		_ = victim.Wait()
	})
	s.names["victim"] = strconv.Itoa(victim.Process.Pid)
	return nil
}

func (s *stage) close() {
	for _, end := range s.closes {
		end()
	}
}

// A scene is the surroundings of one try: the stage, and folders of its own, since
// earlier tries may have changed theirs.
type scene struct {
	home, outside, pack, workspace string
	names                          map[string]string
}

func (s *stage) scene(name string) (*scene, error) {
	in := func(path string) string { return filepath.Join(s.dir, name, path) }
	c := &scene{home: in("home"), outside: in("outside"), pack: in("pack"), workspace: in("ws"), names: maps.Clone(s.names)}
	key := filepath.Join(c.home, ".ssh", "id_rsa")
	c.names["home"], c.names["secret"], c.names["outside"], c.names["pack"], c.names["ws"] = c.home, key, c.outside, c.pack, c.workspace
	for file, text := range map[string]string{
		key: "canary key", filepath.Join(c.outside, "file"): "somebody's", filepath.Join(c.pack, "data.txt"): "the pack's own", filepath.Join(c.workspace, "file"): "the chat's",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			return nil, fmt.Errorf("making folders for a try: %w", err)
		}
	}
	return c, nil
}

// fill replaces names in braces with the things that they stand for, and reports
// whether all of these exist.
func (c *scene) fill(op []string) (filled []string, complete bool) {
	complete = true
	for _, arg := range op {
		if before, rest, found := strings.Cut(arg, "{"); found {
			name, after, _ := strings.Cut(rest, "}")
			value, made := c.names[name]
			complete = complete && made
			arg = before + value + after
		}
		filled = append(filled, arg)
	}
	return filled, complete
}

// LeftBehind reports whether the process that the operation "leave" started, with
// this file, is still alive.
func LeftBehind(file string) bool {
	before, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	for range 20 {
		time.Sleep(pulse)
		if now, err := os.ReadFile(file); err == nil && len(now) > 0 && !bytes.Equal(now, before) {
			return true
		}
	}
	return false
}
