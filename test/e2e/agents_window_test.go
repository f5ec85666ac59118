package e2e_test

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
)

// A window describes how an agent shows forms to a person in a terminal.
type window struct {
	// start writes its configuration, and returns the variables and arguments that make it
	// begin the task.
	start func(s *stage) (env, args []string)
	// allow lists the keys that choose a form's first option, which allows this one call.
	// Escape closes a form.
	allow []press
	// stays says that a form stays if its question was answered elsewhere. In the era of
	// 2026-07-28 no message can withdraw it; before that, a client may ignore the message.
	stays bool
	// reaches is a host on the network that it contacts, whatever its settings say.
	reaches string
}

// A press is a key to press once some words of the agent are on the screen.
type press struct{ words, key string }

const escape = "\x1b"

// windowPatience is how long an agent may take to show what it must. Only a failing test
// waits that long.
const windowPatience = 3 * time.Minute

// reading is how long a person looks at a form before closing it. The server takes a form
// that is closed within a second as closed automatically.
const reading = 2 * time.Second

// The size of the window.
const (
	rows    = 50
	columns = 120
)

// inWindow makes a person answer the agent's forms: allow a call, answer one elsewhere while
// the form is shown, and close a form.
func inWindow(s *stage) {
	s.m = newModel(s.t, s.prefix, callOpen, func(seen turn) move {
		seen.opened(s.t)
		return callEnable(seen)
	}, func(seen turn) move {
		if seen.last(s.t)["enabled"] != true {
			s.t.Errorf("enable_tools gave %v, want enabled", seen.last(s.t))
		}
		return callNote(seen)
	}, func(seen turn) move {
		if !strings.Contains(unescaped(seen.results[len(seen.results)-1].text), `{"error":{"code":"`) {
			s.t.Errorf("the model reads %+v, want an error", seen.results)
		}
		return done(seen)
	})
	s.m.search = s.search
	env, args := s.window.start(s)
	term := s.terminal(append(s.agentEnv(env), "TERM=xterm-256color"), args)

	s.shown(term, 1)
	s.allow(term, s.another())
	s.shown(term, 2)
	if got := s.answer("approve"); got != 1 {
		s.t.Errorf("%d calls wait in the terminal, want the one of the form", got)
	}
	if s.window.stays {
		another := s.another()
		s.allow(term, func() bool { return another() || s.has(term, 3) }) // the agent may report this to nobody
	}
	s.shown(term, 3)
	time.Sleep(reading)
	term.pressUntil(escape, func() bool { return s.has(term, 3) }, s.another())
	term.until(lastWords)
	term.end()
	if got, want := s.m.played(), len(s.m.script); got != want {
		s.t.Errorf("the model got through %d of %d plays", got, want)
	}
	var got []string
	for _, e := range s.decisions() {
		got = append(got, e.Kind+" "+e.Decision)
	}
	if slices.Contains(got, "run once") || !slices.Contains(got, "open once") || !slices.Contains(got, "enable once") {
		s.t.Errorf("the log has the decisions %q, want that opening and enabling were allowed, and no run", got)
	}
	s.fact(factWindow, "yes")
	s.fact(factStays, map[bool]string{true: "stays", false: "goes"}[s.window.stays])
}

// allow presses the keys that allow a call in the agent's form, until done.
func (s *stage) allow(term *terminal, done func() bool) {
	s.t.Helper()
	keys := s.window.allow
	term.until(keys[0].words)
	for i, press := range keys {
		next := done
		if i+1 < len(keys) {
			next = func() bool { return term.has(keys[i+1].words) }
		}
		term.pressUntil(press.key, func() bool { return term.has(press.words) }, next)
	}
}

// another reports whether the agent has answered another form since.
func (s *stage) another() func() bool {
	before := len(s.wireOf().actions())
	return func() bool { return len(s.wireOf().actions()) > before }
}

// has reports whether the server has asked that many questions, and the beginning of the last
// one is on the agent's screen.
func (s *stage) has(term *terminal, questions int) bool {
	all := s.wireOf().questions()
	if len(all) < questions {
		return false
	}
	first, _, _ := strings.Cut(all[questions-1], "\n") // some show only a few lines
	return term.has(first)
}

// shown waits until the agent shows a question.
func (s *stage) shown(term *terminal, questions int) {
	s.t.Helper()
	term.wait("question "+strconv.Itoa(questions), func() bool { return s.has(term, questions) })
}

// questions returns the texts of the server's forms, in either era.
func (w wire) questions() []string {
	var all []string
	for _, m := range w.from("server") {
		var params struct {
			Message string `json:"message"`
		}
		var result struct {
			Requests map[string]struct {
				Params struct {
					Message string `json:"message"`
				} `json:"params"`
			} `json:"inputRequests"`
		}
		if m.Method == "elicitation/create" && json.Unmarshal(m.Params, &params) == nil {
			all = append(all, params.Message)
		}
		if json.Unmarshal(m.Result, &result) == nil {
			for _, request := range result.Requests {
				all = append(all, request.Params.Message)
			}
		}
	}
	return all
}

