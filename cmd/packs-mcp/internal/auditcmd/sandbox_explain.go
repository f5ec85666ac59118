package auditcmd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/paths"
	"github.com/packs-mcp/packs-mcp/internal/sandbox/program"
)

func (a *app) sandboxCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "sandbox",
		Short:   "Find out what the sandbox refused, and why",
		Example: "  packs-mcp sandbox explain",
		Args:    cli.Misuse(cobra.NoArgs),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var asJSON bool
	explain := &cobra.Command{
		Use:   "explain [RUN]",
		Short: "Say what a run was refused, and which line of the configuration allows it",
		Long: `Say what a run was refused, by which rule of the sandbox, and which line of the configuration
allows it, if any may. RUN is the id of a run, or the beginning of one; without it, the last run
that failed is explained.

It goes by the audit log: what the run could reach, how it ended, and the errors of the system that
its program wrote about. A program can write what it likes, and need not write anything.`,
		Example: "  packs-mcp sandbox explain\n  packs-mcp sandbox explain run-5XKQ",
		Args:    cli.Needs(0, 1, ""),
		ValidArgsFunction: cli.First(a.completeEntries(func(e audit.Entry) string {
			if e.Event != audit.EventRunEnd {
				return ""
			}
			return e.Run
		})),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.explainRun(strings.Join(args, ""), asJSON)
		},
	}
	cli.JSONFlag[refusedRun](a.Env, explain, &asJSON)
	a.ConfigFlag(explain)
	cmd.AddCommand(explain)
	return cmd
}

// A refusedRun is what is known about a run, and what it was refused.
type refusedRun struct {
	Run      string        `json:"run"`
	Kind     string        `json:"kind"` // run or exec
	Pack     string        `json:"pack"`
	Tool     string        `json:"tool,omitempty"` // the declared name, of a run
	Sandbox  string        `json:"sandbox"`
	Network  string        `json:"network"`
	Ended    string        `json:"ended"`
	Reads    []string      `json:"reads"`
	Writes   []string      `json:"writes"`
	Review   string        `json:"review,omitempty"` // what demands that all of its changes wait
	Limits   *audit.Limits `json:"limits,omitempty"`
	Findings []refusal     `json:"findings"`
}

// A refusal is one thing that the sandbox refused to a run.
type refusal struct {
	What  string `json:"what"`            // what happened to the program
	Path  string `json:"path,omitempty"`  // the path that the program named
	Why   string `json:"why"`             // the sandbox's rule, or why no rule is involved
	Allow string `json:"allow,omitempty"` // YAML that allows it; empty: nothing can, or the sandbox is not the cause
	Where string `json:"where,omitempty"` // where Allow belongs
}

const (
	inConfig = "the configuration"
	inTool   = "the tool's declaration in the pack"
)

func (a *app) explainRun(id string, asJSON bool) error {
	cfg, _, err := a.Load()
	if err != nil {
		return err
	}
	path, err := a.logFile(cfg)
	if err != nil {
		return err
	}
	start, end, err := a.findRun(path, id)
	if err != nil {
		return err
	}
	home, _ := os.UserHomeDir()
	x := explainer{start: start, end: end, home: home, protected: append(slices.Concat(cli.OwnFiles(cfg), cli.SecretFiles(cfg)), cfg.Audit.Path), cfg: cfg}
	r := x.explain()
	if asJSON {
		return cli.PrintJSON(a.Stdout, r)
	}
	printRefused(a.Screen(a.Stdout), r)
	return nil
}

