package private

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func file(t *testing.T) *File {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil { // whatever the umask
		t.Fatal(err)
	}
	return &File{Path: filepath.Join(dir, "x.json"), What: "things", Max: 100}
}

func write(t *testing.T, f *File, data string) {
	t.Helper()
	if err := f.Lock(func() error { return f.Write([]byte(data)) }); err != nil {
		t.Fatalf("Write(%q) = %v", data, err)
	}
}

func TestFile(t *testing.T) {
	f := file(t)
	f.Path = filepath.Join(filepath.Dir(f.Path), "a", "b", "x.json")
	if _, _, err := f.Read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of nothing = %v, want fs.ErrNotExist", err)
	}
	for i, data := range []string{"one", "", "a longer one", "another"} {
		f.Remade = i%2 == 1
		write(t, f, data)
		if got, _, err := f.Read(); err != nil || string(got) != data {
			t.Errorf("Read = %q, %v, want %q", got, err, data)
		}
	}
	entries, err := os.ReadDir(filepath.Dir(f.Path))
	if err != nil || len(entries) != 2 { // the file and its lock
		t.Errorf("%v in the folder, want nothing left over", entries)
	}
	write(t, f, strings.Repeat("x", f.Max))
	if _, _, err := f.Read(); err != nil {
		t.Errorf("Read of as much as there may be = %v", err)
	}
	write(t, f, strings.Repeat("x", f.Max+1))
	if _, _, err := f.Read(); !errors.As(err, new(*RefusedError)) {
		t.Errorf("Read of more than there may be = %v, want refused", err)
	}
}

