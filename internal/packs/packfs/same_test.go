package packfs

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpenSame(t *testing.T) {
	at := func(parent, name string) string { return filepath.Join(parent, name) }
	tests := []struct {
		name string
		do   func(t *testing.T, parent string) error
		want error
	}{
		{"untouched", func(*testing.T, string) error { return nil }, nil},
		{"changed inside", func(_ *testing.T, p string) error { return os.WriteFile(at(p, "p/new"), nil, 0o600) }, nil},
		{"gone", func(_ *testing.T, p string) error { return os.Rename(at(p, "p"), at(p, "q")) }, ErrNotFound},
		{"another folder", func(_ *testing.T, p string) error {
			return errors.Join(os.Rename(at(p, "p"), at(p, "q")), os.Rename(at(p, "secret"), at(p, "p")))
		}, ErrReplaced},
		{"link to another", func(t *testing.T, p string) error {
			err := os.Rename(at(p, "p"), at(p, "q"))
			symlink(t, at(p, "secret"), at(p, "p"))
			return err
		}, ErrReplaced},
		{"link to itself", func(t *testing.T, p string) error {
			err := os.Rename(at(p, "p"), at(p, "q"))
			symlink(t, "q", at(p, "p"))
			return err
		}, ErrReplaced},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			parent := tree(t, map[string]string{"p/f": "pack", "secret/f": "secret"})
			d, err := Open(at(parent, "p"))
			if err != nil {
				t.Fatal(err)
			}
			want, err := d.Info()
			if err := errors.Join(err, d.Close()); err != nil { // Windows does not rename open folders
				t.Fatal(err)
			}
			if err := tt.do(t, parent); err != nil {
				t.Fatal(err)
			}
			d, err = OpenSame(at(parent, "p"), want)
			if !errors.Is(err, tt.want) {
				t.Errorf("OpenSame = %v, want %v", err, tt.want)
			}
			if err == nil {
				defer d.Close()
				if data, err := d.ReadAll("f", 100); string(data) != "pack" {
					t.Errorf("ReadAll(f) = %q, %v, want %q", data, err, "pack")
				}
			} else if _, ok := errors.AsType[*PathError](err); !ok {
				t.Errorf("OpenSame = %T, want a *PathError", err)
			}
		})
	}
	if _, err := OpenSame(t.TempDir(), nil); !errors.Is(err, ErrReplaced) {
		t.Errorf("OpenSame(nil) = %v, want %v", err, ErrReplaced)
	}
}

func TestOpenSameOptions(t *testing.T) {
	dir := tree(t, map[string]string{"f": "x"})
	if err := os.Link(filepath.Join(dir, "f"), filepath.Join(dir, "g")); err != nil {
		t.Skipf("hard links: %v", err)
	}
	info, err := open(t, dir).Info()
	if err != nil {
		t.Fatal(err)
	}
	d, err := OpenSame(dir, info, RefuseHardLinks)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.ReadAll("f", 10); !errors.Is(err, ErrHardLink) {
		t.Errorf("ReadAll = %v, want %v", err, ErrHardLink)
	}
}

// Every page equals Read's if the file is the digested one.
func TestReadVerified(t *testing.T) {
	files := map[string]string{
		"text": strings.Repeat("äöü€", 5000), "binary": string(bytes.Repeat([]byte{0, 0xff, 'x'}, 7000)),
		"broken": strings.Repeat("a", 9000) + "\xff" + strings.Repeat("b", 9000), "empty": "", "short": "x",
	}
	d := open(t, tree(t, files))
	for name, data := range files {
		want := "sha256:" + hexSum(data)
		for _, limits := range []Limits{{}, {Page: 7, PageMax: 3000}} {
			for _, length := range []int64{0, 1, 2, 8191, 8192, 8193, 1 << 30} {
				for _, offset := range []int64{0, 1, 2, 8190, 8192, 8999, 9001, int64(len(data)) - 1, int64(len(data)), int64(len(data)) + 1, -1} {
					page, err := d.Read(name, offset, length, limits)
					verified, verr := d.ReadVerified(name, offset, length, limits, want)
					if (err == nil) != (verr == nil) || err != nil && err.Error() != verr.Error() {
						t.Fatalf("ReadVerified(%q, %d, %d) = %v, want %v", name, offset, length, verr, err)
					}
					if err == nil && !bytes.Equal(page.Data, verified.Data) {
						t.Fatalf("ReadVerified(%q, %d, %d) = %d bytes, want %d", name, offset, length, len(verified.Data), len(page.Data))
					}
					var whole []byte
					if err == nil {
						whole = page.Data
						page.Data, verified.Data = nil, nil
						page.Verified = true
					}
					if diff := cmp.Diff(page, verified); diff != "" {
						t.Fatalf("ReadVerified(%q, %d, %d) (-Read +ReadVerified):\n%s", name, offset, length, diff)
					}
					of, oerr := PageOf(name, []byte(data), offset, length, limits)
					if (err == nil) != (oerr == nil) || err != nil && err.Error() != oerr.Error() {
						t.Fatalf("PageOf(%q, %d, %d) = %v, want %v", name, offset, length, oerr, err)
					}
					if err == nil {
						if !bytes.Equal(of.Data, whole) {
							t.Fatalf("PageOf(%q, %d, %d) = %d bytes, want %d", name, offset, length, len(of.Data), len(whole))
						}
						of.Data = nil
					}
					if diff := cmp.Diff(page, of); diff != "" {
						t.Fatalf("PageOf(%q, %d, %d) (-Read +PageOf):\n%s", name, offset, length, diff)
					}
				}
			}
		}
	}
}

func TestReadVerifiedRefuses(t *testing.T) {
	dir := tree(t, map[string]string{"f": "approved", "sub/x": ""})
	d := open(t, dir)
	good := "sha256:" + hexSum("approved")
	if _, err := d.ReadVerified("f", 0, 0, Limits{}, good); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), []byte("APPROVED"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, want string
		offset     int64
		limits     Limits
		reason     error
	}{
		{"f", good, 0, Limits{}, ErrChanged},
		{"f", good, 100, Limits{}, ErrChanged},
		{"f", "", 0, Limits{}, ErrChanged},
		{"f", hexSum("APPROVED"), 0, Limits{}, ErrChanged},
		{"f", "sha256:" + hexSum("APPROVED"), 100, Limits{}, ErrOffset},
		{"f", good, -1, Limits{}, ErrOffset},
		{"gone", good, 0, Limits{}, ErrNotFound},
		{"sub", good, 0, Limits{}, ErrIsDir},
		{"../f", good, 0, Limits{}, ErrOutside},
	}
	for _, tt := range tests {
		page, err := d.ReadVerified(tt.name, tt.offset, 0, tt.limits, tt.want)
		if !errors.Is(err, tt.reason) || page != nil {
			t.Errorf("ReadVerified(%q, %d, %q) = %v, %v, want %v", tt.name, tt.offset, tt.want, page, err, tt.reason)
		}
	}
	if _, err := d.ReadVerified("f", 0, 0, Limits{File: 7}, "sha256:"+hexSum("APPROVED")); !errors.As(err, new(*TooLargeError)) {
		t.Errorf("ReadVerified of too large a file = %v, want a *TooLargeError", err)
	}
}