// A terminal runs an agent. It does not interpret drawing: its screen is everything written
// since the last key or redraw.
type terminal struct {
	t   *testing.T
	tty *os.File
	cmd *exec.Cmd
	eof chan struct{}

	rows uint16 // of the window

	mu    sync.Mutex
	fresh strings.Builder
}

// terminal starts the agent in a terminal.
func (s *stage) terminal(env, args []string) *terminal {
	s.t.Helper()
	term := &terminal{t: s.t, cmd: exec.Command(s.bin, args...), eof: make(chan struct{}), rows: rows}
	term.cmd.Env, term.cmd.Dir = env, s.project()
	tty, err := pty.StartWithSize(term.cmd, &pty.Winsize{Rows: rows, Cols: columns})
	if err != nil {
		s.t.Fatalf("a terminal: %v", err)
	}
	term.tty = tty
	s.t.Cleanup(term.end)
	go term.read()
	return term
}

// read records output, and answers the agent's queries to the terminal: the position of the
// cursor, and the kind of terminal.
func (term *terminal) read() {
	defer close(term.eof)
	buf := make([]byte, 32<<10)
	for {
		n, err := term.tty.Read(buf)
		term.mu.Lock()
		term.fresh.Write(buf[:n])
		term.mu.Unlock()
		for asked, answer := range map[string]string{"\x1b[6n": "\x1b[1;1R", "\x1b[c": "\x1b[?62c"} {
			if strings.Contains(string(buf[:n]), asked) {
				_, _ = io.WriteString(term.tty, answer)
			}
		}
		if err != nil {
			return
		}
	}
}

// control matches the sequences that move the cursor or set colours.
var control = regexp.MustCompile(`\x1b(\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[ -/]*[0-~])`)

// squeezed removes blanks from text, since an agent may write them as movements of the
// cursor.
func squeezed(text string) string {
	return strings.Join(strings.Fields(control.ReplaceAllString(text, " ")), "")
}

// has reports whether some words were written since the last key.
func (term *terminal) has(words string) bool {
	return strings.Contains(squeezed(term.screen()), squeezed(words))
}

func (term *terminal) screen() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.fresh.String()
}

// until waits until some words were written since the last key.
func (term *terminal) until(words string) {
	term.t.Helper()
	term.wait(strconv.Quote(words), func() bool { return term.has(words) })
}

// wait waits for something on the screen. An agent may write only differences; it rewrites
// everything when the window's size changes.
func (term *terminal) wait(what string, come func() bool) {
	term.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	resize := time.NewTicker(2 * time.Second)
	defer resize.Stop()
	for late := time.After(windowPatience); !come(); {
		select {
		case <-tick.C:
		case <-resize.C:
			term.redraw()
		case <-late:
			term.t.Fatalf("%s does not come; there is\n%s", what, tail(control.ReplaceAllString(term.screen(), " ")))
		}
	}
}

// redraw changes the window's size, so that the agent rewrites everything.
func (term *terminal) redraw() {
	term.t.Helper()
	term.rows = 2*rows - 1 - term.rows
	if err := pty.Setsize(term.tty, &pty.Winsize{Rows: term.rows, Cols: columns}); err != nil {
		term.t.Error(err)
	}
}

// pressUntil presses a key, and repeats it until done, as a person does: an agent may ignore
// a key that comes right after the prompt for it. It repeats the key only after the agent has
// redrawn that prompt, which shown reports, since a busy agent would apply a second key to
// what it shows next.
func (term *terminal) pressUntil(key string, shown, done func() bool) {
	term.t.Helper()
	term.press(key)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	again := time.NewTicker(5 * time.Second)
	defer again.Stop()
	redrawing := false
	for late := time.After(windowPatience); ; {
		still := redrawing && shown() // before done, since what comes next is shown once it is done
		if done() {
			return
		}
		if still {
			redrawing = false
			again.Reset(5 * time.Second)
			term.press(key)
		}
		select {
		case <-tick.C:
		case <-again.C:
			term.clear()
			term.redraw()
			redrawing = true
		case <-late:
			term.t.Fatalf("nothing comes of the key %q; there is\n%s", key, tail(control.ReplaceAllString(term.screen(), " ")))
		}
	}
}

// press presses a key.
func (term *terminal) press(key string) {
	term.t.Helper()
	term.clear()
	term.write(key)
}

// clear forgets what was written so far.
func (term *terminal) clear() {
	term.mu.Lock()
	defer term.mu.Unlock()
	term.fresh.Reset()
}

func (term *terminal) write(key string) {
	term.t.Helper()
	if _, err := io.WriteString(term.tty, key); err != nil {
		term.t.Error(err)
	}
}

// end closes the window, and waits for the agent. Its remaining children end when their
// streams do.
func (term *terminal) end() {
	_ = term.cmd.Process.Signal(syscall.SIGTERM)
	_ = term.tty.Close()
	kill := time.AfterFunc(patience, func() { _ = term.cmd.Process.Kill() })
	_ = term.cmd.Wait()
	kill.Stop()
	<-term.eof
}
