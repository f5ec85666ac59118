package sandbox

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Names that [Result.Complaints] uses for system errors in a program's output.
const (
	ErrorAccess    = "EACCES"
	ErrorPermitted = "EPERM"
	ErrorReadOnly  = "EROFS"
	ErrorMissing   = "ENOENT"
	ErrorNetwork   = "ENETUNREACH"
	ErrorName      = "EAI" // a host name that cannot be resolved
	ErrorAgain     = "EAGAIN"
	ErrorTooLarge  = "EFBIG"
	ErrorFull      = "ENOSPC"
	ErrorFiles     = "EMFILE"
	ErrorMemory    = "ENOMEM"
	ErrorNoCall    = "ENOSYS"
)

// maxComplaints bounds how many complaints are kept, and maxComplaint how many bytes
// of a line are searched.
const (
	maxComplaints = 16
	maxComplaint  = 4 << 10
)

// complaint is one wording that programs use for a system error.
type complaint struct {
	errno string
	words *regexp.Regexp
}

var complaints = sync.OnceValue(func() []complaint {
	re := regexp.MustCompile
	return []complaint{
		{ErrorReadOnly, re(`(?i)read-only file system|EROFS`)},
		{ErrorAccess, re(`(?i)permission denied|EACCES|access is denied`)},
		{ErrorPermitted, re(`(?i)operation not permitted|\bEPERM\b`)},
		{ErrorTooLarge, re(`(?i)file too large|file size limit exceeded|EFBIG`)},
		{ErrorFull, re(`(?i)no space left on device|disk quota exceeded|ENOSPC`)},
		{ErrorFiles, re(`(?i)too many open files|EMFILE`)},
		{ErrorMemory, re(`(?i)cannot allocate memory|out of memory|memory exhausted|std::bad_alloc|\bMemoryError\b|ENOMEM`)},
		{ErrorAgain, re(`(?i)resource temporarily unavailable|can(?:no|')t fork|BlockingIOError|EAGAIN|can't start new thread`)},
		{ErrorName, re(`(?i)could not resolve host|temporary failure in name resolution|name or service not known|EAI_AGAIN|no such host|unable to resolve host`)},
		{ErrorNetwork, re(`(?i)network is unreachable|ENETUNREACH|no route to host`)},
		{ErrorNoCall, re(`(?i)function not implemented|bad system call|ENOSYS`)},
		{ErrorMissing, re(`(?i)no such file or directory|ENOENT`)},
	}
})

// namedPath finds paths in a message: quoted ones, and those without spaces.
var namedPath = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`'([^'\n]+)'|"([^"\n]+)"|‘([^’\n]+)’|((?:~|\.{1,2})?/[^\s:'",;)]*)`)
})

// Complaints returns the errors of the system that the program wrote about, each as
// "EACCES change /path" or "EACCES use /path": the error, whether the message is
// about making or changing something, and the path that it names, if any. The program
// chose these words and can write what it likes.
func (r *Result) Complaints() []string {
	var all []string
	add := func(text []byte) {
		for line := range strings.Lines(string(text)) {
			if c := complaintIn(strings.TrimSpace(line)); c != "" && len(all) < maxComplaints && !slices.Contains(all, c) {
				all = append(all, c)
			}
		}
	}
	for _, c := range []Capture{r.Stderr, r.Stdout, r.Merged} {
		head, tail := c.Head, c.Tail
		if c.Truncated() {
			// A cut line may hold part of a secret, which redaction would not recognize.
			head = head[:bytes.LastIndexByte(head, '\n')+1]
			if i := bytes.IndexByte(tail, '\n'); i >= 0 {
				tail = tail[i+1:]
			} else {
				tail = nil
			}
		}
		add(head)
		add(tail)
	}
	return all
}

var changing = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:creat\w*|touch|mkdir|make|remove|unlink|rename|move|mv|writ\w*|overwrite|chmod|chown|rm|cp|truncate|append|redirect\w*|permissions of|mode of)\b`)
})

func complaintIn(line string) string {
	if len(line) > maxComplaint {
		return ""
	}
	for _, c := range complaints() {
		at := c.words.FindStringIndex(line)
		if at == nil {
			continue
		}
		path := pathIn(line[at[1]:], false)
		if path == "" {
			path = pathIn(line[:at[0]], true)
		}
		if c.errno == ErrorMissing && !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "~") {
			return "" // a file that was never there, most likely
		}
		verb := "use"
		if c.errno == ErrorReadOnly || changing().MatchString(line[:at[0]]) {
			verb = "change"
		}
		return strings.TrimSpace(c.errno + " " + verb + " " + path)
	}
	return ""
}

// pathIn returns the first or the last path that text names. Quoted words without a
// slash count only if there is no other path.
func pathIn(text string, last bool) (path string) {
	word := ""
	for _, m := range namedPath().FindAllStringSubmatch(text, -1) {
		found := m[1] + m[2] + m[3] + m[4]
		switch {
		case !strings.Contains(found, "/"):
			word = found
		case last || path == "":
			path = found
		}
	}
	if path == "" {
		return word
	}
	return path
}