// findRun returns the two log lines of a run: the run whose id is id or begins with
// it or, without an id, the last that failed.
func (a *app) findRun(path, id string) (start, end audit.Entry, err error) {
	starts := make(map[string]audit.Entry)
	var found []audit.Entry // the last lines of runs
	var runs []string       // their ids
	for line, err := range audit.Read(path) {
		if e, ok := errors.AsType[*audit.LineError](err); ok {
			a.warnLine(e)
			continue
		}
		if err != nil {
			return start, end, noLog(path, err)
		}
		e := line.Entry
		if e.Event == audit.EventRunEnd {
			runs = append(runs, safetext.Line(e.Run))
		}
		switch {
		case id != "" && !strings.HasPrefix(e.Run, id):
		case e.Event == audit.EventRunStart:
			starts[e.Run] = e
		case e.Event == audit.EventRunEnd && id == "":
			if failed(e) {
				start, found = starts[e.Run], []audit.Entry{e}
			}
			delete(starts, e.Run)
		case e.Event == audit.EventRunEnd:
			if e.Run == id {
				return starts[e.Run], e, nil
			}
			found, start = append(found, e), starts[e.Run]
		}
	}
	switch {
	case len(found) == 1:
		return start, found[0], nil
	case len(found) > 1:
		return start, end, cli.WithHint(fmt.Errorf("%d runs begin with %s", len(found), safetext.Quote(id)), "give more of the id; see: packs-mcp audit show --event run.end")
	case id == "":
		return start, end, cli.WithHint(errors.New("no run in the audit log failed"), "name one: packs-mcp audit show --event run.end shows them")
	case len(starts) == 1:
		return start, end, cli.WithHint(fmt.Errorf("the run %s has no end in the audit log", safetext.Quote(id)), "it still runs, or its server was killed")
	default:
		return start, end, cli.WithHint(fmt.Errorf("the audit log has no run %s", safetext.Quote(id)), "%s", cli.Meant(id, runs, "see: packs-mcp audit show --event run.end"))
	}
}

// failed reports whether a run did not end well.
func failed(e audit.Entry) bool {
	return e.Error != "" || e.Cause != "" || e.Signal != "" || e.ExitCode == nil || *e.ExitCode != 0
}

// An explainer says why a run was refused something.
type explainer struct {
	start, end audit.Entry
	home       string
	protected  []string // this program's own files and folders
	cfg        *config.Config
}

func (x *explainer) explain() refusedRun {
	_, tool, _ := strings.Cut(x.end.Tool, "/") // METHOD/TOOL
	r := refusedRun{
		Run: x.end.Run, Kind: x.end.Kind, Pack: x.end.Pack, Tool: tool, Sandbox: cmp.Or(x.end.Sandbox, x.start.Sandbox), Network: cmp.Or(x.end.Network, x.start.Network),
		Ended: ending(x.end), Reads: append([]string{}, x.start.Reads...), Writes: append([]string{}, x.start.Writes...), Review: x.start.Review, Limits: x.start.Limits, Findings: []refusal{},
	}
	add := func(f refusal, ok bool) {
		if ok && !slices.Contains(r.Findings, f) {
			r.Findings = append(r.Findings, f)
		}
	}
	if x.end.Error != "" {
		add(refusal{What: x.end.Error, Why: "The program was not started, or its end is not known. packs-mcp doctor says what the sandbox can do here."}, true)
	}
	add(x.ended())
	for _, c := range x.end.Refused {
		add(x.complaint(c, tool))
	}
	return r
}

// limit returns the refusal for a limit of a run.
func (x *explainer) limit(what, name, of, value, more string) (refusal, bool) {
	why := fmt.Sprintf("The limit of %s is %s.", of, cmp.Or(value, "not in the log"))
	return refusal{What: what, Why: why, Allow: "limits:\n  " + name + ": " + more, Where: inConfig}, true
}

func (x *explainer) limits() audit.Limits {
	if x.start.Limits == nil {
		return audit.Limits{}
	}
	return *x.start.Limits
}

