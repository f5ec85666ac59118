package server

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// Conversations on the wire, in testdata/wire: the client section is sent, and the
// lines of the server section must come back. $STATE and $ASK stand for the
// requestState and the id of the last question. What differs each time, or has a
// golden file of its own, is shortened; see plainMessage. A log section has events
// that the audit log must get before the conversation continues, with why a run
// ended. A section "made" has files that programs must have made in the workspace.
// Files below packs/ are packs that replace the usual one.
func TestWire(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "wire", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			w := worldOf(t, file)
			converse(t, file, &talker{w: w, say: w.raw, lines: w.lines, end: func() { w.in.Close() }})
		})
	}
}

// worldOf starts a server for a conversation.
func worldOf(t *testing.T, file string, options ...option) *world {
	t.Helper()
	tree := triage
	if own := readTalk(t, file); slices.ContainsFunc(own.Files, isPack) {
		needShell(t)
		own.Files = slices.DeleteFunc(own.Files, func(f txtar.File) bool { return !isPack(f) })
		for i, f := range own.Files {
			own.Files[i].Name = strings.TrimPrefix(f.Name, "packs/")
		}
		tree = string(txtar.Format(own))
	}
	// The client of a conversation answers automatically, however long that takes
	// here.
	now := time.Now()
	return newWorld(t, tree, append(options, func(s *setup) { s.gate.Now = func() time.Time { return now } })...)
}

func isPack(f txtar.File) bool { return strings.HasPrefix(f.Name, "packs/") }

func readTalk(t *testing.T, file string) *txtar.Archive {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return txtar.Parse(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")))
}

// A talker is one end of a conversation.
type talker struct {
	w     *world
	say   func(line string)
	lines <-chan map[string]any // the messages that come; closed after end
	end   func()
	// loose says that messages come on several streams, which have no order among
	// each other.
	loose bool
}

func converse(t *testing.T, file string, w *talker) {
	t.Helper()
	talk := readTalk(t, file)
	var state, ask string
	for i, section := range talk.Files {
		if isPack(section) {
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(section.Data)), "\n")
		switch section.Name {
		case "client":
			for _, line := range lines {
				w.say(strings.NewReplacer("$STATE", state, "$ASK", ask).Replace(line))
			}
			continue
		case "log":
			for _, line := range lines {
				w.w.logged(line)
			}
			continue
		case "made":
			for _, line := range lines {
				w.w.made(line)
			}
			continue
		}
		var got strings.Builder
		for range lines {
			select {
			case m, ok := <-w.lines:
				if !ok {
					t.Fatalf("section %d: the server closed the connection; so far\n%s", i+1, got.String())
				}
				if m["method"] == "elicitation/create" {
					id, err := json.Marshal(m["id"])
					if err != nil {
						t.Fatal(err)
					}
					ask = string(id)
				}
				if r, ok := m["result"].(map[string]any); ok {
					if s, ok := r["requestState"].(string); ok {
						state = s
					}
				}
				got.WriteString(plainMessage(t, m) + "\n")
			case <-time.After(20 * time.Second):
				t.Fatalf("section %d: the server does not answer; so far\n%s", i+1, got.String())
			}
		}
		if *update {
			talk.Files[i].Data = []byte(got.String())
			continue
		}
		want, have := string(section.Data), got.String()
		if w.loose {
			want, have = sorted(want), sorted(have)
		}
		if diff := cmp.Diff(want, have); diff != "" {
			t.Fatalf("section %d (-want +got; go test -update writes it):\n%s", i+1, diff)
		}
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(talk), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// No message may be left over.
	w.end()
	for m := range w.lines {
		t.Errorf("the server also said %s", plainMessage(t, m))
	}
}

// logged waits until the audit log has an event, and compares its cause.
func (w *world) logged(line string) {
	w.t.Helper()
	event, cause, _ := strings.Cut(line, " ")
	w.awaitLog(event)
	for _, e := range w.entries() {
		if string(e.Event) == event && e.Cause != cause {
			w.t.Errorf("the log has %s by %q, want %q", event, e.Cause, cause)
		}
	}
}

// made waits for a file in the workspace of a chat.
func (w *world) made(name string) (text string) {
	w.t.Helper()
	late := time.After(20 * time.Second)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		for _, c := range w.srv.chats.All() {
			if data, err := os.ReadFile(filepath.Join(c.Workspaces.First().Dir, name)); err == nil && len(data) > 0 {
				return strings.TrimSpace(string(data))
			}
		}
		select {
		case <-look.C:
		case <-late:
			w.t.Fatalf("no file %s appeared in a workspace", name)
		}
	}
}

// sorted returns the lines of a text in sorted order.
func sorted(text string) string {
	return strings.Join(slices.Sorted(strings.Lines(text)), "")
}

// plainMessage writes a message with sorted keys and without what differs from
// run to run.
func plainMessage(t *testing.T, m map[string]any) string {
	t.Helper()
	plain(m)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

// plain shortens, in place, what has its own test or differs each time.
func plain(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			plain(item)
		}
	case map[string]any:
		if v["structuredContent"] != nil {
			v["content"] = "THE SAME"
		}
		for key, item := range v {
			switch text, _ := item.(string); key {
			case "instructions", "requestState", "folder":
				v[key] = strings.ToUpper(key)
				continue
			case "message":
				v[key], _, _ = strings.Cut(text, "\n") // the text of a question
			case "schema", "enumNames", "icons":
				v[key] = strings.ToUpper(key)
				continue
			case "tools":
				if _, ok := item.([]any); !ok {
					continue
				}
				names := []any{}
				for _, tool := range objects(item) {
					names = append(names, tool["name"])
				}
				v[key] = names
				continue
			}
			plain(v[key])
		}
	}
}
