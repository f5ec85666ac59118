// Package audit keeps a log of what was asked, who decided, and what ran: one
// JSON line per event, each bound to the one before it by a hash.
//
// Several processes may append to one file. Verify finds a line that was
// changed, dropped, repeated or moved, and lines that were cut off the end. The
// log is neither secret nor signed: anyone who can write the file can also write
// a whole new chain. The mode 0600 keeps others away, and a [Report].Hash noted
// elsewhere pins a log down. A log removes what looks like an access token or a
// private key from every string of an entry; see package tokens. It redacts
// nothing else: what must not be in the log must not be in the [Entry].
//
// # How to check a line by hand
//
// A line is a JSON object without spaces or line breaks between its members,
// whose last two members are "prev" and "hash". Hash is the SHA-256, in lower
// case hexadecimal, of the bytes of the line without its hash member and
// without its line feed; prev is the hash of the line before, or 64 zeros in
// the first:
//
//	sed -n 1p audit.jsonl | sed 's/,"hash":"[0-9a-f]*"}$/}/' | tr -d '\n' | sha256sum
//
// # Files
//
// Beside PATH there are PATH.lock, which writers lock, and PATH.head, which
// holds the sequence number and the hash of the last line. When the log reaches
// its maximum size it is renamed: audit.jsonl to audit-000000000001.jsonl, where
// the number is that of its first entry. The first line of the next file
// continues the chain. Nothing is ever removed.
package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// Event says what an entry records.
type Event string

// The events. Entries with other events are kept and verified too, so that a
// later version can add events.
const (
	EventServerStart Event = "server.start" // a server began to serve
	EventServerStop  Event = "server.stop"  // a server shut down cleanly
	EventDecision    Event = "decision"     // a call was allowed or denied: kind, decision, channel, reason
	EventRefusal     Event = "refusal"      // a call was refused before anyone was asked: code, reason; or count calls were refused or denied
	EventRunStart    Event = "run.start"    // a program is about to start: the intent
	EventRunEnd      Event = "run.end"      // it ended, or could not be started: error
	EventChanges     Event = "changes"      // what happened to a run's changes in a folder: dir, set, applied, held, refused, error
	EventAttach      Event = "attach"       // a pack was attached
	EventDetach      Event = "detach"       // a pack was detached
	EventSource      Event = "source"       // a pack was added, updated or removed: pack_digest, which is empty for a removed one; reason says where from
	EventRevoke      Event = "revoke"       // a grant was revoked: grant, channel
	EventRecovered   Event = "recovered"    // the log was found damaged and continued; only the log writes it
)

// ErrClosed is returned by the methods of a closed log.
var ErrClosed = errors.New("audit log is closed")

// ErrTooLong is returned for an entry whose line would be longer than 32 MiB.
var ErrTooLong = errors.New("audit entry is too long")

// maxLine bounds one line, so that a reader needs bounded memory. A request is at most
// 8 MiB unless limits.request says otherwise, and escaping makes few of its bytes longer.
const maxLine = 32 << 20

// A Contact is what became of the tries of a run to reach one host, which may be the
// program's own words.
type Contact struct {
	Host     string `json:"host"`               // name and port, or "others"
	Address  string `json:"address,omitempty"`  // that was connected to
	Refused  string `json:"refused,omitempty"`  // why it was not reached
	Times    int    `json:"times"`              // how often
	Sent     int64  `json:"sent,omitempty"`     // bytes, of all times
	Received int64  `json:"received,omitempty"` // the same
}

