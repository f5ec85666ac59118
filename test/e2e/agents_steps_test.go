package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/audit"
)

// A step is a scenario through which every agent is driven.
type step struct {
	name     string
	channels string // where a person is asked
	env      []string
	run      func(*stage)
}

// steps lists all of them. An agent's own steps, such as answering by a hook, are in its
// row.
var steps = []step{
	{"the whole way", "page,terminal", nil, wholeWay},
	{"the whole way over HTTP", "page,terminal", nil, func(s *stage) { s.over = overHTTP; wholeWay(s) }},
	{"denied in a terminal", "terminal", nil, denied},
	{"nobody to ask", "elicitation", nil, askedInVain},
	{"declined by itself", "elicitation,terminal", nil, declinedByItself},
	{"answered late", "terminal", []string{"PACKS_MCP_APPROVAL_WAIT=1s"}, answeredLate},
	{"an edited pack", "terminal", nil, editedPack},
	{"a killed server", "terminal", nil, killedServer},
	{"a long wait", "terminal", []string{"PACKS_MCP_APPROVAL_WAIT=9m"}, longWait},
}

// lastWords are the model's final words if its script succeeded. An agent prints them.
const lastWords = "The note is written."

// metadata is the block of names that every model must see.
const metadata = `Capability Packs (attached; metadata only):
- pack_id: field-notes
  description: Keep short notes from the field. Use when asked to write down an observation.
  has_tools_json: true
- pack_id: plain
  description: A document and nothing else.
  has_tools_json: false
`

// The model's calls.
var (
	noteArgs = map[string]any{"file": "first", "text": "rain"}
	callList = call("capability_packs_list", nil)
	callOpen = call("capability_packs_open_docs", map[string]any{"pack_id": "field-notes"})
	// callEnable makes the tools of a pack callable by their own names.
	callEnable     = call("capability_packs_enable_tools", map[string]any{"pack_id": "field-notes"})
	callNote       = call("capability_packs_call_tool", map[string]any{"pack_id": "field-notes", "tool": "note", "arguments": noteArgs})
	callNoteByName = call("field-notes__note", noteArgs)
)

// again returns a call after which the same play answers.
func again(p play, seen turn) move {
	next := p(seen)
	next.stay = true
	return next
}

// thinking is the pause before the model looks again. A scripted model answers at once, which
// gives an agent less time than a real one: Gemini CLI needs half a second to notice a
// changed description.
const thinking = 200 * time.Millisecond

// lookAgain lists the packs for the nth time, after which the same play answers. It varies
// the request, since some agents end a conversation in which the model repeats a call:
// Gemini CLI after five.
func lookAgain(n int, seen turn) move {
	time.Sleep(thinking)
	return again(call("capability_packs_list", map[string]any{"query": fmt.Sprint("notes of day ", n)}), seen)
}

// done ends the model's script.
func done(turn) move { return move{words: lastWords} }

// How often the model looks for enabled tools, with other calls in between: an agent that
// refreshes its list does not wait for it before it returns to the model. Agents that never
// refresh get fewer chances to show that this has changed.
const (
	roundsOfListing = 50
	roundsOfOthers  = 3
)

// knows reports whether the model can call a tool of the server: the tool is offered, or
// listed for the agent's search.
func (seen turn) knows(name string, s *search) bool {
	return seen.tool(name) != nil || s != nil && strings.Contains(seen.text, seen.prefix+name)
}

// ran checks that the last call was a run that wrote the note.
func (seen turn) ran(t *testing.T) {
	t.Helper()
	out := seen.last(t)
	if diff := cmp.Diff(map[string]any{"file": "first", "stars": 3.0}, out["parsed"]); diff != "" || out["ok"] != true {
		t.Errorf("the run gave %v, want ok and what the tool printed (-want +got):\n%s", out, diff)
	}
}

// opened checks that the last call opened the pack's documents.
func (seen turn) opened(t *testing.T) {
	t.Helper()
	doc := map[string]any{"path": "SKILL.md", "content": "# Field notes\n\nRead `docs/guide.md`, then call the tool `note`.\n"}
	if diff := cmp.Diff(doc, seen.last(t)["entry_doc"]); diff != "" {
		t.Errorf("open_docs (-want +got):\n%s", diff)
	}
	if folder, _ := seen.last(t)["folder"].(string); !filepath.IsAbs(folder) || !strings.HasSuffix(filepath.ToSlash(folder), "/packs/field-notes") {
		t.Errorf("open_docs: folder = %q, want the pack's", folder)
	}
}

