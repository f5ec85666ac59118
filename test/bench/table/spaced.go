package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/test/bubble"
)

const (
	spacing      = 50 * time.Millisecond // before each call, as clients make them
	spacedRounds = 100
	// spacedAttempts is how often a failing call is tried.
	spacedAttempts = 5
	projectFiles   = 10_000
)

// A spacedProgram is a program that is run in every way.
type spacedProgram struct {
	tool   string // the tool that runs it
	argv   []string
	budget float64 // the budget, as a multiple of bubblewrap's own run
}

// spacedPrograms returns the programs that this machine has.
func spacedPrograms() []spacedProgram {
	return slices.DeleteFunc([]spacedProgram{
		{"true", []string{"/bin/true"}, 1.7},
		{"python", []string{"/usr/bin/python3", "-c", "pass"}, 1.4},
	}, func(p spacedProgram) bool {
		_, err := os.Stat(p.argv[0])
		return err != nil
	})
}

// projectTool runs the first program in the project.
const projectTool = "project"

// spacedPack is the name of the pack that has the tools.
const spacedPack = "spaced"

// measureSpaced measures runs from the call to its answer, with a pause before each. Calls
// in quick succession would hide what the kernel does only in quiet moments, such as waiting
// until every processor was idle.
func (b *bench) measureSpaced() (_ []*table, err error) {
	dir, err := os.MkdirTemp(b.dir, "spaced-")
	if err != nil {
		return nil, err
	}
	pack, project, workspace := filepath.Join(dir, "packs", spacedPack), filepath.Join(dir, "project"), filepath.Join(dir, "workspace")
	if err := errors.Join(writeSpacedPack(pack), writeProject(project), os.Mkdir(workspace, 0o755)); err != nil {
		return nil, err
	}
	builds := []string{b.ours}
	if b.base != "" {
		builds = append(builds, b.base)
	}
	var servers []*client
	defer func() {
		for _, s := range servers {
			err = errors.Join(err, s.stop())
		}
	}()
	for _, build := range builds {
		s, err := b.spacedServer(build, filepath.Dir(pack), project)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", build, err)
		}
		servers = append(servers, s)
	}
	bwrap, err := bubble.Path()
	if err != nil {
		b.say("bubblewrap is not on this machine, so nothing is compared with it: %v", err)
	}
	level, err := spacedLevel(servers[0])
	if err != nil {
		return nil, err
	}
	who := "as another user than root"
	if os.Getuid() == 0 {
		who = "as root"
	}
	t := &table{
		title: fmt.Sprintf("A run of a program, calls %v apart, %s", spacing, who),
		about: fmt.Sprintf("Over stdio, from the call to its answer, under an answer for the chat; level %s.\n"+
			"In turns; of %d each. The base is the build that -base names. CPU: of the server without its helpers.", level, spacedRounds),
		head: []string{"", "median", "95 of 100", "CPU", "to plain", "to bubblewrap", "over no project", "budget", ""},
	}
	for i, program := range spacedPrograms() {
		if err := b.addSpaced(t, spaced{program, servers, bwrap, workspace, pack, i == 0}); err != nil {
			return nil, err
		}
	}
	return []*table{t}, nil
}

// A spaced is one program with everything that runs it.
type spaced struct {
	program         spacedProgram
	servers         []*client
	bwrap           string // empty: not on this machine
	workspace, pack string
	project         bool // also run it in the project
}

// addSpaced measures one program, and adds the results to the table.
func (b *bench) addSpaced(t *table, s spaced) error {
	what := spoken(s.program.argv)
	apart := func(do func(int, *times) error) func(int, *times) error {
		return func(i int, t *times) error {
			if err := b.pause(spacing); err != nil {
				return err
			}
			return do(i, t)
		}
	}
	ways := []*way{{name: "fork and exec of " + what, do: apart(process(s.workspace, s.program.argv))}}
	var under, alone *way
	if s.bwrap != "" {
		under = &way{name: "bubblewrap's own run of " + what, do: apart(process(s.workspace, bubble.Args(s.bwrap, s.workspace, s.pack, s.program.argv...)))}
		ways = append(ways, under)
	}
	projects := map[*way]*way{} // :: a run in the project → the same without it
	for i, server := range s.servers {
		of := ""
		if i > 0 {
			of = ", the base"
		}
		run := func(tool string) func(int, *times) error {
			args := map[string]any{"pack_id": spacedPack, "tool": tool, "arguments": map[string]any{}}
			return apart(func(_ int, t *times) (err error) {
				// Older builds fail if another server starts and removes their control group.
				for range spacedAttempts {
					if err = server.timed(toolCall, args, t); err == nil {
						return nil
					}
				}
				return err
			})
		}
		alone = &way{name: "a run of " + what + of, do: run(s.program.tool), of: server}
		ways = append(ways, alone)
		if s.project {
			in := &way{name: fmt.Sprintf("a run of %s in a project of %s files%s", what, count(projectFiles), of), do: run(projectTool), of: server}
			ways = append(ways, in)
			projects[in] = alone
		}
	}
	if err := turns(spacedRounds, ways); err != nil {
		return err
	}
	for _, w := range ways {
		median := w.times.median()
		toBubble, over, mark := none, none, []string{"", ""}
		if under != nil {
			r := ratio(median, under.times.median())
			toBubble = fold(r)
			if w.of != nil && projects[w] == nil {
				mark = budget{s.program.budget, fmt.Sprintf("%.1f × bubblewrap", s.program.budget)}.cells(r)
			}
		}
		if without := projects[w]; without != nil {
			more := median - without.times.median()
			over = ms(more)
			mark = budget{1, "1 ms over"}.cells(float64(more) / 1e6)
		}
		t.add(append([]string{w.name, ms(median), ms(w.times.at(95)), ms(w.cpu.median()), fold(ratio(median, ways[0].times.median())), toBubble, over}, mark...)...)
	}
	return nil
}

