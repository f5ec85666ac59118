//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/test/screen"
)

// A step of a guide is something that its reader saves or runs.
type step struct {
	line  int      // in the guide, from 1
	save  string   // the path of a file to save, or ""
	text  string   // the file's contents, or the commands
	shown []string // what is then on the screen, in this order
}

var (
	savesAs = regexp.MustCompile("(?s)Save this as\\s+`([^`]+)`:\\s*$")
	answers = regexp.MustCompile(`^(….*|(?:\d+ runs?: )?\[o\]nce .*)(: )(\S+)$`) // the end of a question, and what the reader types
)

// steps returns what the reader of a guide does. A block in sh is run, a block after
// "Save this as" is saved, and a block in text is what the commands before it show,
// together with what the reader types; "…" in it stands for anything. Other blocks
// are only to read.
func steps(t *testing.T, guide string) (all []step) {
	t.Helper()
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	var before []string // the paragraph before a block
	lines := strings.Split(string(text), "\n")
	for i := 0; i < len(lines); i++ {
		language, fenced := strings.CutPrefix(lines[i], "```")
		if !fenced {
			if lines[i] != "" || i+1 < len(lines) && !strings.HasPrefix(lines[i+1], "```") {
				before = append(before, lines[i])
			}
			continue
		}
		from := i + 1
		for i++; i < len(lines) && lines[i] != "```"; i++ {
		}
		if i == len(lines) {
			t.Fatalf("%s:%d: the block does not end", guide, from)
		}
		body := lines[from:i]
		saved := savesAs.FindStringSubmatch(strings.Join(before, "\n"))
		switch {
		case saved != nil:
			all = append(all, step{line: from, save: saved[1], text: strings.Join(body, "\n") + "\n"})
		case language == "sh":
			all = append(all, step{line: from, text: strings.Join(body, "\n")})
		case language == "text" && len(all) > 0 && all[len(all)-1].save == "":
			all[len(all)-1].shown = append(all[len(all)-1].shown, body...)
		}
		before = nil
	}
	return all
}

// The guides work as they are written, for a person at a terminal who follows them
// step by step.
func TestGuidesWork(t *testing.T) {
	for _, program := range []string{"git", "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s: not on this system, and the guides use it", program)
		}
	}
	for name, least := range map[string]int{"tutorial.md": 13, "how-to/write-a-tool.md": 4, "how-to/share-packs-in-a-team.md": 4} {
		t.Run(name, func(t *testing.T) {
			guide := filepath.Join("..", "..", "docs", filepath.FromSlash(name))
			home, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			env := append(os.Environ(), "HOME="+home, "NO_COLOR=1", "TERM=dumb", "GIT_CONFIG_NOSYSTEM=1",
				"XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=", "XDG_RUNTIME_DIR=")
			report, err := func() ([]byte, error) {
				cmd := exec.Command("packs-mcp", "doctor")
				cmd.Env, cmd.Dir = env, home
				return cmd.CombinedOutput()
			}()
			if err != nil || strings.Contains(string(report), "level none") {
				t.Skipf("sandbox: nothing can be confined here, so the guides' programs do not run\n%s", report)
			}
			all := steps(t, guide)
			if len(all) < least {
				t.Fatalf("%s has %d steps, want at least %d", guide, len(all), least)
			}
			for _, s := range all {
				if s.save != "" {
					at := filepath.Join(home, strings.TrimPrefix(s.save, "~/"))
					if err := os.WriteFile(at, []byte(s.text), 0o644); err != nil {
						t.Fatalf("%s:%d: %v", guide, s.line, err)
					}
					continue
				}
				t.Logf("%s:%d: %s", guide, s.line, s.text)
				tty := screen.Program(t, env, home, "sh", "-e", "-c", s.text+"\necho 'that was all'")
				for _, line := range s.shown {
					m := answers.FindStringSubmatch(line)
					if m != nil {
						line = m[1] + m[2]
					}
					for part := range strings.SplitSeq(line, "…") {
						if part = strings.TrimSpace(part); part != "" {
							tty.Until(part)
						}
					}
					if m != nil {
						tty.Enter(m[3] + "\r")
					}
				}
				tty.Until("that was all")
				if status := tty.Ended(); status != 0 {
					t.Fatalf("%s:%d: status %d", guide, s.line, status)
				}
			}
		})
	}
}
