package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
	"github.com/packs-mcp/packs-mcp/test/logbuf"
)

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"

// A client that does not read keeps the server neither from reading its input nor
// from ending.
func TestNotRead(t *testing.T) {
	for _, c := range []struct {
		how string
		max time.Duration
	}{{"told to end", 2 * time.Second}, {"end of input", drain + 2*time.Second}} {
		t.Run(c.how, func(t *testing.T) {
			w := newWorld(t, triage)
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				in, input := io.Pipe()
				unread, out := io.Pipe()
				ended := make(chan error, 1)
				go func() { ended <- wire.ServeStdio(ctx, w.srv, in, out) }()
				// The server reads all of it.
				io.WriteString(input, hello)
				for i := range 2 * maxConcurrent {
					fmt.Fprintf(input, `{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`+"\n", i+1)
				}
				synctest.Wait()
				start := time.Now()
				if c.how == "told to end" {
					stop()
				} else {
					input.Close()
				}
				if err := <-ended; err != nil {
					t.Errorf("ServeStdio = %v, want nil", err)
				}
				if took := time.Since(start); took > c.max {
					t.Errorf("it ended after %s, want at most %s", took, c.max)
				}
				input.Close()
				synctest.Wait()
				if _, err := unread.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
					t.Errorf("reading then = %v, want that the output was closed", err)
				}
				stop()
			})
		})
	}
}

// What waits for a client that does not read is bounded: the connection is closed.
func TestPiledUp(t *testing.T) {
	w := newWorld(t, "")
	in, input := io.Pipe()
	unread, out := io.Pipe()
	defer unread.Close()
	ended := make(chan error, 1)
	go func() { ended <- wire.ServeStdio(t.Context(), w.srv, in, out); in.Close() }()
	id := strings.Repeat("i", 1<<20)
	for sent := 0; ; sent++ {
		if _, err := fmt.Fprintf(input, `{"jsonrpc":"2.0","id":%q}`+"\n", id); err != nil {
			break
		}
		if sent == 2*maxOutput>>20 {
			t.Fatalf("the server took %d messages of 1 MiB, each of which it answers with as much", sent)
		}
	}
	if err := <-ended; !errors.Is(err, wire.ErrNotRead) {
		t.Errorf("ServeStdio = %v, want %v", err, wire.ErrNotRead)
	}
}

// library is one whose Catalog first calls a function.
type library struct {
	before func(context.Context)
	real   Library
}

func (l *library) Catalog(ctx context.Context) *packs.Catalog {
	l.before(ctx)
	return l.real.Catalog(ctx)
}

func (l *library) Refresh(ctx context.Context, dirs []string) (bool, error) {
	return l.real.Refresh(ctx, dirs)
}

// A call under way learns that its connection ended, and one that does not care
// is left behind.
func TestEnded(t *testing.T) {
	for _, stubborn := range []bool{false, true} {
		t.Run(fmt.Sprint("stubborn ", stubborn), func(t *testing.T) {
			lib := &library{before: func(context.Context) {}}
			w := newWorld(t, triage, func(s *setup) {
				real, err := packs.NewLibrary(t.Context(), s.packs, nil)
				if err != nil {
					t.Fatal(err)
				}
				lib.real = real
				s.server.Library = lib
			})
			synctest.Test(t, func(t *testing.T) {
				cause := make(chan error, 1)
				release := make(chan struct{})
				ctx, stop := context.WithCancel(t.Context())
				lib.before = func(ctx context.Context) {
					<-ctx.Done()
					select {
					case cause <- context.Cause(ctx):
					default:
					}
					if stubborn {
						<-release
					}
				}
				in, input := io.Pipe()
				var out logbuf.Buffer
				ended := make(chan error, 1)
				go func() { ended <- wire.ServeStdio(ctx, w.srv, in, &out) }()
				meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"n","version":"2"},"io.modelcontextprotocol/clientCapabilities":{}}`
				fmt.Fprintf(input, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"capability_packs_list","arguments":{},%s}}`+"\n", meta)
				synctest.Wait()
				start := time.Now()
				stop()
				if err := <-ended; err != nil {
					t.Errorf("ServeStdio = %v, want nil", err)
				}
				took := time.Since(start)
				if got := <-cause; !errors.Is(got, wire.ErrEnded) {
					t.Errorf("the call's context ended by %v, want %v", got, wire.ErrEnded)
				}
				if !stubborn && took != 0 {
					t.Errorf("it ended after %s, want at once", took)
				}
				if stubborn && took > wire.EndTime {
					t.Errorf("it ended after %s, want at most %s", took, wire.EndTime)
				}
				close(release)
				input.Close()
			})
		})
	}
}
