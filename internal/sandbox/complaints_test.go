package sandbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestComplaints(t *testing.T) {
	for line, want := range map[string]string{
		"cat: /root/.ssh/id_rsa: Permission denied":                         "EACCES use /root/.ssh/id_rsa",
		"cat: /root/.ssh/id_rsa: No such file or directory":                 "ENOENT use /root/.ssh/id_rsa",
		"/bin/sh: 1: cannot create /packs/x/y: Read-only file system":       "EROFS change /packs/x/y",
		"sh: line 1: /packs/x/y: Read-only file system":                     "EROFS change /packs/x/y",
		"touch: cannot touch '/packs/a b': Permission denied":               "EACCES change /packs/a b",
		"touch: cannot touch 'x': Read-only file system":                    "EROFS change x",
		"mkdir: cannot create directory ‘/usr/x’: Operation not permitted":  "EPERM change /usr/x",
		"PermissionError: [Errno 13] Permission denied: '/home/ada/.netrc'": "EACCES use /home/ada/.netrc",
		"Error: EACCES: permission denied, open '/home/ada/.npmrc'":         "EACCES use /home/ada/.npmrc",
		"FileNotFoundError: [Errno 2] No such file or directory: 'x.txt'":   "",
		"curl: (6) Could not resolve host: example.com":                     "EAI use",
		"OSError: [Errno 101] Network is unreachable":                       "ENETUNREACH use",
		"sh: 3: Cannot fork": "EAGAIN use",
		"sh: fork: retry: Resource temporarily unavailable": "EAGAIN use",
		"dd: error writing 'big': File too large":           "EFBIG change big",
		"MemoryError": "ENOMEM use",
		"OSError: [Errno 24] Too many open files: 'f'":     "EMFILE use f",
		"unshare: unshare failed: Operation not permitted": "EPERM use",
		"hello": "",
		"":      "",
	} {
		if got := complaintIn(line); got != want {
			t.Errorf("complaintIn(%q) = %q, want %q", line, got, want)
		}
	}
	long := strings.Repeat("x", 10_000)
	r := Result{
		Stderr: Capture{Head: []byte("cat: /a: Permission denied\ncat: /a: Permission denied\n"), Tail: []byte(strings.Repeat("cat: /b: Permission denied\n", 50) + "cat: /" + long + ": Permission denied")},
		Stdout: Capture{Head: []byte("curl: (6) Could not resolve host: x\n")},
		// Partial lines around the cut.
		Merged: Capture{Head: []byte("x\ncat: Permission denied: /sec"), Tail: []byte("ret/x: Permission denied\n"), Dropped: 1},
	}
	if diff := cmp.Diff([]string{"EACCES use /a", "EACCES use /b", "EAI use"}, r.Complaints()); diff != "" {
		t.Errorf("Complaints() differs (-want +got):\n%s", diff)
	}
}