// The lock works between goroutines and between processes.
func TestLock(t *testing.T) {
	f := file(t)
	write(t, f, "")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			err := f.Lock(func() error {
				data, _, err := f.Read()
				return errors.Join(err, f.Write(append(data, 'x')))
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if data, _, err := f.Read(); err != nil || len(data) != 20 {
		t.Errorf("Read = %q, %v, want 20 x", data, err)
	}
	sentinel := errors.New("no")
	if err := f.Lock(func() error { return sentinel }); !errors.Is(err, sentinel) {
		t.Errorf("Lock = %v, want %v", err, sentinel)
	}
}

func TestLockIsTaken(t *testing.T) {
	f := file(t)
	first, err := f.acquire(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.acquire(time.Millisecond); err == nil || !strings.Contains(err.Error(), "x.json.lock") {
		t.Errorf("acquire of a taken lock = %v, want an error that names it", err)
	}
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	// A caller that gave up does not keep the lock.
	again, err := f.acquire(time.Minute)
	if err != nil {
		t.Fatalf("acquire of a lock that is free again = %v", err)
	}
	if err := again.Unlock(); err != nil {
		t.Fatal(err)
	}
}

// TryLock does not wait, and leaves nothing behind that waits.
func TestTryLock(t *testing.T) {
	f := file(t)
	try := func() (called, done bool, err error) {
		done, err = f.TryLock(func() error { called = true; return nil })
		return called, done, err
	}
	first, err := f.acquire(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if called, done, err := try(); called || done || err != nil {
		t.Errorf("TryLock of a taken lock = %v, %v, and called is %v, want that nothing is done", done, err, called)
	}
	if err := first.Unlock(); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the lock was released
		if called, done, err := try(); !called || !done || err != nil {
			t.Errorf("TryLock of a free lock = %v, %v, and called is %v, want that it is done", done, err, called)
		}
	}
	sentinel := errors.New("no")
	if _, err := f.TryLock(func() error { return sentinel }); !errors.Is(err, sentinel) {
		t.Errorf("TryLock = %v, want %v", err, sentinel)
	}
}

// Open does not wait for a pipe that replaces the file after the check.
func TestOpenOfAPipe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows: pipes of Unix")
	}
	f := file(t)
	if err := mkfifo(f.Path); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := f.open()
		done <- err
	}()
	select {
	case err := <-done:
		if !errors.As(err, new(*RefusedError)) {
			t.Errorf("open = %v, want refused", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("open waits at a pipe")
	}
}

// What others, or an accident, put beside the file is not followed, waited for
// or written through.
func TestHostileNeighbours(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows: links and pipes of Unix")
	}
	f := file(t)
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	next := filepath.Join(filepath.Dir(f.Path), ".x.json.new")
	if err := os.Symlink(victim, next); err != nil {
		t.Fatal(err)
	}
	write(t, f, "one")
	if data, err := os.ReadFile(victim); err != nil || string(data) != "mine" {
		t.Errorf("a link in the place of the next content was followed: %q, %v", data, err)
	}

	// If something cannot be removed, Write fails, and the file is unchanged.
	if err := os.MkdirAll(filepath.Join(next, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := f.Lock(func() error { return f.Write([]byte("two")) }); err == nil {
		t.Error("Write over a folder = nil, want an error")
	}
	if data, _, err := f.Read(); err != nil || string(data) != "one" {
		t.Errorf("Read = %q, %v, want what was there", data, err)
	}

	lock := f.Path + ".lock"
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, lock); err != nil {
		t.Fatal(err)
	}
	if err := f.Lock(func() error { t.Error("called"); return nil }); err == nil || !strings.Contains(err.Error(), "x.json.lock") {
		t.Errorf("Lock through a link = %v, want an error that names the lock", err)
	}
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if err := mkfifo(lock); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- f.Lock(func() error { return nil }) }()
	select {
	case <-done: // with or without an error
	case <-time.After(20 * time.Second):
		t.Error("Lock waits at a pipe")
	}
}

func TestFolder(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows: modes of Unix")
	}
	f := file(t)
	write(t, f, "one")
	dir := filepath.Dir(f.Path)
	if err := os.Chmod(dir, 0o757); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Read(); err != nil {
		t.Errorf("Read in a folder that is open = %v, want no error unless guarded", err)
	}
	f.Guarded = true
	_, _, err := f.Read()
	if e, ok := errors.AsType[*RefusedError](err); !ok || e.Path != dir {
		t.Errorf("Read in a folder that is open = %v, want %q refused", err, dir)
	}
	if err := f.Lock(func() error { t.Error("called"); return nil }); !errors.As(err, new(*RefusedError)) {
		t.Errorf("Lock in a folder that is open = %v, want refused", err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, err := f.Read(); err != nil {
		t.Errorf("Read in a folder that others may read = %v", err)
	}

	f.Secret = true
	for mode, ok := range map[fs.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o622: false} {
		if err := os.Chmod(f.Path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Stat(); (err == nil) != ok {
			t.Errorf("Stat of a secret with mode %#o = %v, want fine: %v", mode, err, ok)
		}
	}
}

func TestStamp(t *testing.T) {
	f := file(t)
	later := func() time.Time { return time.Now().Add(time.Hour) }
	stat := func() Stamp {
		t.Helper()
		s, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	write(t, f, "one")
	if fresh := stat(); fresh.Holds(stat()) {
		t.Error("a stamp of a file that has just changed holds")
	}
	f.Now = later
	old := stat()
	if !old.Holds(stat()) {
		t.Error("a stamp of a file that did not change does not hold")
	}
	if old.Holds(Stamp{}) || (Stamp{}).Holds(old) || (Stamp{}).Holds(Stamp{}) {
		t.Error("a stamp of no file holds")
	}
	if _, read, err := f.Read(); err != nil || !read.Holds(stat()) {
		t.Errorf("the stamp of Read does not hold, %v", err)
	}
	future := time.Now().Add(24 * time.Hour)
	if err := os.Chtimes(f.Path, future, future); err != nil {
		t.Fatal(err)
	}
	if s := stat(); s.Holds(s) {
		t.Error("a stamp of a file from the future holds")
	}
	if old.Holds(stat()) {
		t.Error("a stamp from before a change of time holds")
	}
	write(t, f, "two")
	if old.Holds(stat()) {
		t.Error("a stamp of another file holds")
	}
}

func TestDecode(t *testing.T) {
	f := file(t)
	tests := []struct{ data, want string }{
		{`{"a": 1}`, ""},
		{`{"a": 1}` + "\n", ""},
		{`{"b": 1}`, "unknown field"},
		{`{"a": 1`, "not what was written"},
		{`{"a": 1} {}`, "more follows"},
		{"", "not what was written"},
		{"\x00", "not what was written"},
	}
	for _, tt := range tests {
		var v struct {
			A int `json:"a"`
		}
		err := f.Decode([]byte(tt.data), &v)
		e, refused := errors.AsType[*RefusedError](err)
		if refused != (tt.want != "") || refused && (!strings.Contains(e.Reason, tt.want) || e.Path != f.Path) {
			t.Errorf("Decode(%q) = %v, want %q", tt.data, err, tt.want)
		}
	}
}
