//go:build unix

package runner

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// cacheFolder returns an empty folder for a cache.
func cacheFolder(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(dir, "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// cached returns an sh command with a cache.
func cached(t *testing.T, cache, script string) (sandbox.Policy, sandbox.Command) {
	t.Helper()
	p, c := inProject(t, "", script)
	c.Dir = c.Workspace
	p.Cache = cache
	c.Env = append(c.Env, "PACKS_CACHE="+cache)
	return p, c
}

// At every level, a run reads what an earlier run wrote to its cache; a run without
// the cache does not.
func TestCache(t *testing.T) {
	eachLevel(t, func(t *testing.T, r *Runner) {
		cache := cacheFolder(t)
		p, c := cached(t, cache, `mkdir "$PACKS_CACHE/00" && printf '#!/bin/sh\necho kept\n' >"$PACKS_CACHE/00/tool" && chmod +x "$PACKS_CACHE/00/tool"`)
		res, err := r.Run(t.Context(), p, c)
		if err != nil || res.ExitCode != 0 || res.Cache.Full || res.Cache.Bytes == 0 || len(res.Artifacts) > 0 || len(res.Changes) > 0 {
			t.Fatalf("Run = %+v, %v, want a cache with something in it, and nothing else", res, err)
		}
		p, c = cached(t, cache, `"$PACKS_CACHE/00/tool"; { mv "$PACKS_CACHE" "$PACKS_CACHE-2"; : >"$PACKS_CACHE/../beside"; } 2>/dev/null`)
		if r.Probe(t.Context()).Level == sandbox.LevelNone {
			c.Args[1] = `"$PACKS_CACHE/00/tool"`
		}
		if res, err := r.Run(t.Context(), p, c); err != nil || string(res.Stdout.Bytes()) != "kept\n" {
			t.Errorf("Run = %+v, %v, want what the run before left", res, err)
		}
		if r.Probe(t.Context()).Level == sandbox.LevelNone {
			return
		}
		if list, err := os.ReadDir(filepath.Dir(cache)); err != nil || len(list) != 1 || list[0].Name() != "data" {
			t.Errorf("beside the cache there is %v, %v, want nothing", list, err)
		}
		p, c = cached(t, cache, `"$PACKS_CACHE/00/tool"`)
		p.Cache = ""
		if res, err := r.Run(t.Context(), p, c); err != nil || res.ExitCode == 0 {
			t.Errorf("Run = %+v, %v, want nobody else's cache to be readable", res, err)
		}
	})
}

// A run that overfills its cache is ended, however it hides that. The result says if
// the cache holds more than is kept between runs.
func TestCacheBound(t *testing.T) {
	const most = 10 << 20
	for name, tt := range map[string]struct {
		script string
		cause  sandbox.Cause
		full   bool
	}{
		"within":             {`dd if=/dev/zero of=z bs=1M count=8 2>/dev/null`, sandbox.CauseExit, false},
		"too much to keep":   {`dd if=/dev/zero of=z bs=1M count=15 2>/dev/null`, sandbox.CauseExit, true},
		"too much":           {`dd if=/dev/zero of=z bs=1M count=40 2>/dev/null; sleep 10`, sandbox.CauseCacheLimit, true},
		"in a closed folder": {`mkdir d; dd if=/dev/zero of=d/z bs=1M count=40 2>/dev/null; chmod 0 d; chmod 0 .; sleep 10`, sandbox.CauseCacheLimit, true},
		"without a name":     {`exec 3>z; rm z; dd if=/dev/zero bs=1M count=40 >&3 2>/dev/null; sleep 10`, sandbox.CauseCacheLimit, true},
		"too many names":     {`i=0; while [ $i -le 3000 ]; do : >g$i; i=$((i+1)); done; sleep 10`, sandbox.CauseCacheLimit, true},
		"300 folders deep":   {`i=0; while [ $i -le 300 ]; do mkdir d; cd d; i=$((i+1)); done; sleep 10`, sandbox.CauseCacheLimit, true},
		"names to keep":      {`i=0; while [ $i -le 1200 ]; do : >g$i; i=$((i+1)); done`, sandbox.CauseExit, true},
	} {
		t.Run(name, func(t *testing.T) {
			eachLevel(t, func(t *testing.T, r *Runner) {
				cache := cacheFolder(t)
				opened(t, cache)
				p, c := cached(t, cache, `cd "$PACKS_CACHE"; `+tt.script)
				p.Limits = sandbox.Limits{Cache: most, CacheNames: 1000, Timeout: 30 * time.Second}
				res, err := r.Run(t.Context(), p, c)
				if err != nil {
					t.Fatal(err)
				}
				if res.Cause != tt.cause || res.Cache.Full != tt.full {
					t.Errorf("the run ended with %q after %v, and the cache is %+v, want %q and full: %v (stderr %q)", res.Cause, res.Duration, res.Cache, tt.cause, tt.full, res.Stderr.Bytes())
				}
			})
		})
	}
}

// Whatever a run leaves in its cache, the next run works, has no more rights, and
// reaches nothing outside.
func TestCacheHostile(t *testing.T) {
	eachLevel(t, func(t *testing.T, r *Runner) {
		if r.Probe(t.Context()).Level == sandbox.LevelNone {
			t.Skip("nothing confines a run")
		}
		precious := filepath.Join(t.TempDir(), "precious")
		if err := os.WriteFile(precious, []byte("secret"), 0o644); err != nil {
			t.Fatal(err)
		}
		cache := cacheFolder(t)
		p, c := cached(t, cache, `cd "$PACKS_CACHE"; ln -s "$PRECIOUS" out; ln -s / root; ln -s . loop; mkfifo fifo; cp /bin/sh set
			chmod 4755 set; chmod 2755 set; ln "$PRECIOUS" hard; mkdir closed; : >closed/x; chmod 0 closed; true`)
		c.Env = append(c.Env, "PRECIOUS="+precious)
		if res, err := r.Run(t.Context(), p, c); err != nil || res.ExitCode != 0 {
			t.Fatalf("Run = %+v, %v", res, err)
		}
		info, err := os.Lstat(filepath.Join(cache, "set"))
		if err != nil || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			t.Errorf("the mode of the copied program is %v, %v, want no set-ID", info.Mode(), err)
		}
		if _, err := os.Lstat(filepath.Join(cache, "hard")); err == nil {
			t.Error("a file of the user's has one more name, in the cache")
		}
		p, c = cached(t, cache, `cd "$PACKS_CACHE"; cat out 2>/dev/null; echo x 2>/dev/null >out; ls root/home >/dev/null 2>&1; echo done`)
		res, err := r.Run(t.Context(), p, c)
		if err != nil || string(res.Stdout.Bytes()) != "done\n" || res.Cache.Full {
			t.Errorf("Run = %+v, %v, want the next run to go on and to reach nothing", res, err)
		}
		if text, err := os.ReadFile(precious); err != nil || string(text) != "secret" {
			t.Errorf("outside: %q, %v", text, err)
		}
	})
}

// A link in place of the cache is never followed, even one that appears while the run
// is prepared.
func TestCacheReplaced(t *testing.T) {
	eachLevel(t, func(t *testing.T, r *Runner) {
		elsewhere := t.TempDir()
		for name, replace := range map[string]func(at string) error{
			"link":    func(at string) error { return os.Symlink(elsewhere, at) },
			"file":    func(at string) error { return os.WriteFile(at, nil, 0o600) },
			"nothing": func(string) error { return nil },
		} {
			cache := cacheFolder(t)
			p, c := cached(t, cache, `: >"$PACKS_CACHE/x"`)
			if err := errors.Join(os.Remove(cache), replace(cache)); err != nil {
				t.Fatal(err)
			}
			if res, err := r.Run(t.Context(), p, c); err == nil || !strings.Contains(err.Error(), "cache") {
				t.Errorf("%s: Run = %+v, %v, want it refused", name, res, err)
			}
		}
		if list, err := os.ReadDir(elsewhere); err != nil || len(list) > 0 {
			t.Errorf("where the link leads there is %v, %v", list, err)
		}
	})
	for _, path := range []string{"relative", "/a/../b", "/a\x00"} {
		p := sandbox.Policy{Cache: path}
		if err := checkPolicy(&p); err == nil {
			t.Errorf("check of the cache %q = nil, want an error", path)
		}
	}
}