// wholeWay goes from names to runs in both possible ways, and checks what the model sees.
func wholeWay(s *stage) {
	t := s.t
	looked := -1
	offers := func(seen turn) {
		if s.search != nil {
			return // what it sees depends on its searches
		}
		if diff := cmp.Diff(baseTools, seen.names()); diff != "" {
			t.Errorf("turn %d: the tools of the server that the model may call (-want +got):\n%s", len(seen.results)+1, diff)
		}
	}
	person := s.answerAll("approve")
	out := s.play(
		func(seen turn) move {
			offers(seen)
			if !s.deaf && !strings.Contains(unindented(seen.text), metadata) || s.deaf && strings.Contains(seen.text, "field-notes") {
				t.Errorf("the model reads the names of the packs: %v, want %v:\n%s", s.deaf, !s.deaf, seen.text)
			}
			if list := seen.tool("capability_packs_list"); list != nil && !strings.Contains(list.description+"\n", metadata) {
				t.Errorf("the description of list is %q, want the names of the packs in it", list.description)
			}
			return callList(seen)
		},
		func(seen turn) move {
			packs, _ := seen.last(t)["packs"].([]any)
			if len(packs) != 2 {
				t.Errorf("list gave %v, want two packs", packs)
			}
			return call("capability_packs_open_docs", map[string]any{"pack_id": "nowhere"})(seen)
		},
		func(seen turn) move {
			seen.failed(t, "not_found")
			return callOpen(seen)
		},
		func(seen turn) move {
			seen.opened(t)
			offers(seen)
			return callEnable(seen)
		},
		func(seen turn) move {
			looked++
			if looked == 0 && seen.last(t)["enabled"] != true {
				t.Errorf("enable_tools gave %v, want enabled", seen.last(t))
			}
			if !seen.knows("field-notes__note", s.search) {
				if s.lists && looked < roundsOfListing || !s.lists && looked < roundsOfOthers {
					return lookAgain(looked, seen)
				}
				if s.lists {
					t.Errorf("the model does not see the tool after %d calls in between", looked)
				}
				return callNote(seen)
			}
			if !s.lists {
				t.Error("the model sees the tool that was enabled, and this agent's row says that it does not list again")
			}
			return callNoteByName(seen)
		},
		func(seen turn) move {
			seen.ran(t)
			return callNote(seen)
		},
		func(seen turn) move {
			seen.ran(t)
			return done(seen)
		},
	)
	s.wrote(out)
	if got := person.count(); got != 4 {
		t.Errorf("the person answered %d calls, want 4", got)
	}
	if got := s.read("browser"); got != "opened\n" {
		t.Errorf("the browser was told %q, want to open the page once", got)
	}
	s.decided("terminal", "open once", "enable once", "run once", "run once")
	if s.over == overStdio {
		s.measure()
	}
}

// denied makes a person deny the model's requests.
func denied(s *stage) {
	s.answerAll("deny")
	out := s.play(callOpen, func(seen turn) move {
		seen.failed(s.t, "denied")
		return done(seen)
	})
	s.said(out)
	s.decided("terminal", "open deny")
}

// askedInVain leaves only the agent's own forms as a channel. It has no person: it answers
// automatically, or is not asked.
func askedInVain(s *stage) {
	out := s.play(callOpen, func(seen turn) move {
		seen.failed(s.t, "denied")
		return done(seen)
	})
	s.said(out)
	decided := s.decisions()
	if len(decided) != 1 || decided[0].Kind != "open" || decided[0].Decision != "deny" {
		s.t.Errorf("the log has %v, want one denial", decided)
	}
	got := strings.Join(s.wireOf().actions(), ", ")
	if got != s.alone {
		s.t.Errorf("it answers forms with %q, want %q as its row says", got, s.alone)
	}
	s.fact(factAlone, orElse(s.alone, "is not asked"))
}

// declinedByItself has a person in a terminal, who is asked in addition to the agent. An
// agent's automatic answer decides nothing.
func declinedByItself(s *stage) {
	person := s.answerAll("approve")
	calls := 0
	out := s.play(func(seen turn) move {
		// The call may have to be repeated, since the first one returns when the agent declines.
		if calls++; calls > 1 && strings.Contains(seen.results[calls-2].text, "entry_doc") || calls > roundsOfListing {
			seen.opened(s.t)
			return done(seen)
		}
		s.until("the person to answer", func() bool { return calls == 1 || person.some() })
		return again(callOpen, seen)
	})
	s.said(out)
	all := s.decisions()
	if n := len(all); n == 0 || all[n-1].Decision != "once" || all[n-1].Channel != "terminal" {
		s.t.Errorf("the log has %v, want that the person in the terminal allowed the call", all)
	}
}

