package seatbelt

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Unconfined, every operation that must fail succeeds; otherwise the checks would
// prove nothing.
func TestCheckUnconfined(t *testing.T) {
	s, err := NewScene(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	port, done, err := Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	s.Port, s.HardLinks = port, true
	var out bytes.Buffer
	if code := check(&out, s.Args(), func(*Scene) []attempt { return []attempt{{"do more", nil}, {"do less", unix.EPERM}} }); code != 1 {
		t.Errorf("check = %d, want 1", code)
	}
	for _, want := range []string{
		"read a file outside", "look at a file outside", "list a folder outside", "change a file outside",
		"change the mode of a file outside", "make a file outside", "give a file outside a second name", "move a file outside",
		"change its pack", "change the mode of its pack", "give its pack a second name",
		"send a signal to the server", "send a signal to its parent",
		"connect to a server on this machine", "send to a port on this machine", "wait for connections", "do more",
	} {
		if !strings.Contains(out.String(), "it can "+want+"\n") {
			t.Errorf("check does not find that it can %s", want)
		}
	}
	if strings.Contains(out.String(), "cannot") || strings.Contains(out.String(), "do less") {
		t.Errorf("check = %q, want nothing that it cannot", out.String())
	}
}

func TestCheckReportsMissingFiles(t *testing.T) {
	s := &Scene{Inside: "/nonexistent/a", Pack: "/nonexistent/b", Outside: "/nonexistent/c", HardLinks: true, Server: 1 << 30, Port: 1}
	var out bytes.Buffer
	if code := check(&out, s.Args(), nil); code != 1 {
		t.Errorf("check = %d, want 1", code)
	}
	for _, want := range []string{"read its pack", "make a file", "rename a file", "make a folder", "make a hard link", "remove a file"} {
		if !strings.Contains(out.String(), "it cannot "+want+": ") {
			t.Errorf("check does not find that it cannot %s", want)
		}
	}
	for _, args := range [][]string{nil, {"{"}, {"{}", "{}"}} {
		if code := check(&out, args, nil); code != 2 {
			t.Errorf("check(%q) = %d, want 2", args, code)
		}
	}
}
