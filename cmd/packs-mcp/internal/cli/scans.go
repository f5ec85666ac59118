package cli

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/gate/prompt"
	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/scan"
	"github.com/packs-mcp/packs-mcp/internal/scan/findings"
)

// scanTime is how long the scan of a pack may delay a question. The largest of 259
// real packs takes a tenth of it.
const scanTime = 5 * time.Second

// maxScans is how many packs' findings are kept.
const maxScans = 256

// scans remembers what scans of packs found. The zero value is ready.
type scans struct {
	mu    sync.Mutex                       // guards known
	known map[[2]string][]findings.Finding // :: folder and digest → findings
}

// of returns the findings in a pack. It scans once for each digest.
func (s *scans) of(dir, digest string, whole bool) ([]findings.Finding, error) {
	key := [2]string{dir, digest}
	s.mu.Lock()
	found, ok := s.known[key]
	s.mu.Unlock()
	if ok {
		return found, nil
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), scanTime, errors.New("it took longer than "+scanTime.String()))
	defer cancel()
	reports, err := scan.Folder(ctx, dir)
	if err == nil && whole {
		err = still(ctx, dir, digest)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	for _, r := range reports {
		found = append(found, r.Findings...)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= maxScans {
		s.known = make(map[[2]string][]findings.Finding)
	}
	s.known[key] = found
	return found, nil
}

// still returns an error unless the folder still has the digest that the question is
// about.
func still(ctx context.Context, dir, digest string) error {
	d, err := packfs.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	tree, err := d.Digest(ctx, nil)
	if err == nil && tree.Digest != digest {
		err = errors.New("the pack changed meanwhile")
	}
	return err
}

// Scan returns what a scan of a call's pack finds. It leaves out findings that the
// person accepted when they added the pack. Findings that a project's lock file lists
// as accepted stay, since anybody can write that.
func (a *Added) Scan(p *call.Pack) prompt.Scan {
	if p.Trust == call.TrustBundled {
		return prompt.Scan{} // the pack is part of this program
	}
	found, err := a.scanned.of(p.Dir, p.Digest, !p.Loose)
	if err != nil {
		return prompt.Scan{Found: "not known: " + err.Error(), Failed: true}
	}
	found = slices.Clone(found)
	if added, ok := a.own(p.Dir); ok && added.Scan != nil {
		findings.Accept(found, added.Scan.Accepted)
	}
	out := prompt.Scan{Found: findings.Summary(found)}
	if worst, ok := (findings.Report{Findings: found}).Worst(); ok {
		out.Worst = worst.String()
	}
	return out
}