// answeredLate makes a call return before a person answers it; the answer applies to the
// same call when it is repeated.
func answeredLate(s *stage) {
	out := s.play(callOpen, func(seen turn) move {
		seen.failed(s.t, "approval_pending")
		if got := s.answer("approve"); got != 1 {
			s.t.Errorf("%d calls wait, want one", got)
		}
		return callOpen(seen)
	}, func(seen turn) move {
		seen.opened(s.t)
		return done(seen)
	})
	s.said(out)
}

// editedPack changes a pack during a conversation: its description, and what its tool does.
func editedPack(s *stage) {
	t := s.t
	const is = "Keep long notes from the field."
	looked := 0
	person := s.answerAll("approve")
	out := s.play(callOpen, callEnable, callNote, func(seen turn) move {
		seen.ran(t)
		told := s.wireOf().count("server", "notifications/tools/list_changed")
		s.edit("SKILL.md", "Keep short notes from the field.", is)
		s.edit("scripts/note.sh", "%s stars", "%s stars, edited")
		s.until("the server to tell that its list changed", func() bool {
			return s.wireOf().count("server", "notifications/tools/list_changed") > told
		})
		return callNote(seen)
	}, func(seen turn) move {
		seen.ran(t)
		return callList(seen)
	}, func(seen turn) move {
		if all := fmt.Sprint(seen.last(t)["packs"]); !strings.Contains(all, is) {
			t.Errorf("list gave %v, want what the pack says now", all)
		}
		tool := seen.tool("capability_packs_list")
		shown := tool != nil && strings.Contains(tool.description, is)
		looked++
		if !shown && (s.lists && looked < roundsOfListing || !s.lists && looked < roundsOfOthers) {
			return lookAgain(looked, seen)
		}
		if shown != s.reads {
			t.Errorf("the model reads in the description of list what the pack says now: %v, want %v", shown, s.reads)
		}
		if got := s.wireOf().lists(is); got != s.lists {
			t.Errorf("the agent was given a list with what the pack says now: %v, want %v", got, s.lists)
		}
		s.fact(factReads, map[bool]string{true: "yes", false: "no"}[shown])
		return done(seen)
	})
	s.said(out)
	if got := s.read(filepath.Join("workspace", "notes", "first.txt")); got != "rain\n3 stars, edited\n" {
		t.Errorf("the note is %q, want what the edited tool writes", got)
	}
	if got := person.count(); got != 4 {
		t.Errorf("the person answered %d calls, want 4", got)
	}
}

// edit changes a file of the pack with tools by replacing it as a whole, as editors do.
func (w *world) edit(name, was, is string) {
	w.t.Helper()
	file := filepath.Join(w.packs, "field-notes", filepath.FromSlash(name))
	raw, err := os.ReadFile(file)
	if err == nil && !strings.Contains(string(raw), was) {
		err = fmt.Errorf("%s has no %q", name, was)
	}
	fi, err2 := os.Stat(file)
	if err = errors.Join(err, err2); err != nil {
		w.t.Error(err)
		return
	}
	aside := w.write("aside", strings.Replace(string(raw), was, is, 1))
	if err := errors.Join(os.Chmod(aside, fi.Mode()), os.Rename(aside, file)); err != nil {
		w.t.Error(err)
	}
}

// The possible fates of an agent's calls after its server was killed.
const (
	startsAgain = "starts it again"
	staysDead   = "each call fails"
	losesTools  = "one call fails, then the tools are gone"
)

