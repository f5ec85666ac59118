package release

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/macho"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// dist returns the folder of a snapshot made by scripts/snapshot-check.sh.
func dist(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("PACKS_MCP_DIST")
	if dir == "" {
		t.Skip("PACKS_MCP_DIST names no folder; make snapshot-check does")
	}
	return dir
}

// skip skips the test, unless PACKS_MCP_REQUIRE names what is missing.
func skip(t *testing.T, name, reason string) {
	t.Helper()
	if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), name) {
		t.Fatalf("%s: required by PACKS_MCP_REQUIRE, but %s", name, reason)
	}
	t.Skip(name + ": " + reason)
}

// metadata is what goreleaser says about a snapshot.
type metadata struct {
	Version, Commit string
}

func readMetadata(t *testing.T, dir string) (m metadata) {
	t.Helper()
	decode(t, filepath.Join(dir, "metadata.json"), &m)
	if m.Version == "" || len(m.Commit) != 40 {
		t.Fatalf("metadata.json = %+v, want a version and a commit", m)
	}
	return m
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("reading %s: %v", file, err)
	}
}

// programs returns the programs that are built for each system.
func programs() []string { return []string{"packs-mcp", "packs-mcp-sigstore"} }

func systems() []string {
	var all []string
	for _, os := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			all = append(all, os+"_"+arch)
		}
	}
	return all
}

// packed is a file in an archive.
type packed struct {
	name    string
	mode    fs.FileMode
	owner   string
	time    time.Time
	content []byte
	index   int // its place in the archive, from 0
}

// unpack returns the files in an archive by name.
func unpack(t *testing.T, file string) map[string]packed {
	t.Helper()
	all := make(map[string]packed)
	if strings.HasSuffix(file, ".zip") || strings.HasSuffix(file, ".mcpb") {
		z, err := zip.OpenReader(file)
		if err != nil {
			t.Fatal(err)
		}
		defer z.Close()
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			all[f.Name] = packed{f.Name, f.Mode(), "root/root", f.Modified, content, len(all)}
		}
		return all
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	r := tar.NewReader(z)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = packed{h.Name, h.FileInfo().Mode(), h.Uname + "/" + h.Gname, h.ModTime, content, len(all)}
	}
}

// commitTime returns the time of every file in a release.
func commitTime(t *testing.T, commit string) time.Time {
	t.Helper()
	out, err := exec.Command("git", "log", "-1", "--format=%ct", commit).Output()
	if err != nil {
		t.Fatal(err)
	}
	var seconds int64
	if _, err := fmt.Sscan(string(out), &seconds); err != nil {
		t.Fatal(err)
	}
	return time.Unix(seconds, 0)
}

// Each archive contains the programs for its system, their manual, their completions, and
// the licence of everything in them. All files belong to root and have the commit's time.
func TestArchives(t *testing.T) {
	dir := dist(t)
	m := readMetadata(t, dir)
	at := commitTime(t, m.Commit)
	for _, system := range systems() {
		t.Run(system, func(t *testing.T) {
			goos, goarch, _ := strings.Cut(system, "_")
			ext, exe := ".tar.gz", ""
			if goos == "windows" {
				ext, exe = ".zip", ".exe"
			}
			files := unpack(t, filepath.Join(dir, "packs-mcp_"+m.Version+"_"+system+ext))
			want := []string{
				"LICENSE", "README.md", "CHANGELOG.md", "man/packs-mcp.1", "man/packs-mcp-audit-show.1",
				"completions/packs-mcp.bash", "completions/packs-mcp.zsh", "completions/packs-mcp.fish", "completions/packs-mcp.ps1",
				"licenses/go/LICENSE", "licenses/github.com/mark3labs/mcp-go/LICENSE",
			}
			for _, name := range programs() {
				want = append(want, name+exe)
			}
			for _, name := range want {
				if len(files[name].content) == 0 {
					t.Errorf("there is no %s, or it is empty", name)
				}
			}
			if page := string(files["man/packs-mcp.1"].content); !strings.Contains(strings.ReplaceAll(page, `\-`, "-"), "packs-mcp v"+m.Version) {
				t.Errorf("the manual does not name version %s", m.Version)
			}
			if one, two := files[programs()[0]+exe], files[programs()[1]+exe]; one.index > two.index {
				t.Errorf("%s stands behind %s: their order must not depend on which was built first", one.name, two.name)
			}
			for _, f := range files {
				program := slices.Contains(programs(), strings.TrimSuffix(f.name, exe))
				mode := fs.FileMode(0o644)
				if program {
					mode = 0o755
				}
				if strings.HasPrefix(f.name, "/") || strings.Contains(f.name, "..") && !strings.Contains(f.name, "...") {
					t.Errorf("%s leads out of the archive", f.name)
				}
				if f.mode != mode {
					t.Errorf("%s has the mode %v, want %v", f.name, f.mode, mode)
				}
				if f.owner != "root/root" {
					t.Errorf("%s belongs to %s", f.name, f.owner)
				}
				if ext != ".zip" && !f.time.Equal(at) || ext == ".zip" && f.time.Sub(at).Abs() > 2*time.Second { // zip has a resolution of two seconds
					t.Errorf("%s is of %v, want the commit's %v", f.name, f.time, at)
				}
				if !program {
					continue
				}
				info, err := buildinfo.Read(bytes.NewReader(f.content))
				if err != nil {
					t.Fatalf("%s: %v", f.name, err)
				}
				set := make(map[string]string)
				for _, s := range info.Settings {
					set[s.Key] = s.Value
				}
				if set["GOOS"] != goos || set["GOARCH"] != goarch || set["CGO_ENABLED"] != "0" || set["-trimpath"] != "true" {
					t.Errorf("%s was built with %v", f.name, set)
				}
				// Every compiled module has a licence text.
				for _, dep := range info.Deps {
					if !hasLicense(files, dep.Path) {
						t.Errorf("%s has the module %s, and there is no licence of it", f.name, dep.Path)
					}
				}
			}
		})
	}
}

