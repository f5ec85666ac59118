package get

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
	"github.com/packs-mcp/packs-mcp/internal/audit"
	"github.com/packs-mcp/packs-mcp/internal/config"
	"github.com/packs-mcp/packs-mcp/internal/packs"
	"github.com/packs-mcp/packs-mcp/internal/packs/attach"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
	"github.com/packs-mcp/packs-mcp/internal/scan"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
	"github.com/packs-mcp/packs-mcp/internal/sources"
	"github.com/packs-mcp/packs-mcp/internal/sources/change"
	"github.com/packs-mcp/packs-mcp/internal/sources/lock"
	"github.com/packs-mcp/packs-mcp/internal/sources/stage"
	"github.com/packs-mcp/packs-mcp/internal/sources/store"
	"github.com/packs-mcp/packs-mcp/internal/sources/trust"
)

// An item is one pack that would be added or updated.
type item struct {
	id     string
	before *lock.Entry // nil: the pack is new
	entry  lock.Entry
	staged *store.Staged
	change *change.Change
	ends   []string // the grants that would end
	found  []findings.Finding
	failed error // error of looking at it

	older *trust.Refusal // why it counts as older than the previous version; nil: it does not

	root      string // the file with the signature's authorities; "": those of the public service
	proof     []byte // of the signature
	unchecked string // why an existing signature was not checked
}

func (it *item) close() error { return it.staged.Close() }

// moved reports whether the previous version came from another source.
func (it *item) moved() bool {
	return it.before != nil && (it.before.Source != it.entry.Source || it.before.Path != it.entry.Path)
}

// age finds out whether a pack is older than the version that it would replace. That is
// an error unless allowed. If the source's history says that the pack follows, ordered is
// true and nothing else counts.
func (it *item) age(ordered, allowed bool) error {
	if ordered {
		return nil
	}
	if it.older = trust.Older(it.before, it.entry); it.older == nil || allowed {
		return nil
	}
	return it.older
}