// killedServer kills the server during a conversation.
func killedServer(s *stage) {
	t := s.t
	became, calls := losesTools, 0
	look := func(seen turn) move {
		next := again(callList, seen)
		next.lost, next.words = true, lastWords
		return next
	}
	s.answerAll("approve")
	out := s.play(callOpen, func(seen turn) move {
		text := seen.results[len(seen.results)-1].text
		if len(seen.results) == 1 {
			seen.opened(t)
			if p, err := os.FindProcess(s.wireOf().server()); err != nil || p.Kill() != nil {
				t.Errorf("killing the server: %v", err)
			}
			return look(seen)
		}
		calls++
		switch {
		case strings.Contains(text, `"packs"`):
			became = startsAgain
		case s.killed == staysDead && calls == roundsOfOthers || calls == roundsOfListing:
			became = staysDead
		default:
			return look(seen)
		}
		return done(seen)
	})
	if !strings.Contains(out, lastWords) {
		t.Errorf("the agent printed %q, want the model's last words", tail(out))
	}
	if became != s.killed {
		t.Errorf("after its server was killed: %s; want %q as its row says", became, s.killed)
	}
	s.fact(factKilled, became)
}

// holdVar is how long a person makes an agent wait in the step that measures this. The
// default is longer than the 60 seconds at which client libraries time out.
const holdVar = "PACKS_MCP_AGENTS_HOLD"

// longWait makes a person take long to answer. The wait itself is the test: it shows how long
// the agent waits.
func longWait(s *stage) {
	hold := 70 * time.Second
	if v := os.Getenv(holdVar); v != "" {
		d, err := time.ParseDuration(v)
		if err != nil {
			s.t.Fatal(err)
		}
		hold = d
	}
	var once sync.Once
	begun := make(chan struct{})
	go func() {
		select {
		case <-begun:
		case <-s.t.Context().Done():
			return
		}
		time.Sleep(hold)
		if s.answer("approve") != 1 {
			s.t.Errorf("after %s no call waits any more", hold)
		}
	}()
	out := s.play(func(seen turn) move {
		once.Do(func() { close(begun) })
		return callOpen(seen)
	}, func(seen turn) move {
		seen.opened(s.t)
		return done(seen)
	})
	s.said(out)
	s.fact(factHolds, "70 s and longer")
}

// until waits for something that must happen.
func (w *world) until(what string, happened func() bool) {
	w.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(patience); !happened(); {
		select {
		case <-tick.C:
		case <-late:
			w.t.Errorf("after %s: want %s", patience, what)
			return
		}
	}
}

// unindented removes what an agent may put before each line.
func unindented(text string) string {
	at := strings.Index(text, "Capability Packs (attached; metadata only):\n")
	if at < 0 {
		return text
	}
	indent := text[strings.LastIndex(text[:at], "\n")+1 : at]
	return strings.ReplaceAll(text[at:], "\n"+indent, "\n") + "\n"
}

// decisions returns the decisions in the log, except those about metadata.
func (w *world) decisions() []audit.Entry {
	w.t.Helper()
	return slices.DeleteFunc(w.entries(), func(e audit.Entry) bool { return e.Decision == "" || e.Kind == "list" })
}

// decided checks that the log has exactly these decisions, each as "kind decision", all from
// one channel, and a run for each that was allowed.
func (w *world) decided(channel string, want ...string) {
	w.t.Helper()
	var got []string
	for _, e := range w.decisions() {
		got = append(got, e.Kind+" "+e.Decision)
		if e.Channel != channel {
			w.t.Errorf("%s %s was decided over %q, want %q: %s", e.Kind, e.Decision, e.Channel, channel, e.Reason)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("the decisions in the log (-want +got):\n%s", diff)
	}
	runs, allowed := map[audit.Event]int{}, 0
	for _, e := range w.entries() {
		runs[e.Event]++
	}
	for _, decision := range want {
		if decision == "run once" {
			allowed++
		}
	}
	if diff := cmp.Diff(fmt.Sprint(allowed, allowed), fmt.Sprint(runs[audit.EventRunStart], runs[audit.EventRunEnd])); diff != "" {
		w.t.Errorf("runs that began and ended (-want +got):\n%s", diff)
	}
}

// said checks that the agent printed the model's final words.
func (s *stage) said(printed string) {
	s.t.Helper()
	if !strings.Contains(printed, lastWords) {
		s.t.Errorf("the agent printed %q and %q, want the model's last words", tail(printed), tail(s.stderr))
	}
	if got, want := s.m.played(), len(s.m.script); got != want {
		s.t.Errorf("the model got through %d of %d plays", got, want)
	}
}

// wrote also checks what the runs left.
func (s *stage) wrote(printed string) {
	s.t.Helper()
	s.said(printed)
	if got := s.read(filepath.Join("workspace", "notes", "first.txt")); got != "rain\n3 stars\n" {
		s.t.Errorf("the note is %q, want what the model wrote", got)
	}
}

// orElse returns text, or other if it is empty.
func orElse(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
