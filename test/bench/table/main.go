// Command table measures packs-mcp beside well-known baselines, alternating in one run, and
// prints the results as tables, with the project's budgets and whether each was met. The
// baselines are a bare server with the same library, walking the packs' folders and reading
// the heads of their documents, and a plain start of a program. Machines differ and are
// shared, so ratios last longer than milliseconds.
//
// It asserts nothing: its status is 0 however slow something was, and 1 only if something
// could not be measured at all.
//
// Everything that it starts uses a home in one folder, which is removed at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/packs-mcp/packs-mcp/test/plant"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// A bench is the state that all measurements share.
type bench struct {
	ctx      context.Context // of the whole run
	progress io.Writer
	dir      string // for all files that are written
	ours     string // the program to measure
	base     string // another build of it, for section spaced; empty: none
	bare     string // the bare server
	self     string
	sizes    []int // numbers of packs, ascending
	rounds   int
	edits    int
	idle     time.Duration
	packs    map[int]*collection
	ready    map[int]string // :: number of packs → a home with their index
	servers  *company       // nil until first used
}

// A collection is the result of plant.
type collection struct {
	root string
	made []string // the packs' directories
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	markdown := flags.Bool("markdown", false, "print the tables as Markdown")
	sizes := flags.String("packs", "10,100,1000,10000", "numbers of packs")
	only := flags.String("only", "start,memory,calls,runs,rate,spaced,edits", "what is measured")
	rounds := flags.Int("rounds", 16, "how often each server is started")
	edits := flags.Int("edits", 40, "how many edits of each kind")
	idle := flags.Duration("idle", 10*time.Second, "how long a server is left alone before it counts as idle")
	tmp := flags.String("dir", "", "a folder for what is written (default: the system's)")
	ours := flags.String("program", "", "the program to measure (default: built from here)")
	base := flags.String("base", "", "another build, measured beside it by section spaced")
	bare := flags.String("bare", "", "the bare server (default: built from here)")
	walk := flags.String("walk", "", "walk this folder, say how long that took, and do nothing else")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *walk != "" {
		return walkAndTell(stdout, *walk)
	}
	b := &bench{
		ctx: ctx, progress: stderr, ours: *ours, base: *base, bare: *bare, rounds: max(*rounds, 1), edits: max(*edits, 1), idle: *idle,
		packs: make(map[int]*collection), ready: make(map[int]string),
	}
	for field := range strings.SplitSeq(*sizes, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return fmt.Errorf("number of packs %q: want a number above 0", field)
		}
		b.sizes = append(b.sizes, n)
	}
	slices.Sort(b.sizes)
	wanted, err := wantedOf(*only)
	if err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp(*tmp, "packs-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.servers.dismiss(), os.RemoveAll(b.dir)) }()
	if b.dir, err = filepath.EvalSymlinks(b.dir); err != nil {
		return err
	}
	begin := time.Now()
	if err := b.prepare(); err != nil {
		return err
	}
	print := (*table).text
	if *markdown {
		print = (*table).markdown
	}
	fmt.Fprintf(stdout, "%d processors, %s/%s, %s\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	for _, s := range wanted {
		b.say("%s: measuring %s", time.Since(begin).Round(time.Second), s.name)
		tables, err := s.measure(b)
		if err != nil {
			return fmt.Errorf("measuring %s: %w", s.name, err)
		}
		for _, t := range tables {
			print(t, stdout)
		}
	}
	b.say("%s: done", time.Since(begin).Round(time.Second))
	return nil
}

// A section is something that can be measured separately.
type section struct {
	name    string
	measure func(*bench) ([]*table, error)
}

// wantedOf returns the named sections in the order of measurement: those that change packs
// come last.
func wantedOf(names string) ([]section, error) {
	all := []section{
		{"start", (*bench).measureStart}, {"memory", (*bench).measureMemory}, {"calls", (*bench).measureCalls},
		{"runs", (*bench).measureRuns}, {"rate", (*bench).measureRates}, {"spaced", (*bench).measureSpaced}, {"edits", (*bench).measureEdits},
	}
	var wanted []section
	asked := strings.Split(names, ",")
	for _, s := range all {
		if i := slices.Index(asked, s.name); i >= 0 {
			wanted = append(wanted, s)
			asked = slices.Delete(asked, i, i+1)
		}
	}
	if len(asked) > 0 {
		return nil, fmt.Errorf("there is nothing called %q to measure", asked[0])
	}
	return wanted, nil
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.progress, format+"\n", args...) }

// largest returns the largest number of packs.
func (b *bench) largest() int { return b.sizes[len(b.sizes)-1] }

// prepare builds the programs as they are shipped, and writes the packs.
func (b *bench) prepare() (err error) {
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	const module = "github.com/packs-mcp/packs-mcp/"
	if b.ours == "" {
		if b.ours, err = b.build("packs-mcp", module+"cmd/packs-mcp"); err != nil {
			return err
		}
	}
	if b.bare == "" {
		if b.bare, err = b.build("bare", module+"test/bench/bare"); err != nil {
			return err
		}
	}
	for _, program := range []*string{&b.ours, &b.base, &b.bare} {
		if *program == "" {
			continue
		}
		if *program, err = filepath.Abs(*program); err != nil {
			return err
		}
	}
	for _, n := range b.sizes {
		b.say("writing %d packs", n)
		c := &collection{root: filepath.Join(b.dir, fmt.Sprintf("packs-%d", n))}
		if c.made, err = plant.Write(c.root, 1, n); err != nil {
			return err
		}
		b.packs[n] = c
	}
	// Files that changed less than two seconds ago are not remembered.
	return b.pause(2 * time.Second)
}

func (b *bench) build(name, pkg string) (string, error) {
	out := filepath.Join(b.dir, name)
	cmd := exec.CommandContext(b.ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building %s: %w\n%s", pkg, err, text)
	}
	return out, nil
}

// pause waits, unless the run is interrupted.
func (b *bench) pause(d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
}

// home creates a folder for all files of one server.
func (b *bench) home() (string, error) { return os.MkdirTemp(b.dir, "home-") }

// serve returns the command that starts a server with n packs and this home. more names
// further folders of packs.
func (b *bench) serve(n int, home string, more ...string) command {
	c := command{args: []string{b.ours, "serve", "--packs", b.packs[n].root}}
	for _, dir := range more {
		c.args = append(c.args, "--packs", dir)
	}
	c.env = environ()
	// Programs run as confined as possible here, perhaps not at all. Limits on pending work
	// are not part of the measurement.
	c.env = append(c.env, "HOME="+home, "PACKS_MCP_HOME="+home, "PACKS_MCP_LOG_LEVEL=error", "PACKS_MCP_SANDBOX_REQUIRE=none")
	return c
}

// environ returns the environment without this program's settings.
func environ() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PACKS_MCP_") })
}

// indexed returns a home where a server of n packs left its index.
func (b *bench) indexed(n int) (string, error) {
	if home, ok := b.ready[n]; ok {
		return home, nil
	}
	home, err := b.home()
	if err != nil {
		return "", err
	}
	for wait := time.Second; wait < time.Minute; wait *= 2 {
		c, err := b.start(b.serve(n, home))
		if err != nil {
			return "", err
		}
		_, err = c.open()
		// A server that watches the folders writes its index when it ends.
		if err := errors.Join(err, b.pause(wait), c.stop()); err != nil {
			return "", err
		}
		if kept, _ := filepath.Glob(filepath.Join(home, "index", "*")); len(kept) > 0 {
			b.ready[n] = home
			return home, nil
		}
	}
	return "", fmt.Errorf("a server of %d packs left no index", n)
}
