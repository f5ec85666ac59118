//go:build unix

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A closed terminal ends the server as cleanly as SIGTERM.
func TestHangup(t *testing.T) { testSignal(t, syscall.SIGHUP) }

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// A client that does not read does not keep the server from ending, and the
// log has its end; the second signal ends it at once.
func TestClientDoesNotRead(t *testing.T) {
	for _, how := range []string{"signal", "two signals", "end of input"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir, env := home(t)
			packs := filepath.Join(dir, "packs")
			plantPack(t, packs, "walk", "echo it went\n")
			unread, out, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer unread.Close()
			cmd := exec.Command("packs-mcp", "serve", "--packs", packs)
			var stderr bytes.Buffer
			cmd.Env, cmd.Stdout, cmd.Stderr = env, out, &stderr
			in, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			out.Close()
			defer cmd.Process.Kill()
			fmt.Fprintln(in, initialize)
			// The refusal repeats the id, so it is longer than a pipe holds. Once its
			// first byte is there, the server is writing it, and is blocked.
			fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%q}`+"\n", strings.Repeat("i", 1<<20))
			reply := bufio.NewReaderSize(unread, 16)
			if _, err := reply.ReadBytes('\n'); err != nil { // the reply to initialize
				t.Fatal(err)
			}
			if _, err := reply.ReadByte(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- cmd.Wait() }()
			switch how {
			case "end of input":
				in.Close()
			case "signal":
				err = cmd.Process.Signal(syscall.SIGTERM)
			case "two signals":
				// The test cannot tell whether the server already received the first
				// signal, so it sends more than two.
				err = errors.Join(cmd.Process.Signal(syscall.SIGTERM), keepSignalling(cmd.Process, ended))
			}
			if err != nil {
				t.Fatal(err)
			}
			select {
			case err = <-ended:
			case <-time.After(15 * time.Second):
				t.Fatal("the server does not end")
			}
			if how == "two signals" {
				return // this is what keepSignalling found
			}
			if err != nil {
				t.Errorf("the server ended with %v, want status 0; it said %s", err, stderr.String())
			}
			if all := events(t, dir); len(all["server.stop"]) != 1 {
				t.Errorf("the log has %v, want the end of the server", all)
			}
		})
	}
}

// keepSignalling sends SIGTERM until the process has ended, and puts the result
// back into ended. A shell may have started the test with SIGINT ignored.
func keepSignalling(p *os.Process, ended chan error) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(10 * time.Second)
	for {
		select {
		case err := <-ended:
			e, ok := errors.AsType[*exec.ExitError](err)
			if !ok {
				return fmt.Errorf("the server ended with %v, want by the second signal", err)
			}
			if s, ok := e.Sys().(syscall.WaitStatus); !ok || !s.Signaled() {
				return fmt.Errorf("the server ended with %v, want by the second signal", err)
			}
			ended <- err
			return nil
		case <-tick.C:
			if err := p.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return err
			}
		case <-timeout:
			return errors.New("the second signal did not end the server")
		}
	}
}

// A client that closes the server's standard error, as some do before they end
// it, loses only the messages there.
func TestClosedStderr(t *testing.T) {
	t.Parallel()
	dir, env := home(t)
	packs := filepath.Join(dir, "packs")
	plantPack(t, packs, "walk", "echo it went\n")
	long := "---\nname: walk\ndescription: " + strings.Repeat("far ", 300) + "\n---\n"
	if err := os.WriteFile(filepath.Join(packs, "walk", "SKILL.md"), []byte(long), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("packs-mcp", "serve", "--packs", packs)
	cmd.Env = env
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	messages, err3 := cmd.StderrPipe()
	if err := errors.Join(err1, err2, err3, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	timeout := time.AfterFunc(15*time.Second, func() { _ = cmd.Process.Kill() })
	defer timeout.Stop()
	if _, err := bufio.NewReader(messages).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	messages.Close()
	fmt.Fprintln(in, initialize)
	// The pack is left out, which is logged.
	fmt.Fprintln(in, `{"jsonrpc":"2.0","id":2,"method":"skills/list"}`)
	replies := bufio.NewReader(out)
	for range 2 {
		if _, err := replies.ReadBytes('\n'); err != nil {
			t.Fatalf("the server is gone: %v", err)
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("the server ended with %v, want status 0", err)
	}
	if all := events(t, dir); len(all["server.stop"]) != 1 {
		t.Errorf("the log has %v, want the end of the server", all)
	}
}
