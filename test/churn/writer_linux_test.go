package churn_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A writer changes its own packs, and no others.
type writer struct {
	r       *rand.Rand
	packs   []*pack
	hot     []*pack // some of them, which are changed far more often
	aside   string  // a folder outside of the root, on the same file system
	edits   map[string]int
	problem error
}

// newWriter returns a writer with fifty packs.
func newWriter(root, aside string, n int) *writer {
	home := filepath.Join(root, fmt.Sprintf("w%d", n))
	w := &writer{r: rand.New(rand.NewPCG(uint64(n), 8)), aside: filepath.Join(aside, fmt.Sprintf("w%d", n)), edits: make(map[string]int)}
	for k, count := range map[kind]int{whole: 20, linked: 10, edited: 20} {
		for i := range count {
			p := newPack(home, fmt.Sprintf("%c%dw%d", k, i, n), k)
			w.packs = append(w.packs, p)
			if i == 0 {
				w.hot = append(w.hot, p)
			}
		}
	}
	slices.SortFunc(w.packs, func(a, b *pack) int { return strings.Compare(a.id, b.id) })
	return w
}

// begin makes the first generation of all.
func (w *writer) begin() error {
	err := os.MkdirAll(w.aside, 0o755)
	for _, p := range w.packs {
		err = errors.Join(err, os.MkdirAll(p.home, 0o755), p.replace(false))
	}
	return err
}

// churn changes packs at random until ctx ends, or something goes wrong.
func (w *writer) churn(ctx context.Context) {
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	for w.problem == nil {
		select {
		case <-ctx.Done():
			return
		case <-pace.C:
		}
		for range w.r.IntN(20) { // people pause
			<-pace.C
		}
		var what string
		p := pick(w.r, w.packs, w.hot)
		if w.r.IntN(400) == 0 {
			what, w.problem = "checkout", w.checkout()
		} else {
			what, w.problem = w.edit(p)
		}
		w.edits[what]++
		if w.problem != nil {
			w.problem = fmt.Errorf("%s of %s: %w", what, p.id, w.problem)
		}
	}
}

// pick returns any of all packs, or every other time a hot one.
func pick(r *rand.Rand, all, hot []*pack) *pack {
	if r.IntN(2) == 0 {
		return hot[r.IntN(len(hot))]
	}
	return all[r.IntN(len(all))]
}

// edit makes one change.
func (w *writer) edit(p *pack) (what string, err error) {
	if !p.there() {
		if p.kind != edited {
			return "new", p.replace(false)
		}
		p.gen++
		return "new", p.build(p.dir, p.gen)
	}
	switch w.r.IntN(12) {
	case 0:
		return "delete", p.remove()
	case 1:
		if p.kind == linked {
			return "dangle", w.dangle(p)
		}
		return "rename", p.rename()
	case 2:
		away := filepath.Join(w.aside, p.name)
		if err := os.Rename(p.dir, away); err != nil {
			return "move", err
		}
		for range w.r.IntN(1000) {
			_ = time.Now()
		}
		return "move", os.Rename(away, p.dir)
	case 3:
		return "forbid", w.forbid(p)
	}
	if p.kind != edited {
		return "replace", p.replace(w.r.IntN(3) > 0)
	}
	return w.editFile(p)
}

// dangle points a link to nothing, and removes what it led to.
func (w *writer) dangle(p *pack) error {
	next := filepath.Join(p.home, ".next-"+p.name)
	return errors.Join(os.Symlink(".store/nothing", next), os.Rename(next, p.dir))
}

// forbid removes all rights to a folder, and restores them.
func (w *writer) forbid(p *pack) error {
	if err := os.Chmod(p.dir, 0); err != nil {
		if p.kind == linked && errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	for range w.r.IntN(1000) {
		_ = time.Now()
	}
	return os.Chmod(p.dir, 0o755)
}

// editFile changes one file of a pack of the kind edited.
func (w *writer) editFile(p *pack) (what string, err error) {
	p.gen++
	gen := p.gen
	switch w.r.IntN(10) {
	case 0, 1:
		return "save", p.save(p.dir, "SKILL.md", p.document(gen), 0o644)
	case 2:
		text := p.document(gen)
		cut := w.r.IntN(len(text))
		p.allow(text[:cut], gen)
		return "write", p.writeHalves("SKILL.md", text, cut)
	case 3:
		text := p.content(gen)
		cut := w.r.IntN(len(text))
		p.mu.Lock()
		p.data[text[:cut]], p.data[""] = true, true
		p.mu.Unlock()
		return "data", p.writeHalves("data.txt", text, cut)
	case 4:
		return "script", p.save(p.dir, "say.sh", script(gen), 0o755)
	case 5:
		return "tools", p.save(p.dir, "tools.json", toolsJSON(gen), 0o644)
	case 6:
		text := toolsJSON(gen)
		return "tools", p.writeHalves("tools.json", text, w.r.IntN(len(text)))
	case 7:
		return "break", p.save(p.dir, "tools.json", `{"tools": [{"name": 5}]}`, 0o644)
	case 8:
		return "break", p.save(p.dir, "SKILL.md", "---\nname: "+p.name+"\n---\n", 0o644)
	}
	if w.r.IntN(2) == 0 {
		return "tools", errors.Join(removeIfThere(filepath.Join(p.dir, "more.tool.json")), p.note(p.dir))
	}
	return "tools", p.save(p.dir, "more.tool.json", moreTool(gen), 0o644)
}

// checkout acts like "git checkout": files disappear and appear in arbitrary order.
func (w *writer) checkout() error {
	var some []*pack
	for _, p := range w.packs {
		if p.kind == edited && w.r.IntN(2) == 0 {
			some = append(some, p)
		}
	}
	for i, p := range some {
		if i%4 == 0 {
			if err := p.remove(); err != nil {
				return err
			}
		}
	}
	for _, p := range some {
		p.gen++
		if err := errors.Join(removeIfThere(filepath.Join(p.dir, "SKILL.md")), p.build(p.dir, p.gen)); err != nil {
			return err
		}
	}
	return nil
}

func removeIfThere(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