// hasLicense reports whether there is a licence text for a module, or for one of its
// packages, since some modules have one in each package.
func hasLicense(files map[string]packed, module string) bool {
	for name := range files {
		if strings.HasPrefix(name, "licenses/"+module+"/") {
			return true
		}
	}
	return false
}

// Nothing reveals the machine on which it was built.
func TestNoPathsOfTheBuildMachine(t *testing.T) {
	dir := dist(t)
	var places []string
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	places = append(places, strings.Fields(string(out))...)
	places = append(places, filepath.Dir(dir))
	if wd, err := os.Getwd(); err == nil {
		places = append(places, filepath.Dir(wd))
	}
	look := func(name string, content []byte) {
		for _, place := range places {
			if bytes.Contains(content, []byte(place)) {
				t.Errorf("%s names %s", name, place)
			}
		}
	}
	looked := 0
	err = filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || slices.Contains([]string{"artifacts.json", "config.yaml", "metadata.json"}, d.Name()) {
			return err // those three are internal to goreleaser, and not published
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		look(file, content)
		looked++
		for _, ext := range []string{".zip", ".tar.gz", ".mcpb"} {
			if strings.HasSuffix(file, ext) {
				for _, f := range unpack(t, file) {
					look(file+": "+f.name, f.content)
				}
			}
		}
		return nil
	})
	if err != nil || looked < 20 {
		t.Fatalf("looked at %d files: %v", looked, err)
	}
}

// The bill of materials lists exactly the modules that Go recorded in the program.
func TestBillOfMaterials(t *testing.T) {
	dir := dist(t)
	m := readMetadata(t, dir)
	for _, program := range programs() {
		for _, system := range systems() {
			var bill struct {
				BOMFormat   string
				SpecVersion string
				Metadata    struct {
					Component struct{ Name, Version string }
				}
				Components []struct{ Name, Version string }
			}
			decode(t, filepath.Join(dir, program+"_"+m.Version+"_"+system+".cdx.json"), &bill)
			if bill.BOMFormat != "CycloneDX" || bill.Metadata.Component.Version != "v"+m.Version {
				t.Errorf("%s %s: it is a %s of version %q", program, system, bill.BOMFormat, bill.Metadata.Component.Version)
			}
			var got []string
			for _, c := range bill.Components {
				got = append(got, c.Name+" "+c.Version)
			}
			built, err := filepath.Glob(filepath.Join(dir, program+"_"+system+"_*", program+"*"))
			if err != nil || len(built) != 1 {
				t.Fatalf("programs for %s: %q, %v", system, built, err)
			}
			info, err := buildinfo.ReadFile(built[0])
			if err != nil {
				t.Fatal(err)
			}
			want := []string{"std " + info.GoVersion}
			for _, dep := range info.Deps {
				want = append(want, dep.Path+" "+dep.Version)
			}
			slices.Sort(got)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s for %s (-in the program +in the bill):\n%s", program, system, diff)
			}
		}
	}
}

// checksums.txt lists each published file with its digest.
func TestChecksums(t *testing.T) {
	dir := dist(t)
	text, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("not a line of checksums: %q", line)
		}
		listed[name] = true
		if got := sha256Of(t, filepath.Join(dir, name)); got != sum {
			t.Errorf("%s has the digest %s, and checksums.txt says %s", name, got, sum)
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		published := slices.Contains([]string{".gz", ".zip", ".deb", ".rpm", ".apk", ".mcpb"}, path.Ext(f.Name())) || strings.HasSuffix(f.Name(), ".cdx.json")
		if published && !listed[f.Name()] {
			t.Errorf("checksums.txt has no %s", f.Name())
		}
	}
	if len(listed) < 6+6+3+12 { // archives, packages, bundles, bills of materials
		t.Errorf("checksums.txt has %d files only", len(listed))
	}
}

