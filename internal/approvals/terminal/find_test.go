package terminal

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/approvals/control"
	"github.com/packs-mcp/packs-mcp/internal/approvals/runfolder"
)

const testKey = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// runFolder returns an empty run folder.
func runFolder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// serveControl runs a server for the control paths, and returns its
// announcement.
func serveControl(t *testing.T, h http.Handler) control.Announcement {
	t.Helper()
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+testKey {
			t.Errorf("%s %s has the authorization %q", r.Method, r.URL, r.Header.Get("Authorization"))
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(ts.Close)
	return control.Announcement{
		Version: control.Version, PID: os.Getpid(), Server: "pid-1", Address: ts.Listener.Addr().String(), Key: testKey,
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Project: "/home/ann/src/shop",
	}
}

// emptyQueue returns a server without waiting calls.
func emptyQueue() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+control.PathPending, func(w http.ResponseWriter, _ *http.Request) { answerJSON(w, control.Queue{}) })
	return mux
}

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func plantAnnouncement(t *testing.T, dir, name string, a control.Announcement) string {
	t.Helper()
	data, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	return plantFile(t, dir, name, data)
}

func plantFile(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func neverGone(int) bool { return false }

func TestFind(t *testing.T) {
	good := serveControl(t, emptyQueue())
	with := func(change func(*control.Announcement)) control.Announcement { a := good; change(&a); return a }
	closed := httptest.NewServer(nil)
	closed.Close()
	forbidden := serveControl(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		var f control.Failure
		f.Error.Problem, f.Error.Message = "forbidden", "no\x1b[2J"
		answerJSON(w, f)
	}))
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a redirect was followed: %s %s with %q", r.Method, r.URL, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	talks := serveControl(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for range maxQueue>>20 + 1 {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
	}))
	redirects := serveControl(t, http.RedirectHandler(elsewhere.URL+control.PathPending, http.StatusTemporaryRedirect))
	for _, tc := range []struct {
		name string
		data any // an Announcement, or text
		want string
	}{
		{"good", good, ""},
		{"IPv6 form", with(func(a *control.Announcement) {
			a.Address = "[::ffff:127.0.0.1]" + a.Address[strings.LastIndex(a.Address, ":"):]
		}), ""},
		{"not JSON", "{", "it is not what a server writes: unexpected end of JSON input"},
		{"empty", "", "it is not what a server writes: unexpected end of JSON input"},
		{"terminal codes", `{"version": "` + "\x1b[2J" + `"}`, `it is not what a server writes: invalid character '\x1b' in string literal`},
		{"too large", strings.Repeat(" ", maxAnnouncement+1), "it is larger than 16384 bytes"},
		{"version", with(func(a *control.Announcement) { a.Version = 1 }), "it is of version 1, and this program knows version 2: use the packs-mcp that the server was started with"},
		{"no pid", with(func(a *control.Announcement) { a.PID = 0 }), "it has the pid 0"},
		{"pid of a group", with(func(a *control.Announcement) { a.PID = -1 }), "it has the pid -1"},
		{"another machine", with(func(a *control.Announcement) { a.Address = "192.0.2.1:80" }), `its address "192.0.2.1:80" is not on this machine's loopback interface`},
		{"a name", with(func(a *control.Announcement) { a.Address = "localhost:80" }), `its address "localhost:80" is not on this machine's loopback interface`},
		{"any address", with(func(a *control.Announcement) { a.Address = "0.0.0.0:80" }), `its address "0.0.0.0:80" is not on this machine's loopback interface`},
		{"mapped address", with(func(a *control.Announcement) { a.Address = "[::ffff:192.0.2.1]:80" }), `its address "[::ffff:192.0.2.1]:80" is not on this machine's loopback interface`},
		{"zone", with(func(a *control.Announcement) { a.Address = "[::1%lo]:80" }), `its address "[::1%lo]:80" is not on this machine's loopback interface`},
		{"user part", with(func(a *control.Announcement) { a.Address = "127.0.0.1:80@192.0.2.1:80" }), `its address "127.0.0.1:80@192.0.2.1:80" is not on this machine's loopback interface`},
		{"no port", with(func(a *control.Announcement) { a.Address = "127.0.0.1:0" }), `its address "127.0.0.1:0" is not on this machine's loopback interface`},
		{"no key", with(func(a *control.Announcement) { a.Key = "" }), "it has no key"},
		{"key of two lines", with(func(a *control.Announcement) { a.Key = testKey + "\r\nHost: x" }), "it has no key"},
		{"nobody answers", with(func(a *control.Announcement) { a.Address = closed.Listener.Addr().String() }), "does not answer here: asking the server: "},
		{"wrong key", forbidden, `does not answer here: no\x1b[2J`},
		{"too much", talks, "does not answer here: the server's answer is too long"},
		{"redirect", redirects, "does not answer here: the server answered with the status 307"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := runFolder(t)
			data, ok := tc.data.(string)
			if !ok {
				b, err := json.Marshal(tc.data)
				if err != nil {
					t.Fatal(err)
				}
				data = string(b)
			}
			path := plantFile(t, dir, "7-abc.json", []byte(data))
			found, err := find(t.Context(), []string{dir}, neverGone)
			if err != nil {
				t.Fatalf("find() = %v, want no error", err)
			}
			if tc.want == "" {
				if len(found.Servers) != 1 || len(found.Skipped) != 0 {
					t.Fatalf("find() = %+v, want one server", found)
				}
				if s := found.Servers[0]; s.PID != os.Getpid() || s.Name != "pid-1" || s.Project != good.Project || !s.Started.Equal(good.Started) {
					t.Errorf("find() = %+v, want what was announced", s)
				}
				return
			}
			if len(found.Servers) != 0 || len(found.Skipped) != 1 {
				t.Fatalf("find() = %+v, want %s skipped", found, path)
			}
			if found.Skipped[0].File != path || !strings.Contains(found.Skipped[0].Reason, tc.want) {
				t.Errorf("find() = %+v, want %s skipped with %q", found, path, tc.want)
			}
			// Calls may wait at a server that could not be asked.
			if want := strings.Contains(tc.want, "does not answer") || tc.name == "version"; found.Skipped[0].Silent != want {
				t.Errorf("find() says that a server is silent: %v, want %v", !want, want)
			}
			if _, err := os.Lstat(path); err != nil {
				t.Errorf("find() removed the file of a process that is there: %v", err)
			}
		})
	}
}