// Entry is one line of the log. Empty members are left out, except seq, time,
// event and prev. The log sets Seq, Prev and Hash, and it sets Time and Server
// when they are empty.
type Entry struct {
	Seq    int64     `json:"seq"`              // 1 in the first line, then one more each time
	Time   time.Time `json:"time"`             // UTC, RFC 3339 with nanoseconds
	Event  Event     `json:"event"`            // what happened
	Server string    `json:"server,omitempty"` // the process that wrote the line
	Chat   string    `json:"chat,omitempty"`   // the conversation
	Caller string    `json:"caller,omitempty"` // whose credential, over HTTP
	Client string    `json:"client,omitempty"` // name and version that the client gave
	Call   string    `json:"call,omitempty"`   // one call; ties a decision to its run
	Run    string    `json:"run,omitempty"`    // one run; ties run.start to run.end

	Kind       string `json:"kind,omitempty"`        // open, read, enable, run, exec …, as in rules
	Tool       string `json:"tool,omitempty"`        // name of the tool that was called
	Pack       string `json:"pack,omitempty"`        // id of the pack
	PackDigest string `json:"pack_digest,omitempty"` // digest of the pack's files
	CallDigest string `json:"call_digest,omitempty"` // digest of everything that was approved
	ArgsDigest string `json:"args_digest,omitempty"` // digest of the arguments as received

	Decision string   `json:"decision,omitempty"` // once, chat, always, deny; pending: nobody has answered yet
	Channel  string   `json:"channel,omitempty"`  // who was asked, and how
	Approver string   `json:"approver,omitempty"` // who answered, if that was not the caller, or if the configuration says who may
	Reason   string   `json:"reason,omitempty"`   // why it was decided so, in words
	Grant    string   `json:"grant,omitempty"`    // id of the grant that allowed the call, that the answer made, or that was revoked
	Code     string   `json:"code,omitempty"`     // of a refusal: the error that the caller got
	Count    int      `json:"count,omitempty"`    // of a refusal: how many calls the line covers, when more than one
	Rule     string   `json:"rule,omitempty"`     // where the deciding rule is written, as in "config.yaml:12"
	Changed  []string `json:"changed,omitempty"`  // why an earlier grant did not apply: what changed since, one fact each

	Program       string   `json:"program,omitempty"`        // absolute path of the program
	ProgramDigest string   `json:"program_digest,omitempty"` // digest of the bytes of the program
	Argv          []string `json:"argv,omitempty"`           // the program and its arguments, redacted by the caller
	Dir           string   `json:"dir,omitempty"`            // the folder that the program runs in, or that changed
	Sandbox       string   `json:"sandbox,omitempty"`        // the level: full, partial, none
	Runner        string   `json:"runner,omitempty"`         // where it ran, if not on the server's system: container, or container:RUNTIME
	Image         string   `json:"image,omitempty"`          // id of the image that it ran in
	Network       string   `json:"network,omitempty"`        // what of it the run had: none, loopback, full, hosts
	Hosts         []string `json:"hosts,omitempty"`          // with network hosts: what the run could reach, names with ports
	Reads         []string `json:"reads,omitempty"`          // of run.start: folders and files that the run may read, besides the system's
	Writes        []string `json:"writes,omitempty"`         // of run.start: folders that it may also change
	Closed        []string `json:"closed,omitempty"`         // of run.start: folders of reads that it should have been able to change, but that could not get a layer
	Review        string   `json:"review,omitempty"`         // of run.start: which setting holds every change until a person has seen it, as in "config.yaml:12"
	Cache         string   `json:"cache,omitempty"`          // of run.start: the tool's name for the folder of writes that it keeps between its runs
	Limits        *Limits  `json:"limits,omitempty"`         // of run.start: what bounded the run

	ExitCode    *int     `json:"exit_code,omitempty"`    // what the program exited with, if it did
	Signal      string   `json:"signal,omitempty"`       // the signal that ended the program
	Cause       string   `json:"cause,omitempty"`        // why the run ended, if it did not exit by itself
	StdoutBytes int64    `json:"stdout_bytes,omitempty"` // how much the program wrote to standard output
	StderrBytes int64    `json:"stderr_bytes,omitempty"` // the same of standard error
	DurationMS  int64    `json:"duration_ms,omitempty"`  // how long the run took
	CPUMS       int64    `json:"cpu_ms,omitempty"`       // processor time
	MaxRSS      int64    `json:"max_rss,omitempty"`      // bytes of the largest process
	CacheFull   bool     `json:"cache_full,omitempty"`   // the cache was emptied after this run, or after other runs that share it
	Artifacts   []string `json:"artifacts,omitempty"`    // paths of files that the run left in the workspace

	// Contacts are, in run.end with the network hosts, what the run reached and what it
	// was refused. At most 32 of each are told apart.
	Contacts []Contact `json:"contacts,omitempty"`

	// Of a changes event: paths in the folder Dir. Held and refused ones have
	// reasons.
	Set     string   `json:"set,omitempty"`     // id of the change set
	Applied []string `json:"applied,omitempty"` // paths that were changed
	Held    []string `json:"held,omitempty"`    // paths whose changes wait for a person, with the reasons
	// Refused lists, in a changes event, what is never applied; in run.end, the
	// system errors that the program reported, each with the path that it named.
	Refused []string `json:"refused,omitempty"`

	Error string `json:"error,omitempty"` // why it failed

	Recovered *Recovery `json:"recovered,omitempty"` // of a recovered event: how the log was found

	Args strictjson.Compact `json:"args,omitzero"` // the arguments, redacted by the caller

	Prev string `json:"prev"`           // hash of the line before; zeros in the first
	Hash string `json:"hash,omitempty"` // of this line without it
}

// Limits are the limits of one run.
type Limits struct {
	TimeoutMS  int64 `json:"timeout_ms"`                // by the clock
	CPUMS      int64 `json:"cpu_ms"`                    // processor time
	Memory     int64 `json:"memory"`                    // bytes, of each process
	Together   int64 `json:"memory_together,omitempty"` // bytes, of all processes of the run; where a control group bounds them
	Processors int   `json:"processors,omitempty"`      // the same
	Processes  int   `json:"processes"`                 // of the run
	OpenFiles  int   `json:"open_files"`                // of each process
	FileSize   int64 `json:"file_size"`                 // bytes
	Workspace  int64 `json:"workspace"`                 // bytes
	Cache      int64 `json:"cache,omitempty"`           // bytes between runs, of a tool with one
	OutputSize int64 `json:"output_total"`              // bytes
}

