package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Behaviours of the test binary as a program that answers. The environment of such a
// program is empty, so its file name selects one.
const (
	actEcho    = "acts-echo"
	actHang    = "acts-hang"
	actFail    = "acts-fail"
	actKilled  = "acts-killed"
	actFlood   = "acts-flood"
	actEnviron = "acts-environ"
)

// as returns the test binary under another name.
func as(t *testing.T, name string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.Link(self, path); err != nil {
		data, err := os.ReadFile(self)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestAnswer(t *testing.T) {
	t.Setenv("SIGSTORE_ROOT_FILE", "/evil")
	program := as(t, actEcho)
	if got, err := Answer(t.Context(), program, []byte("question"), 100); err != nil || string(got) != "question" {
		t.Errorf("Answer = %q, %v", got, err)
	}
	large := strings.Repeat("x", 1<<20)
	if got, err := Answer(t.Context(), program, []byte(large), len(large)); err != nil || string(got) != large {
		t.Errorf("Answer of 1 MiB = %d bytes, %v", len(got), err)
	}
	program = as(t, actEnviron)
	got, err := Answer(t.Context(), program, nil, 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(program))
	if err != nil {
		t.Fatal(err)
	}
	environ, found := strings.CutSuffix(string(got), "\n"+dir)
	if !found || runtime.GOOS != "windows" && environ != "" || strings.Contains(environ, "SIGSTORE") || strings.Contains(environ, "PATH=") {
		t.Errorf("the program's environment and folder are %q", got)
	}
}

func TestNoAnswer(t *testing.T) {
	soon := errors.New("soon")
	for name, want := range map[string]string{
		actFail:   "acts-fail",
		actKilled: "failed",
		actFlood:  "answered with more than 100 bytes",
		actHang:   "did not answer: soon",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			program := as(t, name)
			ctx, cancel := t.Context(), func() {}
			if name == actHang { // whether it has begun by then or not
				ctx, cancel = context.WithTimeoutCause(ctx, 50*time.Millisecond, soon)
			}
			defer cancel()
			got, err := Answer(ctx, program, []byte("question"), 100)
			if err == nil || !strings.Contains(err.Error(), want) || got != nil {
				t.Errorf("Answer = %q, %v, want an error with %q", got, err, want)
			}
		})
	}
	if _, err := Answer(t.Context(), filepath.Join(t.TempDir(), "none"), nil, 100); err == nil {
		t.Error("a program that is not there answered")
	}
}

func TestBeside(t *testing.T) {
	dir := t.TempDir()
	suffix := ""
	if runtime.GOOS == "windows" {
		suffix = ".exe"
	}
	self, program := filepath.Join(dir, "main"+suffix), filepath.Join(dir, "second"+suffix)
	write := func(path string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte("x"), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	write(self, 0o755)
	// Neither PATH nor the working folder counts.
	elsewhere := t.TempDir()
	write(filepath.Join(elsewhere, "second"+suffix), 0o755)
	t.Setenv("PATH", elsewhere)
	t.Chdir(elsewhere)
	if got, err := besideOf(self, "second"); !errors.Is(err, ErrNotBeside) {
		t.Errorf("without the program: %q, %v", got, err)
	}
	write(program, 0o755)
	if got, err := besideOf(self, "second"); err != nil || got != program {
		t.Errorf("with the program: %q, %v", got, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	write(program, 0o777)
	if got, err := besideOf(self, "second"); err == nil || !strings.Contains(err.Error(), "every user can change it") {
		t.Errorf("with one that everybody can change: %q, %v", got, err)
	}
	if os.Geteuid() == 0 {
		write(program, 0o755)
		if err := os.Chown(program, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if got, err := besideOf(self, "second"); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Errorf("with another user's: %q, %v", got, err)
		}
		if err := os.Chown(self, 12345, -1); err != nil {
			t.Fatal(err)
		}
		if got, err := besideOf(self, "second"); err != nil {
			t.Errorf("with the same user's as the main program: %q, %v", got, err)
		}
	}
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(elsewhere, "second"), program); err != nil {
		t.Fatal(err)
	}
	if got, err := besideOf(self, "second"); err == nil {
		t.Errorf("with a link: %q", got)
	}
}

// acts does what the name of the file says, and never returns if it does something.
func acts() {
	switch strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe") {
	case actEcho:
		if _, err := os.Stdout.ReadFrom(os.Stdin); err != nil {
			os.Exit(3)
		}
	case actEnviron:
		dir, _ := os.Getwd()
		_, _ = os.Stdout.WriteString(strings.Join(os.Environ(), "\n") + "\n" + dir)
	case actFail:
		_, _ = os.Stderr.WriteString(actFail)
		os.Exit(1)
	case actKilled:
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = p.Kill()
		}
		if err == nil {
			select {}
		}
	case actFlood:
		for {
			_, _ = os.Stdout.WriteString(strings.Repeat("x", 1<<16))
		}
	case actHang:
		r, w, err := os.Pipe()
		if err == nil {
			_, _ = r.Read(make([]byte, 1))
			_ = w.Close()
		}
	default:
		return
	}
	os.Exit(0)
}