// ended explains a run that the sandbox, or a limit of the system, ended.
func (x *explainer) ended() (refusal, bool) {
	l := x.limits()
	switch cause := sandbox.Cause(x.end.Cause); {
	case cause == sandbox.CauseTimeout:
		f, _ := x.limit("stopped: it took too long", "timeout", "time", seconds(l.TimeoutMS), seconds(2*l.TimeoutMS))
		f.Why += " A tool can name its own timeout, up to sandbox.timeout_max."
		return f, true
	case cause == sandbox.CauseCPULimit, x.end.Signal == "SIGXCPU":
		return x.limit("stopped: it used too much processor time", "cpu", "processor time", seconds(l.CPUMS), seconds(2*l.CPUMS))
	case cause == sandbox.CauseFileSizeLimit, x.end.Signal == "SIGXFSZ":
		return x.limit("stopped: it wrote a file that is too large", "file_size", "a file", bytesText(l.FileSize), bytesText(2*l.FileSize))
	case cause == sandbox.CauseMemoryLimit && l.Together == 0: // in a container
		return x.limit("stopped: its processes together had too much memory", "memory", "memory of a container without limits.memory_together", bytesText(l.Memory), bytesText(2*l.Memory))
	case cause == sandbox.CauseMemoryLimit:
		return x.limit("stopped: its processes together had too much memory", "memory_together", "memory of all processes of a run", bytesText(l.Together), bytesText(2*l.Together))
	case cause == sandbox.CauseProcessLimit:
		return x.limit("stopped: it started too many processes", "processes", "processes", strconv.Itoa(l.Processes), strconv.Itoa(2*l.Processes))
	case cause == sandbox.CauseOutputLimit:
		return x.limit("stopped: it wrote too much output", "output_total", "output", bytesText(l.OutputSize), bytesText(2*l.OutputSize))
	case cause == sandbox.CauseWorkspaceLimit:
		return x.limit("it left too much in the workspace", "workspace", "a workspace", bytesText(l.Workspace), bytesText(2*l.Workspace))
	case cause == sandbox.CauseCacheLimit:
		return x.limit("stopped: it filled its cache", "cache", "a cache between runs, and twice that while one goes on,", bytesText(l.Cache), bytesText(2*l.Cache))
	case x.end.Signal == "SIGSYS":
		return refusal{What: "ended by SIGSYS", Why: "The program made a system call that the sandbox refuses. Nothing in the configuration allows that."}, true
	}
	return refusal{}, false
}

// complaint explains one error that the program wrote about.
func (x *explainer) complaint(text, tool string) (refusal, bool) {
	errno, rest, _ := strings.Cut(text, " ")
	verb, path, _ := strings.Cut(rest, " ")
	l := x.limits()
	switch errno {
	case sandbox.ErrorTooLarge:
		return x.limit("a file became too large", "file_size", "a file", bytesText(l.FileSize), bytesText(2*l.FileSize))
	case sandbox.ErrorFull:
		return x.limit("no space was left", "workspace", "a workspace, of /tmp and of /dev/shm at level full,", bytesText(l.Workspace), bytesText(2*l.Workspace))
	case sandbox.ErrorFiles:
		return x.limit("too many files were open", "open_files", "open files of a process", strconv.Itoa(l.OpenFiles), strconv.Itoa(2*l.OpenFiles))
	case sandbox.ErrorMemory:
		return x.limit("memory ran out", "memory", "memory of a process", bytesText(l.Memory), bytesText(2*l.Memory))
	case sandbox.ErrorAgain:
		return x.limit("a process could not be started", "processes", "processes", strconv.Itoa(l.Processes), strconv.Itoa(2*l.Processes))
	case sandbox.ErrorName, sandbox.ErrorNetwork:
		return x.network(), true
	case sandbox.ErrorNoCall:
		return refusal{What: "a system call is not there", Why: "The sandbox hides it, or this system does not have it. Nothing in the configuration allows it."}, true
	case sandbox.ErrorAccess, sandbox.ErrorPermitted, sandbox.ErrorReadOnly, sandbox.ErrorMissing:
		return x.path(errno, verb, path, tool)
	}
	return refusal{}, false
}