// spoken returns a command as people write it.
func spoken(argv []string) string {
	words := slices.Clone(argv)
	words[0] = filepath.Base(words[0])
	return strings.Join(words, " ")
}

// process starts a process, with two pipes as our runner does.
func process(dir string, argv []string) func(int, *times) error {
	return func(_ int, t *times) error {
		cmd := exec.Command(argv[0], argv[1:]...)
		var out, problems bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &problems
		begin := time.Now()
		err := cmd.Run()
		*t = append(*t, time.Since(begin))
		if err != nil {
			return fmt.Errorf("%s: %w: %.300s", argv[0], err, problems.Bytes())
		}
		return nil
	}
}

// writeSpacedPack writes a pack with a tool for each program.
func writeSpacedPack(dir string) error {
	type command struct {
		Program string   `json:"program"`
		Args    []string `json:"args,omitempty"`
		Cwd     string   `json:"cwd,omitempty"`
	}
	type tool struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		InputSchema map[string]any `json:"inputSchema"`
		Command     command        `json:"command"`
	}
	var all []tool
	add := func(name string, c command) {
		all = append(all, tool{name, "Runs " + c.Program + ".", map[string]any{"type": "object"}, c})
	}
	for i, p := range spacedPrograms() {
		c := command{Program: p.argv[0], Args: p.argv[1:]}
		add(p.tool, c)
		if i == 0 {
			c.Cwd = "project"
			add(projectTool, c)
		}
	}
	tools, err := json.Marshal(map[string]any{"tools": all})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: "+spacedPack+"\ndescription: Runs programs.\n---\nRuns programs.\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "tools.json"), tools, 0o644),
	)
}

// writeProject writes a project with a hundred files in each folder.
func writeProject(dir string) error {
	for i := range projectFiles {
		folder := filepath.Join(dir, strconv.Itoa(i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(folder, 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(folder, strconv.Itoa(i)), []byte("x"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// spacedServer starts a server with the pack, whose tools are allowed for the chat and have
// run once.
func (b *bench) spacedServer(program, packs, project string) (*client, error) {
	home, err := b.home()
	if err != nil {
		return nil, err
	}
	c, err := b.start(command{
		args: []string{program, "serve", "--packs", packs, "--project", project},
		env:  append(environ(), "HOME="+home, "PACKS_MCP_HOME="+home, "PACKS_MCP_LOG_LEVEL=error"),
	})
	if err != nil {
		return nil, err
	}
	_, err = c.open()
	if err == nil {
		err = c.timed(toolOn, map[string]any{"pack_id": spacedPack}, nil)
	}
	for _, p := range spacedPrograms() {
		if err == nil {
			err = c.timed(toolCall, map[string]any{"pack_id": spacedPack, "tool": p.tool, "arguments": map[string]any{}}, nil)
		}
	}
	if err == nil {
		err = c.timed(toolCall, map[string]any{"pack_id": spacedPack, "tool": projectTool, "arguments": map[string]any{}}, nil)
	}
	if err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// spacedLevel runs the first program, and returns its level.
func spacedLevel(c *client) (string, error) {
	raw, _, err := c.call(toolCall, map[string]any{"pack_id": spacedPack, "tool": spacedPrograms()[0].tool, "arguments": map[string]any{}})
	if err != nil {
		return "", err
	}
	var r struct{ Sandbox string }
	return r.Sandbox, json.Unmarshal(raw, &r)
}