// Recovery describes the state in which a recovered event found the log.
type Recovery struct {
	// Torn is the unfinished end of the log, which a crash or a full disk left
	// behind; nil when there is none.
	Torn *Fragment `json:"torn,omitempty"`
	// Missing counts entries that the head file knew about but the log lacked.
	Missing int64 `json:"missing,omitempty"`
	// Head is "lost" when the head file was absent or unreadable, and
	// "differs" when it did not belong to the last lines.
	Head string `json:"head,omitempty"`
}

// The values of Recovery.Head.
const (
	headLost    = "lost"
	headDiffers = "differs"
)

// Fragment identifies bytes that are not an entry: everything between the last
// intact line and the recovered event, without the line feed at its end.
type Fragment struct {
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// maxSeq is the highest sequence number: the largest integer that every JSON
// reader keeps exactly.
const maxSeq = 1 << 53

// zeroHash is the prev of the first line.
const zeroHash = "0000000000000000000000000000000000000000000000000000000000000000"

// argsMember and prevMember are what comes before the arguments and before the hash
// of the line before.
const (
	argsMember = `,"args":`
	prevMember = `,"prev":"`
)

// hashMember is what comes between the hashed part of a line and its hash.
const hashMember = `,"hash":"`

// hashSuffix is the length of a line's end: the hash member and the brace.
const hashSuffix = len(hashMember) + sha256.Size*2 + len(`"}`)

// encode sets e.Hash and returns e's line, with its line feed.
func encode(e *Entry) ([]byte, error) {
	e.Hash = ""
	rest := *e
	rest.Args = strictjson.Compact{}
	line, err := strictjson.Encode(&rest)
	if err != nil {
		return nil, fmt.Errorf("encoding audit entry: %w", err)
	}
	if !e.Args.IsZero() {
		// The encoder would read the arguments once more. Nothing but digits comes
		// after the last prevMember.
		line = slices.Insert(line, bytes.LastIndex(line, []byte(prevMember)), []byte(argsMember+e.Args.String())...)
	}
	line = escape(line)
	if len(line)+hashSuffix > maxLine {
		return nil, fmt.Errorf("%w: its line has %d bytes, the limit is %d", ErrTooLong, len(line)+hashSuffix, maxLine)
	}
	sum := sha256.Sum256(line)
	e.Hash = hex.EncodeToString(sum[:])
	line = append(line[:len(line)-1], hashMember...)
	line = append(line, e.Hash...)
	return append(line, "\"}\n"...), nil
}

// blankLetters are letters that display as nothing or as a space, although
// Unicode does not class them as spaces.
const blankLetters = "\u115f\u1160\u2800\u3164\uffa0"

// maxMarks is the most combining marks that one letter has in any language.
const maxMarks = 3

// escape writes the characters that cannot be seen, or that reorder others, as
// \u escapes: people look at the log with plain tools, and a file name in it
// must not be able to drive their terminal. In JSON text such characters can
// only stand inside a string.
func escape(line []byte) []byte {
	plain := func(b byte) bool { return b < 0x7f }
	first := 0
	for first < len(line) && plain(line[first]) {
		first++
	}
	if first == len(line) {
		return line
	}
	out := append(make([]byte, 0, len(line)+64), line[:first]...)
	marks := 0 // in a row, so all on one letter
	for rest := line[first:]; len(rest) > 0; {
		r, n := utf8.DecodeRune(rest)
		if unicode.In(r, unicode.Mn, unicode.Me) {
			marks++
		} else {
			marks = 0
		}
		switch {
		case r == utf8.RuneError && n == 1:
			out = append(out, `\ufffd`...)
		case unicode.IsPrint(r) && marks <= maxMarks && !strings.ContainsRune(blankLetters, r):
			out = append(out, rest[:n]...)
		case r > 0xffff:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
		rest = rest[n:]
	}
	return out
}

// parse reads a line without its line feed. It reports whether the line is
// intact: an entry that has the hash it names.
func parse(line []byte) (e Entry, intact bool, err error) {
	if err := json.Unmarshal(line, &e); err != nil {
		return Entry{}, false, err
	}
	cut := len(line) - hashSuffix
	if cut < 1 || !bytes.HasPrefix(line[cut:], []byte(hashMember)) {
		return e, false, nil
	}
	h := sha256.New()
	h.Write(line[:cut])
	h.Write([]byte("}"))
	sum := hex.EncodeToString(h.Sum(nil))
	end := line[cut+len(hashMember):]
	return e, string(end) == sum+`"}` && e.Hash == sum && e.Seq > 0 && e.Seq <= maxSeq, nil
}
