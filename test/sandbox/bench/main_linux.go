// Command bench measures a confined start beside a plain one and beside bubblewrap with the
// same folders, and prints medians and ratios. All of them alternate in one loop, since
// machines differ and are shared; ratios last longer than milliseconds.
//
// Our part is a complete [runner.Runner.Run]: it reads the program and compares its digest,
// keeps its output, and examines the workspace before and after, which the others do not do.
// The row "runner, level none" shows the cost of that. The gate, its audit log and looking
// up the program are not measured. A row with "first run" has no helper ready, as after a
// pause of half a minute.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/changes"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/runner"
	"github.com/packs-mcp/packs-mcp/test/bubble"

	// A helper is this program again. It should initialise as much as the server's helper
	// does.
	_ "github.com/packs-mcp/packs-mcp/internal/server"
	_ "github.com/packs-mcp/packs-mcp/internal/server/httpd"
)

func main() {
	n := flag.Int("n", 200, "how often each is started")
	resident := flag.String("resident", "10,1024", "sizes of this process in MiB, in rising order")
	apart := flag.Duration("apart", 0, "a pause before each start, as clients make them; what is in quiet moments costs more")
	only := flag.String("only", "", "measure only the ways whose names have one of these texts between commas in them")
	over := flag.Bool("overshoot", false, "measure how far runs get past the bounds of folders on disk, and nothing else")
	flag.Parse()
	measure := func(w io.Writer) error { return run(w, *n, *resident, *apart, strings.Split(*only, ",")) }
	if *over {
		measure = measureOvershoot
	}
	if err := measure(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(w io.Writer, n int, resident string, apart time.Duration, only []string) error {
	dir, err := os.MkdirTemp("", "bench-sandbox-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	b := &bench{n: n, apart: apart, pack: filepath.Join(dir, "pack"), workspace: filepath.Join(dir, "workspace")}
	for _, d := range []string{b.pack, b.workspace} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	b.env = sandbox.BaseEnv(os.Environ(), sandbox.EnvOptions{Home: b.workspace, Exclude: []string{b.pack, b.workspace}})
	ways, notes := b.ways()
	ways = slices.DeleteFunc(ways, func(w way) bool {
		return !slices.ContainsFunc(only, func(text string) bool { return strings.Contains(w.name, text) })
	})
	fmt.Fprintf(w, "%d processors, n = %d each, in turns; medians\n", runtime.NumCPU(), n)
	for _, note := range notes {
		fmt.Fprintln(w, note)
	}

	var ballast [][]byte
	defer func() {
		for _, m := range ballast {
			_ = unix.Munmap(m)
		}
	}()
	for field := range strings.SplitSeq(resident, ",") {
		mib, err := strconv.Atoi(field)
		if err != nil {
			return fmt.Errorf("size %q: %w", field, err)
		}
		if ballast, err = grow(ballast, mib<<20); err != nil {
			return err
		}
		for _, target := range [][]string{{"true"}, {"/usr/bin/python3", "-c", "pass"}} {
			if _, err := exec.LookPath(target[0]); err != nil {
				fmt.Fprintf(w, "\nskipped: %s is not on this machine\n", target[0])
				continue
			}
			if err := b.measure(w, ways, target); err != nil {
				return err
			}
		}
	}
	return nil
}

// grow makes this process as large as size, in ordinary pages, like a heap that was in use
// for a while.
func grow(ballast [][]byte, size int) ([][]byte, error) {
	have, err := residentSize()
	if err != nil || have >= size {
		return ballast, err
	}
	m, err := unix.Mmap(-1, 0, size-have, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return ballast, err
	}
	_ = unix.Madvise(m, unix.MADV_NOHUGEPAGE) // a kernel without huge pages does not support it
	for i := 0; i < len(m); i += os.Getpagesize() {
		m[i] = 1
	}
	return append(ballast, m), nil
}

// residentSize returns how many bytes of this process are in memory.
func residentSize() (int, error) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 2 {
		return 0, fmt.Errorf("/proc/self/statm is %q", statm)
	}
	pages, err := strconv.Atoi(fields[1])
	return pages * os.Getpagesize(), err
}

type bench struct {
	n               int
	apart           time.Duration
	pack, workspace string
	env             []string
}

// A way starts a program and returns when it has ended.
type way struct {
	name  string
	start func(program.Program, []string) error // with its argv
}

// ways returns the ways that this machine supports, and notes about them.
func (b *bench) ways() (ways []way, notes []string) {
	ways = []way{{"plain exec", b.plain}}
	lookup := new(program.Lookuper)
	kept, err := changes.Open(context.Background(), changes.Options{Dir: filepath.Join(filepath.Dir(b.pack), "changes")})
	if err != nil {
		notes = append(notes, "projects are read-only: "+err.Error())
	}
	levels := []sandbox.Level{sandbox.LevelNone, sandbox.LevelPartial, sandbox.LevelFull}
	for i, level := range levels {
		r := runner.New(runner.Options{Lookuper: lookup, Skip: levels[i+1:], Changes: kept})
		report := r.Probe(context.Background())
		name := "runner, level " + level.String()
		if report.Level != level {
			notes = append(notes, fmt.Sprintf("skipped: %s is not on this machine", name))
			for _, trial := range report.Trials {
				if trial.Problem != "" && trial.Level == level {
					notes = append(notes, "  "+trial.Problem)
				}
			}
			continue
		}
		for _, trial := range report.Trials {
			if trial.Level == level && trial.Problem == "" && len(trial.Means) > 0 {
				notes = append(notes, fmt.Sprintf("%s: %s", name, strings.Join(trial.Means, ", ")))
			}
		}
		ways = append(ways, way{name, func(p program.Program, argv []string) error { return b.confined(r, level, p, argv) }})
		if level == sandbox.LevelFull {
			if project, err := b.project(); err != nil {
				notes = append(notes, fmt.Sprintf("skipped: the project of %d files: %v", projectFiles, err))
			} else {
				in := b.layered(r, project)
				ways = append(ways, way{fmt.Sprintf("%s, in a project of %d files", name, projectFiles), in})
			}
			// A Runner has a helper ready for the next run, and none after Close.
			cold := runner.New(runner.Options{Lookuper: lookup})
			cold.Probe(context.Background())
			cold.Close()
			ways = append(ways, way{name + ", first run", func(p program.Program, argv []string) error { return b.confined(cold, level, p, argv) }})
		}
	}
	bwrap, err := bubble.Path()
	if err != nil {
		return ways, append(notes, "skipped: bubblewrap is not on this machine (the package is called bubblewrap)")
	}
	under := func(_ program.Program, argv []string) error { return b.bubblewrap(bwrap, argv) }
	if err := under(program.Program{}, []string{"true"}); err != nil {
		return ways, append(notes, fmt.Sprintf("skipped: bubblewrap does not work on this machine: %v", err))
	}
	return append(ways, way{bubblewrap, under}), notes
}

const bubblewrap = "bubblewrap, same mounts"

// exec starts a program as the runner does at level none: two pipes, a new session, and an
// end of file on standard input.
func (b *bench) exec(argv []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = b.workspace, b.env, &stdout, &stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", argv[0], err, stderr.Bytes())
	}
	return nil
}

func (b *bench) plain(_ program.Program, argv []string) error { return b.exec(argv) }

// projectFiles is how many files the project has.
const projectFiles = 10_000

// project creates a project with a hundred files in each folder.
func (b *bench) project() (string, error) {
	dir := filepath.Join(filepath.Dir(b.pack), "project")
	for i := range projectFiles {
		folder := filepath.Join(dir, strconv.Itoa(i/100))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(folder, strconv.Itoa(i)), []byte("x"), 0o644); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// layered starts a program in a project that it may change. It determines the layer each
// time, as the server does before it asks.
func (b *bench) layered(r *runner.Runner, project string) func(program.Program, []string) error {
	return func(program program.Program, argv []string) error {
		res, err := r.Run(context.Background(), sandbox.Policy{
			ReadOnly: []string{b.pack}, Writable: []string{b.workspace}, Layers: r.Layers(context.Background(), []string{project}),
		}, sandbox.Command{Program: program, Args: argv[1:], Dir: project, Env: b.env, Workspace: b.workspace, RunID: "bench"})
		if err != nil {
			return err
		}
		if res.ExitCode != 0 || res.ChangesProblem != "" {
			return fmt.Errorf("%s ended with status %d: %s%s", argv[0], res.ExitCode, res.Stderr.Bytes(), res.ChangesProblem)
		}
		return nil
	}
}

func (b *bench) confined(r *runner.Runner, level sandbox.Level, program program.Program, argv []string) error {
	res, err := r.Run(context.Background(),
		sandbox.Policy{ReadOnly: []string{b.pack}, Writable: []string{b.workspace}},
		sandbox.Command{Program: program, Args: argv[1:], Dir: b.workspace, Env: b.env, Workspace: b.workspace, RunID: "bench"})
	switch {
	case err != nil:
		return err
	case res.ExitCode != 0 || res.Level != level:
		return fmt.Errorf("%s ended with status %d at level %v: %s", argv[0], res.ExitCode, res.Level, res.Stderr.Bytes())
	}
	return nil
}

// bubblewrap starts a program under bubblewrap.
func (b *bench) bubblewrap(bwrap string, argv []string) error {
	return b.exec(bubble.Args(bwrap, b.workspace, b.pack, argv...))
}

// measure starts argv in every way, alternating, n times.
func (b *bench) measure(w io.Writer, ways []way, argv []string) error {
	program, err := program.Lookup(argv[0], program.LookupOptions{Path: os.Getenv("PATH")})
	if err != nil {
		return err
	}
	took := make([][]time.Duration, len(ways))
	const warm = 5
	for i := range warm + b.n {
		for k := range ways {
			k = (k + i) % len(ways) // change the order, so that none always follows the same one
			time.Sleep(b.apart)
			begin := time.Now()
			if err := ways[k].start(program, argv); err != nil {
				return fmt.Errorf("%s: %w", ways[k].name, err)
			}
			if i >= warm {
				took[k] = append(took[k], time.Since(begin))
			}
		}
	}
	size, err := residentSize()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n%s, from a process of %d MiB\n", strings.Join(argv, " "), size>>20)
	medians := make([]time.Duration, len(ways))
	beside := -1
	for k := range ways {
		slices.Sort(took[k])
		medians[k] = took[k][len(took[k])/2]
		if ways[k].name == bubblewrap {
			beside = k
		}
	}
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "median\t90 of 100\tadded\tto plain\tto bubblewrap\t \t")
	ms := func(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d)/1e6) }
	for k, way := range ways {
		toBubble := "-"
		if beside >= 0 {
			toBubble = fmt.Sprintf("%.2f", float64(medians[k])/float64(medians[beside]))
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%.2f\t%s\t  %s\n", ms(medians[k]), ms(took[k][len(took[k])*9/10]),
			ms(medians[k]-medians[0]), float64(medians[k])/float64(medians[0]), toBubble, way.name)
	}
	return tab.Flush()
}
