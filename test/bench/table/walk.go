package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/packs-mcp/packs-mcp/test/plant"
)

// walkAndTell is everything that the process started by walk does.
func walkAndTell(w io.Writer, dir string) error {
	cpu, begin := cpuTime(os.Getpid()), time.Now()
	n, err := plant.Walk(dir)
	if err != nil {
		return err
	}
	took := time.Since(begin)
	_, err = fmt.Fprintln(w, n, took.Nanoseconds(), (cpuTime(os.Getpid()) - cpu).Nanoseconds())
	return err
}

// A walked is the time for walking the packs.
type walked struct{ process, inside, cpu time.Duration }

// walk walks n packs in a separate process with one processor.
func (b *bench) walk(n int) (w walked, err error) {
	cmd := exec.CommandContext(b.ctx, b.self, "-walk", b.packs[n].root)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	var out bytes.Buffer
	cmd.Stdout = &out
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return w, fmt.Errorf("walking: %w", err)
	}
	w.process = time.Since(begin)
	found := 0
	if _, err := fmt.Fscan(&out, &found, &w.inside, &w.cpu); err != nil {
		return w, fmt.Errorf("walking: %w", err)
	}
	if found != n {
		return w, fmt.Errorf("walking found %d packs of %d", found, n)
	}
	return w, nil
}
