//go:build amd64 || arm64

package confine

import (
	"errors"
	"go/build"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/sandbox/confine/seccomp"
)

func example() *Job {
	return &Job{
		Path: "/bin/x", Args: []string{"", "a\xff\x01", "b"}, Env: []string{"A=b"},
		Files: []File{{"/bin/x", State{ID{7, 8}, 9, 10, 11}, true}},
		Dir:   "/w", DirID: ID{1, 2},
		Namespaces: true, HostNet: true, Loopback: true,
		Binds:    []Bind{{Path: "/usr", From: "/y"}, {Path: "/w", Writable: true, File: true, Optional: true, Device: true, ID: ID{3, 1 << 63}}},
		Links:    []Link{{"/bin", "usr/bin"}},
		TmpSize:  1 << 40,
		Landlock: Ruleset{FS: 1, Net: 2, Scoped: 3, Rules: []Rule{{"/usr", 13, ID{}}, {"/w", 1<<16 - 1, ID{5, 6}}}},
		Filter:   seccomp.Filter{Network: seccomp.NetworkInternet, Alone: true, NoScope: true, Keep: []int64{1, -7}, NoListener: true, Piece: 9},
		Limits:   Limits{1, 2, 3, 4, 5, 6, 7},
		Group:    "g",
	}
}

func TestMessages(t *testing.T) {
	for _, j := range []*Job{example(), {}} {
		got, err := parseJob(j.Message()[HeadSize:])
		if err != nil {
			t.Fatalf("parseJob(%+v) = %v", j, err)
		}
		// An empty list equals a nil one.
		if diff := cmp.Diff(j, got, cmp.Transformer("", func(l []string) string { return strings.Join(l, "\x00") }),
			cmp.FilterValues(func(a, b []File) bool { return len(a)+len(b) == 0 }, cmp.Ignore()),
			cmp.FilterValues(func(a, b []Bind) bool { return len(a)+len(b) == 0 }, cmp.Ignore()),
			cmp.FilterValues(func(a, b []Link) bool { return len(a)+len(b) == 0 }, cmp.Ignore()),
			cmp.FilterValues(func(a, b []Rule) bool { return len(a)+len(b) == 0 }, cmp.Ignore()),
			cmp.FilterValues(func(a, b []int64) bool { return len(a)+len(b) == 0 }, cmp.Ignore())); diff != "" {
			t.Errorf("parseJob of Message differs (-want +got):\n%s", diff)
		}
	}
	r := &Report{Failed: true, Step: "mount /usr", Errno: 1, Status: 9, CPU: -1, MaxRSS: 7, TooMany: true}
	got, err := ParseReport(r.Message()[HeadSize:])
	if diff := cmp.Diff(r, got); err != nil || diff != "" {
		t.Errorf("ParseReport of Message = %v, differs (-want +got):\n%s", err, diff)
	}
}

func TestMessagesCutShort(t *testing.T) {
	whole := example().Message()[HeadSize:]
	for n := range whole {
		if _, err := parseJob(whole[:n]); err == nil {
			t.Errorf("parseJob of the first %d of %d bytes = nil, want an error", n, len(whole))
		}
	}
	if _, err := parseJob(append(whole, 0)); err == nil {
		t.Error("parseJob of a byte too many = nil, want an error")
	}
}

func FuzzParseJob(f *testing.F) {
	f.Add(example().Message()[HeadSize:])
	f.Fuzz(func(t *testing.T, message []byte) {
		j, err := parseJob(message)
		if err != nil {
			return
		}
		if again, err := parseJob(j.Message()[HeadSize:]); err != nil || !cmp.Equal(j, again) {
			t.Errorf("parseJob(Message()) = %v", err)
		}
	})
}

