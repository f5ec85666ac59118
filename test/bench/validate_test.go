package bench_test

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkValidateCorpus runs "validate --json" once over all available real packs, and
// prints the time beside a run without packs.
func BenchmarkValidateCorpus(b *testing.B) {
	archive := filepath.Join("..", "..", "..", "shared", "corpora", "packs.tar.gz")
	if _, err := os.Stat(archive); err != nil {
		b.Skip("corpora: the archive of real packs is not there")
	}
	corpus := b.TempDir()
	unpack(b, archive, corpus)
	corpus = filepath.Join(corpus, "packs") // nested no deeper than the scan looks
	empty := filepath.Join(b.TempDir(), "SKILL.md")
	if err := os.WriteFile(empty, []byte("---\nname: one\ndescription: One pack.\n---\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	ours := binary(b)
	times := make(map[string][]time.Duration)
	packs := 0
	for b.Loop() {
		for _, path := range []string{empty, corpus} {
			begin := time.Now()
			out, err := exec.Command(ours, "validate", "--json", path).Output()
			times[path] = append(times[path], time.Since(begin))
			if e, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || e.ExitCode() != 1) { // 1: some packs are not valid
				b.Fatalf("validate %s: %v", path, err)
			}
			var report struct {
				Packs []struct{ Path string }
			}
			if err := json.Unmarshal(out, &report); err != nil {
				b.Fatalf("validate --json %s: %v", path, err)
			}
			packs = len(report.Packs)
		}
	}
	b.ReportMetric(0, "ns/op")
	one, all := median(times[empty]), median(times[corpus])
	b.ReportMetric(ms(all), "corpus-ms")
	b.Logf("validate --json, median of %d: one pack %.1f ms, %d packs %.1f ms, %.2f ms each", len(times[corpus]), ms(one), packs, ms(all), ms(all-one)/float64(packs))
}

// unpack extracts a .tar.gz of regular files below dir.
func unpack(b *testing.B, archive, dir string) {
	b.Helper()
	f, err := os.Open(archive)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer root.Close()
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			b.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			b.Fatal(err)
		}
		name := filepath.FromSlash(h.Name)
		if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := root.WriteFile(name, data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}
