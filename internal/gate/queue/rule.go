package queue

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// Rule puts a verdict on the question with this code, as a person typed it. If no
// call waits for it, it can be used for the time lasts. The first verdict counts;
// only a denial can take back another. An error is a [*CodeError].
func (q *Queue) Rule(typed string, v Verdict, lasts time.Duration) (*Ruling, error) {
	code := canonicalCode(typed)
	if q.board != nil {
		return q.ruleShared(code, v, lasts)
	}
	defer q.lock()()
	e := q.entries[code]
	if e == nil {
		return nil, q.endOf(code)
	}
	if problem := e.refuses(v); problem != nil {
		return nil, problem
	}
	r := q.rules(e, v, lasts)
	if e.ruling == nil {
		close(e.decided)
	}
	e.ruling, e.shown = r, r.Shown
	q.change()
	return r, nil
}

// rules returns the ruling that a verdict makes on a question, and does not make it. The
// caller holds the lock.
func (q *Queue) rules(e *Entry, v Verdict, lasts time.Duration) *Ruling {
	v.Values = maps.Clone(v.Values)
	if e.shown.Gone && v.Decision != Deny {
		how := v.Note
		v.Note = "the client was gone, and it was chosen to run all the same"
		if how != "" {
			v.Note += "; " + how
		}
	}
	r := &Ruling{Verdict: v, At: q.now(), Entry: e, Before: e.ruling, Shown: e.shown}
	if !e.holder.waits() {
		r.Shown.Waits, r.Shown.Expires = time.Time{}, r.At.Add(lasts)
		r.Shown.Note = "Allowed. It holds once, when the client makes the call again."
		if r.Shown.Carried {
			r.Shown.Note = noteStillShown
		}
	}
	if !e.holder.waits() || !q.isHere(e) {
		r.settled = make(chan struct{})
	}
	r.Shown.Answered = v.Decision
	return r
}

// endOf returns how the question with a code ended. The caller holds the lock.
func (q *Queue) endOf(code string) *CodeError {
	for _, ended := range slices.Backward(q.ended) {
		if ended.Code == code {
			return &ended
		}
	}
	return &CodeError{Code: safetext.Line(code), Problem: CodeUnknown}
}

// refuses returns why a verdict cannot be given on a question, or nil if it can. The
// caller holds the queue's lock.
func (e *Entry) refuses(v Verdict) *CodeError {
	code := e.shown.Code
	if e.ruling != nil && (v.Decision != Deny || e.ruling.Decision == Deny) {
		return &CodeError{Code: code, Problem: CodeAnswered, Detail: Answered(e.ruling.Decision, e.ruling.Channel, e.ruling.At)}
	}
	value := v.Decision.String()
	if !Offers(e.shown.Choices, v.Decision) {
		return &CodeError{Code: code, Problem: CodeInvalid, Detail: fmt.Sprintf("%q is none of the answers that are offered", safetext.Line(value))}
	}
	if v.Decision == Deny {
		return nil
	}
	if e.shown.Gone && !v.Gone {
		return &CodeError{Code: code, Problem: CodeGone, Detail: "its client is gone, so nobody may take the result; it is not allowed unless you say that it is to run all the same"}
	}
	if problem := MissingValue(e.shown.Fields, v.Values); problem != "" {
		return &CodeError{Code: code, Problem: CodeInvalid, Detail: problem}
	}
	return nil
}