// early lists third-party packages that are initialised before this one, with the
// reason why they may be. The standard library, golang.org/x/sys and this module need
// no line here. Go initialises a package as soon as what it imports is, in the order
// of their paths.
var early = map[string]string{
	"github.com/go-git/gcfg/types":                                   "of the git client, which comes before us by its path; all nine take 0.04 ms",
	"github.com/go-git/go-git/v5/plumbing/hash":                      "the same",
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability": "the same",
	"github.com/go-git/go-git/v5/utils/trace":                        "the same",
	"github.com/pjbgf/sha1cd":                                        "the same",
	"github.com/pjbgf/sha1cd/internal/cpu":                           "the same",
	"github.com/pjbgf/sha1cd/ubc":                                    "the same",
	"golang.org/x/crypto/curve25519":                                 "the same",
	"golang.org/x/net/context":                                       "the same",
	"github.com/gabriel-vasile/mimetype":                             "comes before us by its path; 0.03 ms",
	"github.com/gabriel-vasile/mimetype/internal/json":               "comes before us by its path; 0.03 ms",
	"github.com/opencontainers/image-spec/specs-go":                  "comes before us by its path; 0.05 ms",
	"github.com/jackc/pgx/v5/internal/iobufpool":                     "of PostgreSQL's client, which comes before us by its path; 0.012 ms",
	"github.com/jackc/puddle/v2":                                     "the same; 0.004 ms",
	"github.com/klauspost/compress/flate":                            "of the client of NATS, the same; 0.028 ms",
	"golang.org/x/crypto/blake2b":                                    "of the same; nothing that can be measured",
	"github.com/pelletier/go-toml/v2":                                "comes before us by its path; 0.006 ms",
	"github.com/go-jose/go-jose/v4/json":                             "comes before us by its path; 0.006 ms",
	"github.com/tailscale/hujson":                                    "comes before us by its path; 0.005 ms",
	"github.com/pelletier/go-toml/v2/unstable":                       "comes before us by its path; 0.005 ms",
	"go.opentelemetry.io/otel/attribute":                             "comes before golang.org/x/sys/unix, which we import; each of these is below 0.02 ms",
	"go.opentelemetry.io/otel/codes":                                 "the same",
	"go.opentelemetry.io/otel/internal/errorhandler":                 "the same",
	"go.opentelemetry.io/otel/sdk/internal/attrnorm":                 "the same",
	"go.opentelemetry.io/otel/sdk/internal/x":                        "the same",
	"go.opentelemetry.io/otel/sdk/metric/internal/attrnorm":          "the same; less than 0.001 ms",
	"go.opentelemetry.io/otel/semconv/v1.37.0":                       "the same",
	"go.opentelemetry.io/otel/semconv/v1.43.0":                       "the same",
	"go.opentelemetry.io/otel/semconv/v1.43.0/otelconv":              "the same",
	"go.opentelemetry.io/otel/trace":                                 "the same",
	"golang.org/x/text/feature/plural":                               "imports little, and we import path/filepath, which comes after it; each of these is below 0.01 ms",
	"golang.org/x/text/internal/catmsg":                              "the same",
	"golang.org/x/text/internal/language":                            "the same",
	"golang.org/x/text/internal/language/compact":                    "the same",
	"golang.org/x/text/internal/number":                              "the same",
	"golang.org/x/text/language":                                     "the same",
	"golang.org/x/text/message":                                      "the same",
	"golang.org/x/text/unicode/norm":                                 "the same",
	"google.golang.org/protobuf/encoding/protowire":                  "imports little, and we import path/filepath; 0.03 ms",
	"google.golang.org/protobuf/internal/detrand":                    "the same; reads a few bytes of the program's own file, 0.1 ms",
	"google.golang.org/protobuf/internal/errors":                     "the same; nothing measurable",
	"gopkg.in/yaml.v3":                                               "imports regexp, and we import runtime/debug, which comes after that; 0.3 ms",
}

// A helper must do its work before any slow package is initialised; the slowest
// compiles JSON schemas.
func TestHelperIsEarly(t *testing.T) {
	binary := t.TempDir() + "/packs-mcp"
	cmd := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "../../../cmd/packs-mcp")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building packs-mcp: %v\n%s", err, out)
	}
	for _, arg := range []string{Arg, CheckArg} {
		cmd := exec.Command(binary, arg)
		cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
		out, err := cmd.CombinedOutput()
		if _, ran := errors.AsType[*exec.ExitError](err); !ran {
			t.Fatalf("packs-mcp %s = %v, want it to fail without a job, outside of a sandbox", arg, err)
		}
		if !strings.Contains(string(out), "init runtime ") {
			t.Fatalf("no trace of initialisations:\n%s", out)
		}
		for line := range strings.Lines(string(out)) {
			fields := strings.Fields(line)
			if len(fields) < 2 || fields[0] != "init" {
				continue
			}
			path := strings.ReplaceAll(fields[1], "%2e", ".") // as in symbols
			if !ownOrStandard(path) && !strings.HasPrefix(path, "golang.org/x/sys/") && early[path] == "" {
				t.Errorf("packs-mcp %s initialises %q first", arg, path)
			}
		}
	}
}

// ownOrStandard reports whether a package is of this module or of the standard
// library, whose paths do not begin with a domain.
func ownOrStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".") || strings.HasPrefix(path, "github.com/packs-mcp/packs-mcp/")
}

// Everything that this package and the packages below it import on Linux is
// initialised before each helper's work.
func TestImports(t *testing.T) {
	const below = "github.com/packs-mcp/packs-mcp/internal/sandbox/confine/"
	for _, arch := range []string{"amd64", "arm64"} {
		ctx := build.Default
		ctx.GOOS, ctx.GOARCH, ctx.CgoEnabled = "linux", arch, false
		dirs := []string{"."}
		for i := 0; i < len(dirs); i++ {
			pkg, err := ctx.ImportDir(dirs[i], 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range pkg.Imports {
				if dir, ok := strings.CutPrefix(path, below); ok {
					if !slices.Contains(dirs, dir) {
						dirs = append(dirs, dir)
					}
				} else if path != "golang.org/x/sys/unix" && strings.Contains(path, ".") {
					t.Errorf("on linux/%s, %q imports %q, want the standard library and golang.org/x/sys only", arch, dirs[i], path)
				}
			}
		}
		if len(dirs) < 4 {
			t.Errorf("the packages below this one are %q, want more", dirs[1:])
		}
	}
}