// stage fetches a pack into the store without installing it, and finds out what it
// would change.
func (p *place) stage(ctx context.Context, snap sources.Snapshot, source string, pack sources.Pack, id string) (*item, error) {
	all, err := p.stageAll(ctx, snap, source, []sources.Pack{pack}, func(sources.Pack) string { return id }, func(*item) error { return nil })
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// stageAll is stage for several packs of a source. check sees each entry as soon as
// it is known; if it refuses one, stageAll ends. While one pack is fetched, others
// are examined.
func (p *place) stageAll(ctx context.Context, snap sources.Snapshot, source string, chosen []sources.Pack, id func(sources.Pack) string, check func(*item) error) (items []*item, err error) {
	answers, closeAnswers, err := cli.Grants(ctx, p.cfg, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	grants, err := answers.Load()
	closeAnswers()
	if err != nil {
		return nil, err
	}
	ends := func(id string) (lines []string) {
		for _, g := range grants {
			if strings.EqualFold(g.Pack, id) && g.Void == nil {
				lines = append(lines, g.Covers) // in the words of the answer that the person chose
			}
		}
		return lines
	}
	batch, err := p.Store.NewBatch()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, batch.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	// With room for a few, nobody sleeps and is woken for each pack: a tenth of the time.
	fetched := make(chan *item, 4)
	for range runtime.GOMAXPROCS(0) {
		looking.Go(func() {
			for it := range fetched {
				it.failed = p.look(ctx, it)
				it.ends = ends(it.id)
			}
		})
	}
	defer func() {
		if err != nil {
			cancel() // nobody needs the other results
		}
		close(fetched)
		looking.Wait()
		cancel()
		for i := 0; i < len(items) && err == nil; i++ {
			err = items[i].failed
		}
		if err != nil {
			for _, it := range items {
				err = errors.Join(err, it.close())
			}
			items = nil
		}
	}()
	for _, pack := range chosen {
		it, err := p.fetch(ctx, batch, snap, source, pack, id(pack))
		if err != nil {
			return items, err
		}
		items = append(items, it)
		if err := check(it); err != nil {
			return items, err
		}
		fetched <- it
	}
	return items, nil
}

// fetch fetches a pack into the store, and finds out who signed it.
func (p *place) fetch(ctx context.Context, batch *store.Batch, snap sources.Snapshot, source string, pack sources.Pack, id string) (_ *item, err error) {
	if !lock.ValidID(id) {
		return nil, cli.WithHint(fmt.Errorf("the pack would have the id %q, which none can have", safetext.Line(id)), "say with --as what goes before its name: lower-case letters, digits, dots and hyphens")
	}
	it := &item{id: id, root: p.cfg.Sources.Sigstore}
	if e, ok := p.l.Packs[id]; ok {
		it.before = &e
	}
	it.staged, err = batch.Stage(stage.Limits{}, func(st *stage.Stage) error { return sources.Fill(ctx, snap, pack.Path, st) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", safetext.Line(id), err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, it.close())
		}
	}()
	found, err := p.signatures.Signed(ctx, snap, pack.Path, id, it.before)
	if err != nil {
		return nil, err
	}
	it.proof, it.unchecked = found.Proof, found.Unchecked
	pin, err := sources.PinOf(ctx, snap, pack.Path)
	if err != nil {
		return nil, err
	}
	it.entry = lock.Entry{
		Source: source, Resolved: snap.Resolved(), Pin: pin, Path: pack.Path,
		Digest: it.staged.Tree.Digest(), ContentDigest: it.staged.Tree.ContentDigest(),
		Signature: found.By, SignedAt: found.At, Unsigned: found.By == nil, Explicit: true,
	}
	if it.entry.Pin == "" {
		it.entry.Pin = it.entry.Digest
	}
	if err := sources.About(ctx, snap, pack.Path, &it.entry); err != nil {
		return nil, err
	}
	return it, nil
}

// look finds out what a staged pack would change, its version, and what a scan finds in
// it. It reads the bytes that were staged from memory, and is the last that needs them.
func (p *place) look(ctx context.Context, it *item) error {
	files := it.staged.Memory
	it.staged.Memory = nil
	found, err := scan.FindIn(ctx, files)
	if err != nil {
		return err
	}
	now, err := change.Of(found, files.At, it.staged.Files())
	if err != nil {
		return err
	}
	it.entry.Version = cmp.Or(now.Number(), it.entry.Version)
	if !trust.IsVersion(it.entry.Version) {
		it.entry.Version = ""
	}
	var old *change.Version
	if it.before != nil {
		if dir, err := p.Path(it.id); err == nil {
			old, _ = change.Read(ctx, dir) // an old version that cannot be read counts as missing
		}
	}
	if it.change, err = change.Between(old, now); err != nil {
		return err
	}
	reports, err := scan.AllIn(ctx, found, files)
	if err != nil {
		return err
	}
	for _, r := range reports {
		it.found = append(it.found, r.Findings...)
	}
	return nil
}

// how says how a plan is carried out.
type how struct {
	settings
	unsigned bool     // packs without a signature may be added
	accept   []string // hashes of findings that a person accepts
	attach   bool
	verb     string // the verb in the question
}

// result is the outcome for one pack, for --json.
type result struct {
	ID       string             `json:"id"`
	Source   string             `json:"source"`
	Resolved string             `json:"resolved"`
	Digest   string             `json:"digest"`
	Before   string             `json:"before,omitempty"` // the digest of the previous version
	Signer   string             `json:"signer,omitempty"`
	NoCheck  string             `json:"signature_not_checked,omitempty"` // why an existing signature was not checked
	Change   *change.Change     `json:"change"`
	Ends     []string           `json:"grants_that_end,omitempty"`
	Findings []findings.Finding `json:"findings"`
	Done     bool               `json:"done"`
}

// carryOut shows what would be added or changed, asks, and does it.
func (a *app) carryOut(ctx context.Context, p *place, items []*item, h how) error {
	var todo []*item
	results := []result{}
	for _, it := range items {
		if it.before != nil && it.before.Digest == it.entry.Digest && it.before.Resolved == it.entry.Resolved && !it.moved() && (it.before.Signature != nil || it.entry.Signature == nil) {
			fmt.Fprintf(a.Stderr, "%s is as it was\n", safetext.Line(it.id))
			continue
		}
		it.accept(h.accept)
		todo = append(todo, it)
		a.show(it, false)
	}
	yes := len(todo) > 0
	if yes {
		var err error
		if yes, err = a.agrees(ctx, todo, h); err != nil {
			return err
		}
	}
	if yes {
		err := p.Change(ctx, func(tx *store.Tx) error { return a.install(p, tx, h, todo...) })
		if err != nil {
			return err
		}
	}
	for _, it := range todo {
		if yes && h.attach {
			if err := a.attach(p, it.id); err != nil {
				return err
			}
		}
		r := result{ID: it.id, Source: it.entry.Source, Resolved: it.entry.Resolved, Digest: it.entry.Digest, Change: it.change, Ends: it.ends, Findings: orEmpty(it.found), Done: yes, NoCheck: it.unchecked}
		if it.before != nil {
			r.Before = it.before.Digest
		}
		if it.entry.Signature != nil {
			r.Signer = signedBy(it.entry)
		}
		results = append(results, r)
	}
	if h.json {
		return cli.PrintJSON(a.Stdout, changedPacks{results})
	}
	return nil
}

// accept notes which findings a person accepts: those named now, and those accepted
// for the previous version. A finding is identified by a hash of what was found, so
// accepting one does not accept the same words in another place, or other words in
// the same place.
func (it *item) accept(hashes []string) {
	if it.before != nil && it.before.Scan != nil {
		hashes = append(slices.Clone(hashes), it.before.Scan.Accepted...)
	}
	it.entry.Scan = &lock.Scan{Rules: findings.RulesVersion, Accepted: findings.Accept(it.found, hashes)}
}

// attacks refuses a pack with a finding that only occurs in attacks, unless a person
// accepted it.
func attacks(id string, found []findings.Finding) error {
	if !slices.ContainsFunc(found, func(f findings.Finding) bool { return f.Severity == findings.Critical && f.Accepted == "" }) {
		return nil
	}
	err := fmt.Errorf("nothing was changed: the scan of %s found what looks like an attack", safetext.Line(id))
	return cli.WithHint(&cli.StatusError{Err: err, Status: cli.StatusRefused}, "look at it; if it is harmless, accept it by its hash, with --accept")
}

func orEmpty(found []findings.Finding) []findings.Finding {
	if found == nil {
		return []findings.Finding{}
	}
	return found
}

// agrees asks whether to do what was shown. It asks separately about packs that
// nobody signed, and --yes does not answer that. The answer for one source does not
// hold for another.
func (a *app) agrees(ctx context.Context, todo []*item, h how) (bool, error) {
	unsigned, nobody := 0, "nobody signed this"
	for _, it := range todo {
		if err := attacks(it.id, it.found); err != nil {
			return false, err
		}
		if it.entry.Unsigned && (it.before == nil || !it.before.Unsigned || it.moved()) {
			unsigned++
			if it.unchecked != "" {
				nobody = "the signature was not checked: " + cli.OneLine(it.unchecked, 400)
			}
		}
	}
	terminal := cli.IsTerminal(a.Stdin)
	if unsigned > 0 && !h.unsigned && (h.yes || !terminal) {
		return false, cli.WithHint(&cli.StatusError{Err: errors.New("nothing was changed: " + nobody), Status: cli.StatusRefused}, "add --allow-unsigned to take it all the same; that is recorded")
	}
	if h.yes {
		return true, nil
	}
	if !terminal {
		return false, cli.WithHint(&cli.StatusError{Err: errors.New("nothing was changed: there is no terminal to ask on"), Status: cli.StatusRefused}, "add --yes to do it")
	}
	question := toDo(todo, h.verb) + "?"
	if unsigned > 0 && !h.unsigned {
		question = fmt.Sprintf("%s. %s all the same?", strings.ToUpper(nobody[:1])+nobody[1:], toDo(todo, h.verb))
	}
	return a.ask(ctx, question)
}

// toDo says what a yes does. It names the packs that would be replaced by ones from
// another source.
func toDo(todo []*item, verb string) string {
	var moved []string
	for _, it := range todo {
		if it.moved() {
			moved = append(moved, safetext.Line(it.id))
		}
	}
	rest := len(todo) - len(moved)
	added := fmt.Sprintf("%s %s", verb, cli.Counted(rest, "pack", "packs"))
	if len(moved) == 0 {
		return added
	}
	replaced := strings.Join(moved, ", ") + " with what is from another source"
	if rest == 0 {
		return "Replace " + replaced
	}
	return added + ", and replace " + replaced
}

// ask asks on the terminal.
func (a *app) ask(ctx context.Context, question string) (bool, error) {
	yes, err := a.Confirm(ctx, question)
	if err == nil && !yes {
		fmt.Fprintln(a.Stderr, "Nothing was changed.")
	}
	return yes, err
}

// install installs packs, all or none, after writing a log line for each.
func (a *app) install(p *place, tx *store.Tx, h how, items ...*item) error {
	var lines []audit.Entry
	for _, it := range items {
		dir, err := p.Path(it.id)
		if err != nil {
			return err
		}
		// The plan was made from the lock file as it was then.
		now, ok := tx.Lock().Packs[it.id]
		if ok != (it.before != nil) || ok && (now.Digest != it.before.Digest || now.Source != it.before.Source || now.Path != it.before.Path) {
			return fmt.Errorf("%s was changed meanwhile; run the command again", safetext.Line(it.id))
		}
		reason := "from " + it.entry.Resolved
		if it.older != nil {
			reason += ", older than before"
		}
		lines = append(lines, audit.Entry{Event: audit.EventSource, Pack: it.id, Dir: dir, Channel: "command", PackDigest: it.entry.Digest, Reason: reason})
	}
	if err := a.record(p.cfg, lines...); err != nil {
		return err
	}
	if err := put(tx, items...); err != nil {
		return err
	}
	var text strings.Builder
	for i, it := range items {
		fmt.Fprintf(&text, "%s is in %s\n", safetext.Line(it.id), safetext.Line(lines[i].Dir))
		if it.before == nil && !h.attach {
			fmt.Fprintf(&text, "  models see it after: packs-mcp attach %s\n", safetext.Line(it.id))
		}
	}
	fmt.Fprint(a.Stderr, text.String())
	return nil
}

// attach attaches a pack, so that models see it.
func (a *app) attach(p *place, id string) error {
	dir, err := p.Path(id)
	if err != nil {
		return err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	if err := a.record(p.cfg, audit.Entry{Event: audit.EventAttach, Pack: id, Dir: dir, Channel: "command"}); err != nil {
		return err
	}
	return cli.AttachedStore(p.cfg).Update(func(s *attach.Set) error {
		s.Attach(id, attach.Entry{Dir: dir, Trust: string(packs.TrustUntrusted), Since: time.Now().UTC()})
		return nil
	})
}

// record writes lines to the log; without them nothing is changed. They are on disk
// when it returns.
func (a *app) record(cfg *config.Config, lines ...audit.Entry) error {
	// Even if the command is interrupted: what follows would not be recorded otherwise.
	log, err := cli.Log(context.Background(), cfg, cli.Writer(cfg), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return errors.Join(log.AppendAll(lines), log.Close()) // Close syncs them
}

// put installs packs, all or none, and keeps the proofs of their signatures.
func put(tx *store.Tx, items ...*item) error {
	var proofs [][]byte
	var all []store.Arrival
	for _, it := range items {
		if it.proof != nil && !slices.ContainsFunc(proofs, func(p []byte) bool { return bytes.Equal(p, it.proof) }) {
			proofs = append(proofs, it.proof)
		}
		all = append(all, store.Arrival{ID: it.id, Pack: it.staged, Entry: it.entry})
	}
	if len(proofs) > 0 {
		if err := tx.KeepProofs(proofs...); err != nil {
			return fmt.Errorf("keeping the proof of the signature: %w", err)
		}
	}
	return tx.Install(all...)
}
