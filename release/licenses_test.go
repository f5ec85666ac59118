package release

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"testing"
)

// compiled is a package that is compiled into a program.
type compiled struct {
	Dir     string
	GoFiles []string
	Module  *struct {
		Path, Dir string
		Main      bool
	}
}

// compiledFor returns the third-party packages in both programs, for one system.
func compiledFor(t *testing.T, goos string) (all []compiled) {
	t.Helper()
	list := exec.Command("go", "list", "-deps", "-json=Dir,GoFiles,Module", "./cmd/...")
	list.Dir = ".."
	list.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p compiled
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Module != nil && !p.Module.Main {
			all = append(all, p)
		}
	}
}

// An archive contains every licence and notice of each compiled module, byte for byte.
// MPL-2.0 also requires the source, so files under that licence are in the archive too.
func TestLicenses(t *testing.T) {
	dir := dist(t)
	m := readMetadata(t, dir)
	text := regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)`)
	mozilla := regexp.MustCompile(`MPL-2\.0|Mozilla Public License`)
	texts := 0
	for goos, archive := range map[string]string{
		"linux": "linux_arm64.tar.gz", "darwin": "darwin_amd64.tar.gz", "windows": "windows_amd64.zip",
	} {
		files := unpack(t, filepath.Join(dir, "packs-mcp_"+m.Version+"_"+archive))
		want := make(map[string]string) // :: path in the archive → file
		for _, p := range compiledFor(t, goos) {
			entries, err := os.ReadDir(p.Module.Dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Type().IsRegular() && text.MatchString(e.Name()) {
					want[path.Join("licenses", p.Module.Path, e.Name())] = filepath.Join(p.Module.Dir, e.Name())
				}
			}
			for _, name := range p.GoFiles {
				content, err := os.ReadFile(filepath.Join(p.Dir, name))
				if err != nil {
					t.Fatal(err)
				}
				if head := content[:min(len(content), 2<<10)]; mozilla.Match(head) {
					inside, err := filepath.Rel(p.Module.Dir, filepath.Join(p.Dir, name))
					if err != nil {
						t.Fatal(err)
					}
					want[path.Join("licenses", p.Module.Path, filepath.ToSlash(inside))] = filepath.Join(p.Dir, name)
				}
			}
		}
		for name, file := range want {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(files[name].content, content) {
				t.Errorf("%s: %s is not the module's", archive, name)
			}
		}
		texts += len(want)
	}
	if texts < 60 {
		t.Errorf("only %d texts were found", texts)
	}
}
