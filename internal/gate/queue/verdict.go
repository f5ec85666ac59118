package queue

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
	"github.com/packs-mcp/packs-mcp/internal/gate/call"
	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// A Decision is a person's answer. The zero Decision is a denial.
type Decision string

const (
	Deny Decision = ""     // this call does not happen
	Once Decision = "once" // this exact call, one time
	Chat Decision = "chat" // and calls like it, until the chat ends
	// Always allows calls like it in every chat, until anything about it changes.
	Always Decision = "always"
)

// denyWord is how a denial is spelled on the wire and in the log.
const denyWord = "deny"

func (d Decision) String() string {
	if d == Deny {
		return denyWord
	}
	return string(d)
}

// ParseDecision returns the decision that String spells as word. ok is false if there
// is none.
func ParseDecision(word string) (d Decision, ok bool) {
	switch word {
	case denyWord:
		return Deny, true
	case string(Once), string(Chat), string(Always):
		return Decision(word), true
	}
	return Deny, false
}

// A Verdict is what a person decided about a pending call.
type Verdict struct {
	Decision Decision
	Values   map[string]string // :: a field's name → what the person filled in
	Channel  string            // how the person was asked: one of the channels above
	Note     string            // how it was given, for the log; may be empty
	// By is the person who decided; nil is the operator, at the server's own page or
	// terminal.
	By *approvers.Person
	// Gone says that the person allows the call although its client is gone.
	Gone bool
	// Nobody says that no person decided this: it is a denial caused by a wrong
	// answer, which Note describes.
	Nobody bool
}

// A Choice is one answer that a person may give, in the words shown with it.
type Choice struct {
	Value string // "once", "chat", "always" or "deny"
	// Title has at most 40 characters, the first of which say how far the answer
	// reaches: "Chat: this tool, any arguments".
	Title string
	// Means is a sentence: what the answer covers, and until when.
	Means string
	// Lasts says that "once" holds for later calls too, as Title says.
	Lasts bool
}

// Offers reports whether a decision is one of the choices. [Deny] is the only denial:
// a Decision made from the word "deny" does not equal it.
func Offers(choices []Choice, d Decision) bool {
	return d != denyWord && slices.ContainsFunc(choices, func(c Choice) bool { return c.Value == d.String() })
}

// maxValue bounds what a person fills in, in bytes.
const maxValue = 16 << 10

// MissingValue returns what is wrong with the values that were filled in; empty for
// nothing.
func MissingValue(fields []call.Field, values map[string]string) string {
	for _, f := range fields {
		switch v := values[f.Name]; {
		case strings.TrimSpace(v) == "":
			return fmt.Sprintf("it needs a value for %q", f.Name)
		case len(v) > maxValue:
			return fmt.Sprintf("the value for %q is too long", f.Name)
		case strings.ContainsRune(v, 0):
			return fmt.Sprintf("the value for %q has a NUL character", f.Name)
		}
	}
	for n := range values {
		if !slices.ContainsFunc(fields, func(f call.Field) bool { return f.Name == n }) {
			return fmt.Sprintf("it has no field %q", safetext.Line(n))
		}
	}
	return ""
}

// A Ruling is a verdict on an entry of the queue. If no call of this process waits
// for it, the code that made the decision records it at once and calls
// [Ruling.Settle].
type Ruling struct {
	Verdict
	At     time.Time
	Entry  *Entry
	Shown  Pending // the question with the verdict
	Before *Ruling // the ruling that this one takes back; nil if it is the first
	// Rev is the revision of the store with which it was given; 0 if replicas do not
	// share the questions.
	Rev uint64

	settled chan struct{} // closed by Settle; nil when a call of this process waits
	err     error         // from recording it; read it only after settled is closed
	kept    string        // digest of the grant that it made; read like err
}

// Late reports whether no call of this process waits for the ruling.
func (r *Ruling) Late() bool { return r.settled != nil }

// Settle says that a late ruling was recorded, or why it was not, and the digest of
// the grant that it made, if any. It is called once.
func (r *Ruling) Settle(kept string, err error) {
	r.kept, r.err = kept, err
	close(r.settled)
}

// Settled waits until a late ruling is recorded, and returns the arguments of
// [Ruling.Settle]. For any other ruling it returns zero values at once.
func (r *Ruling) Settled() (kept string, err error) {
	if r.settled == nil {
		return "", nil
	}
	<-r.settled
	return r.kept, r.err
}

// Answered returns how and when a call was decided about, for people.
func Answered(d Decision, channel string, at time.Time) string {
	done := "allowed"
	if d == Deny {
		done = "denied"
	}
	return fmt.Sprintf("it was answered before: %s, %s at %s", done, spokenChannel(channel), Clock(at))
}

// Clock formats a time of day for people.
func Clock(t time.Time) string { return t.Local().Format("15:04:05") }