// network explains why the network could not be reached.
func (x *explainer) network() refusal {
	had := cmp.Or(x.end.Network, x.start.Network)
	f := refusal{What: "the network could not be reached", Why: fmt.Sprintf("The run had the network %q.", had)}
	switch {
	case x.end.Sandbox == sandbox.LevelNone.String(), had == sandbox.NetworkFull.String():
		f.Why = "The run had the whole network, so this was not the sandbox."
	case had == sandbox.NetworkHosts.String():
		f.Why = "The run could reach " + strings.Join(x.end.Hosts, ", ") + " by HTTP and TLS, through the proxy that its environment names, and nothing else."
		f.Allow, f.Where = "policy:\n  network:\n    hosts: [NAME:PORT]", inTool
	case x.end.Kind == string(call.KindExec):
		f.Why += " A command of the model's own gets no other; a tool that the pack declares can ask for one."
	default:
		f.Allow, f.Where = "policy:\n  network: full", inTool
	}
	return f
}

// path explains an error about a file or folder.
func (x *explainer) path(errno, verb, path, tool string) (refusal, bool) {
	f := refusal{Path: path, What: map[string]string{"change": "it could not change or make "}[verb]}
	f.What = cmp.Or(f.What, "it could not use ") + cmp.Or(path, "something")
	if path == "" {
		f = x.network()
		f.What = "an operation of the kernel was refused"
		f.Why = "The program did not say which. " + f.Why + " Without the whole network, sockets for it are refused in this way. So are new namespaces, mounts and the like, which nothing in the configuration allows."
		return f, errno == sandbox.ErrorPermitted && x.end.Sandbox != sandbox.LevelNone.String()
	}
	full := path
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		full = x.home + rest
	}
	if !filepath.IsAbs(full) {
		full = filepath.Join(x.start.Dir, full)
	}
	full = filepath.Clean(full)
	in := func(dirs []string) bool {
		return slices.ContainsFunc(dirs, func(dir string) bool { return dir != "" && paths.Inside([]string{dir}, full) })
	}
	key, folder := "read", full
	if verb == "change" {
		key, folder = "write", filepath.Dir(full)
	}
	of := "tool: " + yamlText(tool)
	if x.end.Kind == string(call.KindExec) {
		of = "kind: exec"
	}
	allow := func() {
		if why := x.unfit(folder); why != "" {
			f.Why += " " + why
			return
		}
		if program.LooksSecret(folder) {
			f.Why += " It looks like something with keys or passwords, and it was the program that named it: grant it only if you know what for."
		}
		f.Allow = fmt.Sprintf("sandbox:\n  grants:\n    - pack: %s\n      %s\n      %s: [%s]", yamlText(x.end.Pack), of, key, yamlText(folder))
		f.Where = inConfig
	}
	switch {
	case x.end.Sandbox == sandbox.LevelNone.String():
		f.Why = "The run was not confined (sandbox none), so this was not the sandbox: look at the file's own permissions."
	case x.start.Run == "":
		f.Why = "The log lacks the start of this run, so what it could reach is not known."
	case in(x.protected):
		f.Why = "This is packs-mcp's own: no run may touch it. Nothing allows that."
	case in(x.start.Closed) && verb == "change":
		f.Why = "No layer could be made over this folder, so it was read-only for this run; the question said why. See: packs-mcp doctor."
	case in(x.start.Writes):
		f.Why = "The run may change this folder, so this was not the sandbox: look at the file's own permissions."
	case in(x.start.Reads) && verb != "change":
		f.Why = "The run may read this, so this was not the sandbox: look at the file's own permissions."
		return f, errno != sandbox.ErrorMissing
	case in(x.start.Reads) && len(x.start.Reads) > 0 && paths.Inside([]string{x.start.Reads[0]}, full):
		f.Why = "This is the pack, which a run reads and never changes. Nothing allows that; write into the workspace ($PACKS_WORKSPACE)."
	case in(x.start.Reads):
		f.Why = "The run may read this, and not change it."
		allow()
	case paths.IsSystem(full) && verb == "change":
		f.Why = "This is the system's, which runs read and never change. Nothing allows that."
	case paths.IsSystem(full):
		f.Why = "Runs see this folder of the system's, but not everything in it."
		return f, errno != sandbox.ErrorMissing
	case x.home != "" && paths.Inside([]string{folder}, x.home):
		f.Why = "This is, or holds, your whole home folder, which is granted to no run. Grant a folder in it."
	case errno == sandbox.ErrorMissing && !exists(map[string]string{"read": full, "write": folder}[key]):
		return f, false // it does not exist for anybody
	default:
		f.Why = "The run could not see this: it has its pack, the workspace, what it is granted, and parts of the system."
		allow()
	}
	return f, true
}