func TestFindLooksAtAnnouncementsOnly(t *testing.T) {
	dir := runFolder(t)
	a := serveControl(t, emptyQueue())
	early := a
	early.Server, early.Started = "early", a.Started.Add(-time.Hour)
	plantAnnouncement(t, dir, "2-a.json", a)
	plantAnnouncement(t, dir, "1-b.json", early)
	plantAnnouncement(t, dir, ".3-c.json", a) // not in place yet
	plantAnnouncement(t, dir, "4-d.json.tmp", a)
	plantFile(t, dir, "open-x.html", []byte("<form>"))
	found, err := Find(t.Context(), dir)
	if err != nil {
		t.Fatalf("Find() = %v, want no error", err)
	}
	var names []string
	for _, s := range found.Servers {
		names = append(names, s.Name)
	}
	if diff := cmp.Diff([]string{"early", "pid-1"}, names); diff != "" || len(found.Skipped) != 0 {
		t.Errorf("Find() differs (-want +got):\n%s\nskipped %v", diff, found.Skipped)
	}
}

// An ended process's announcement is removed. Its address, which may now be
// another program's, gets no key.
func TestFindRemovesWhatEndedServersLeft(t *testing.T) {
	dir := runFolder(t)
	ended := serveControl(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the address of an ended process was asked for %s", r.URL)
	}))
	ended.PID = 4242
	path := plantAnnouncement(t, dir, "4242-a.json", ended)
	kept := plantAnnouncement(t, dir, "1-b.json", serveControl(t, emptyQueue()))
	found, err := find(t.Context(), []string{dir}, func(pid int) bool { return pid == 4242 })
	if err != nil || len(found.Servers) != 1 || len(found.Skipped) != 0 {
		t.Errorf("find() = %+v, %v; want one server", found, err)
	}
	if _, err := os.Lstat(path); err == nil {
		t.Error("the announcement of an ended process is still there")
	}
	if _, err := os.Lstat(kept); err != nil {
		t.Errorf("the announcement of a running process: %v", err)
	}
	if runfolder.ProcessGone(os.Getpid()) {
		t.Error("processGone(this process) = true, want false")
	}
}

func TestFindWithoutAFolder(t *testing.T) {
	dir := t.TempDir()
	if found, err := Find(t.Context(), filepath.Join(dir, "none")); err != nil || len(found.Servers)+len(found.Skipped) != 0 {
		t.Errorf("Find(no folder) = %+v, %v; want nothing and no error", found, err)
	}
	plantFile(t, dir, "file", nil)
	file := filepath.Join(dir, "file")
	want := Found{Skipped: []Skipped{{File: file, Reason: "it is not a folder"}}}
	if found, err := Find(t.Context(), file); err != nil || !reflect.DeepEqual(found, want) {
		t.Errorf("Find(a file) = %+v, %v; want %+v", found, err, want)
	}
}

// A server that was given another environment announces itself in another folder.
func TestFindInEveryFolder(t *testing.T) {
	first, second := runFolder(t), runFolder(t)
	older, newer := serveControl(t, emptyQueue()), serveControl(t, emptyQueue())
	newer.Server, newer.Started = "pid-2", older.Started.Add(time.Minute)
	plantAnnouncement(t, first, "7-new.json", newer)
	plantAnnouncement(t, second, "7-old.json", older)
	same := filepath.Join(filepath.Dir(second), ".", "..", filepath.Base(filepath.Dir(second)), "run")
	notThere := filepath.Join(t.TempDir(), "run")
	found, err := find(t.Context(), []string{first, notThere, second, second, same}, neverGone)
	if err != nil || len(found.Servers) != 2 || len(found.Skipped) != 0 {
		t.Fatalf("find() = %+v, %v; want two servers, each once", found, err)
	}
	if got := []string{found.Servers[0].Name, found.Servers[1].Name}; got[0] != "pid-1" || got[1] != "pid-2" {
		t.Errorf("find() has the servers %q, want the older one first", got)
	}
}
