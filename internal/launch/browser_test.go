package launch

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// If this variable is set, the test binary acts as the browser: it writes its
// arguments into the file that the variable names.
const fakeVar = "BROWSER_TEST_OUT"

func TestMain(m *testing.M) {
	acts()
	if out := os.Getenv(fakeVar); out != "" {
		text := strings.Join(append(os.Args[1:], "LANG="+os.Getenv("LANG")), "\n")
		if os.WriteFile(out+".tmp", []byte(text), 0o600) != nil || os.Rename(out+".tmp", out) != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestPlan(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths here are those of other systems")
	}
	const file, address = "/run/u/open-1.html", "file:///run/u/open-1.html"
	usual := func(name string) bool { return filepath.Dir(name) == "/usr/bin" }
	none := func(string) bool { return false }
	for _, tc := range []struct {
		name    string
		goos    string
		environ []string
		want    [][]string
	}{
		{"X11", "linux", []string{"DISPLAY=:0"}, [][]string{{"/usr/bin/xdg-open", address}}},
		{"Wayland", "freebsd", []string{"WAYLAND_DISPLAY=wayland-0"}, [][]string{{"/usr/bin/xdg-open", address}}},
		{"macOS", "darwin", nil, [][]string{{"/usr/bin/open", file}}},
		{"one", "linux", []string{"BROWSER=firefox"}, [][]string{{"firefox", address}}},
		{"the last counts", "linux", []string{"BROWSER=a", "BROWSER=b"}, [][]string{{"b", address}}},
		{"several, one with a place", "darwin", []string{"BROWSER=firefox --new %s --end::w3m"},
			[][]string{{"firefox", "--new", address, "--end"}, {"w3m", address}}},
		{"quotes", "linux", []string{`BROWSER="/opt/my browser" '--x=a b' ""`}, [][]string{{"/opt/my browser", "--x=a b", "", address}}},
		{"a quote that does not end is not a program", "linux", []string{`BROWSER='a:b`}, [][]string{{"b", address}}},
		{"no shell", "linux", []string{"BROWSER=a;b $(c) `d` >e"}, [][]string{{"a;b", "$(c)", "`d`", ">e", address}}},
		{"the program is never the address", "linux", []string{"BROWSER=%s"}, [][]string{{"%s", address}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := plan(tc.environ, tc.goos, file, usual)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("plan(%q) differs (-want +got):\n%s", tc.environ, d)
			}
		})
	}
	if _, err := plan(nil, "linux", file, usual); !errors.Is(err, ErrNoDisplay) {
		t.Errorf("plan without a display = %v, want %v", err, ErrNoDisplay)
	}
	if got, err := plan([]string{"DISPLAY=:0"}, "linux", file, none); !errors.Is(err, ErrNoOpener) {
		t.Errorf("plan without xdg-open = %q, %v, want %v", got, err, ErrNoOpener)
	}
	for _, environ := range [][]string{{"BROWSER=:"}, {"BROWSER= "}, {`BROWSER="x`}} {
		if got, err := plan(environ, "linux", file, usual); err == nil {
			t.Errorf("plan(%q) = %q, want an error", environ, got)
		}
	}
	if got, err := plan([]string{"DISPLAY=:0"}, "linux", "open-1.html", usual); err == nil {
		t.Errorf("plan of a relative path = %q, want an error", got)
	}
}

func TestFileURL(t *testing.T) {
	for _, tc := range []struct{ goos, file, want string }{
		{"linux", "/a b/#c?d%e.html", "file:///a%20b/%23c%3Fd%25e.html"},
		{"windows", `C:\Users\A B\run\open.html`, "file:///C:/Users/A%20B/run/open.html"},
	} {
		if got := fileURL(tc.goos, tc.file); got != tc.want {
			t.Errorf("fileURL(%q, %q) = %q, want %q", tc.goos, tc.file, got, tc.want)
		}
	}
}

func TestBrowser(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if strings.ContainsAny(exe, ":;'\"") && runtime.GOOS != "windows" {
		t.Skipf("the test binary's path %q does not fit into BROWSER", exe)
	}
	dir := t.TempDir()
	file, out := filepath.Join(dir, "page one.html"), filepath.Join(dir, "out")
	separator := ":"
	if runtime.GOOS == "windows" {
		separator = ";"
	}
	environ := append(os.Environ(), fakeVar+"="+out, "LANG=xx",
		"BROWSER="+filepath.Join(dir, "missing")+separator+`"`+exe+`" --x %s y`)
	if err := Browser(environ, file); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{"--x", fileURL(runtime.GOOS, file), "y", "LANG=xx"}, "\n")
	// The program does not report that it is done, so poll for its file.
	deadline, tick := time.After(10*time.Second), time.NewTicker(5*time.Millisecond)
	defer tick.Stop()
	for {
		got, err := os.ReadFile(out)
		if err == nil {
			if string(got) != want {
				t.Errorf("Browser gave the program\n%s\nwant\n%s", got, want)
			}
			return
		}
		select {
		case <-deadline:
			t.Fatal("the program was not started")
		case <-tick.C:
		}
	}
}

func TestBrowserNothing(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "missing")
	err := Browser([]string{"BROWSER=" + missing}, filepath.Join(dir, "page.html"))
	if err == nil || !strings.Contains(err.Error(), "starting a browser") {
		t.Errorf("Browser with BROWSER=%q = %v, want an error that names it", missing, err)
	}
}