// unfit returns why no grant for a path is proposed: the program named the path, and
// it can write anything.
func (x *explainer) unfit(path string) string {
	const less = " Name what the tool needs in it."
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "There is nothing at that path, so nothing can be granted."
	}
	folder := err == nil && info.IsDir()
	homes := paths.Spellings([]string{x.home})
	for _, p := range paths.Spellings([]string{path}) {
		switch {
		case slices.ContainsFunc([]string{"/proc", "/dev", "/sys"}, func(dir string) bool { return paths.Inside([]string{dir}, p) }):
			return "It is the system's own, of which a run gets its own or none. Nothing allows that."
		case slices.ContainsFunc(homes, func(home string) bool { return paths.Inside([]string{p}, home) }):
			return "It is, or holds, your whole home folder." + less
		case slices.ContainsFunc(x.protected, func(own string) bool {
			return own != "" && (paths.Inside([]string{own}, p) || paths.Inside([]string{p}, own))
		}):
			return "It is, or holds, what packs-mcp itself goes by. Nothing allows that."
		case folder && filepath.Dir(filepath.Dir(p)) == filepath.Dir(p):
			return "It is a whole folder of the system's top." + less
		case folder && program.LooksSecret(p):
			return "It looks like a folder of keys or passwords." + less
		case err == nil && !folder && !info.Mode().IsRegular():
			return "It is neither a file nor a folder, and cannot be granted."
		}
	}
	return ""
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// yamlText returns a text as a YAML value.
func yamlText(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) && !strings.ContainsAny(s[:1], "-.0123456789") &&
		!slices.Contains([]string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(s)) {
		return s
	}
	return strconv.Quote(s)
}

func seconds(ms int64) string { return strconv.FormatInt((ms+999)/1000, 10) + "s" }

// bytesText returns a size as it is written in the configuration.
func bytesText(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.size && n%unit.size == 0 {
			return strconv.FormatInt(n/unit.size, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// printRefused prints what is known, in words.
func printRefused(w *cli.Screen, r refusedRun) {
	line := func(format string, args ...any) { fmt.Fprintln(w, safetext.Line(fmt.Sprintf(format, args...))) }
	line("%s: %s of %s, %s", r.Run, cmp.Or(r.Tool, r.Kind), r.Pack, r.Ended)
	line("  sandbox %s, network %s", cmp.Or(r.Sandbox, "unknown"), cmp.Or(r.Network, "unknown"))
	for _, list := range []struct {
		name string
		all  []string
	}{{"read", r.Reads}, {"change", r.Writes}} {
		if len(list.all) > 0 {
			line("  it could %s %s, besides parts of the system", list.name, strings.Join(list.all, ", "))
		}
	}
	if r.Review != "" {
		line("  nothing that it changed is applied before you have seen it, by %s; see: packs-mcp changes", r.Review)
	}
	if len(r.Findings) == 0 {
		fmt.Fprintln(w, "\nNothing in the log says that the sandbox refused it anything. Its own output may say more.")
		return
	}
	for _, f := range r.Findings {
		fmt.Fprintln(w)
		fmt.Fprintln(w, w.Style(cli.Bold, safetext.Line(f.What)))
		line("  %s", f.Why)
		if f.Allow == "" {
			continue
		}
		line("  To allow it, in %s:", f.Where)
		for text := range strings.Lines(f.Allow) {
			fmt.Fprintln(w.Unbroken(), "    "+safetext.Line(strings.TrimRight(text, "\n")))
		}
	}
}