func sha256Of(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// server.json conforms to the registry's schema, and names files of this release.
func TestServerJSON(t *testing.T) {
	dir := dist(t)
	m := readMetadata(t, dir)
	// "go list" gives no folder for a module that is not downloaded yet.
	out, err := exec.Command("go", "-C", "tools", "mod", "download", "-json", "github.com/modelcontextprotocol/registry").Output()
	if err != nil {
		t.Fatalf("the registry's module cannot be had: %v", err)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	schema := filepath.Join(module.Dir, "internal/validators/schemas/2025-12-11.json")
	compiled, err := jsonschema.NewCompiler().Compile(schema)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "server.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := compiled.Validate(value); err != nil {
		t.Error(err)
	}
	value.(map[string]any)["version"] = 1
	if compiled.Validate(value) == nil {
		t.Error("the schema accepts anything")
	}
	var entry struct {
		Version  string
		Packages []struct{ RegistryType, Identifier, FileSHA256 string }
	}
	decode(t, file, &entry)
	if entry.Version != m.Version || len(entry.Packages) != 4 {
		t.Errorf("server.json has version %q and %d packages, want %q and 4", entry.Version, len(entry.Packages), m.Version)
	}
	for _, p := range entry.Packages {
		if p.RegistryType == "mcpb" && p.FileSHA256 != sha256Of(t, filepath.Join(dir, path.Base(p.Identifier))) {
			t.Errorf("server.json has another digest of %s", p.Identifier)
		}
	}
}

// The cask and the Scoop manifest name the archives with their digests.
func TestTapAndBucket(t *testing.T) {
	dir := dist(t)
	m := readMetadata(t, dir)
	for file, systems := range map[string][]string{
		"homebrew/Casks/packs-mcp.rb": {"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"},
		"scoop/packs-mcp.json":        {"windows_amd64", "windows_arm64"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Error(err)
			continue
		}
		for _, system := range systems {
			archive := filepath.Join(dir, "packs-mcp_"+m.Version+"_"+system+".tar.gz")
			if strings.HasPrefix(system, "windows") {
				archive = strings.TrimSuffix(archive, ".tar.gz") + ".zip"
			}
			if !bytes.Contains(text, []byte(sha256Of(t, archive))) {
				t.Errorf("%s has no digest of the archive for %s", file, system)
			}
		}
	}
}

// The Linux packages contain the programs, the manual and the licences, and no script that
// root would run.
func TestPackages(t *testing.T) {
	dir := dist(t)
	m := readMetadata(t, dir)
	for _, arch := range []string{"amd64", "arm64"} {
		base := filepath.Join(dir, "packs-mcp_"+m.Version+"_linux_"+arch)
		for _, kind := range []struct {
			name    string
			list    []string // prints the files
			scripts []string // prints the scripts, or the files that may be scripts
		}{
			{"dpkg-deb", []string{"--contents", base + ".deb"}, []string{"--info", base + ".deb"}},
			{"rpm", []string{"-qlp", base + ".rpm"}, []string{"-qp", "--scripts", base + ".rpm"}},
			{"tar", []string{"-tf", base + ".apk"}, []string{"-tf", base + ".apk"}},
		} {
			if _, err := exec.LookPath(kind.name); err != nil {
				skip(t, kind.name, "there is none on the PATH")
			}
			list, err := exec.Command(kind.name, kind.list...).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", kind.name, err, list)
			}
			for _, want := range []string{
				"usr/bin/packs-mcp\n", "usr/bin/packs-mcp-sigstore\n", "usr/share/man/man1/packs-mcp.1\n", "usr/share/bash-completion/completions/packs-mcp\n",
				"usr/share/zsh/site-functions/_packs-mcp\n", "usr/share/doc/packs-mcp/copyright\n", "usr/share/doc/packs-mcp/licenses/go/LICENSE\n",
			} {
				if !strings.Contains(string(list), want) {
					t.Errorf("the package for %s, %s, has no %s", kind.name, arch, want)
				}
			}
			scripts, err := exec.Command(kind.name, kind.scripts...).CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v\n%s", kind.name, err, scripts)
			}
			for _, word := range []string{"postinst", "preinst", "prerm", "postrm", "scriptlet", ".post-install", ".pre-install"} {
				if strings.Contains(string(scripts), word) {
					t.Errorf("the package for %s, %s, has a script %s", kind.name, arch, word)
				}
			}
		}
	}
}

// The bundle for macOS supports both processors.
func TestUniversal(t *testing.T) {
	dir := dist(t)
	files := unpack(t, filepath.Join(dir, "packs-mcp-darwin-universal.mcpb"))
	fat, err := macho.NewFatFile(bytes.NewReader(files["server/packs-mcp"].content))
	if err != nil {
		t.Fatal(err)
	}
	var got []macho.Cpu
	for _, a := range fat.Arches {
		got = append(got, a.Cpu)
	}
	slices.Sort(got)
	if want := []macho.Cpu{macho.CpuAmd64, macho.CpuArm64}; !slices.Equal(got, want) {
		t.Errorf("it is for %v, want %v", got, want)
	}
}
