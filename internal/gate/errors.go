package gate

import (
	"errors"
	"fmt"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/gate/queue"
	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// ErrDenied is the decision that a call does not happen. Errors that are
// denials match it and are a *[DeniedError].
var ErrDenied = errors.New("denied")

// A DeniedError says why a call does not happen, in words for a model and a
// person.
type DeniedError struct {
	Reason string // what happened
	Hint   string // what to do now
	// Code names the question under which a person can still allow the call for
	// when it is made again; empty if nobody can.
	Code string
	// Unavailable says that the store that replicas share cannot be reached, so nobody
	// decided this, or it could not be recorded.
	Unavailable bool
	// Unasked says that there was nobody to ask: no person decided this.
	Unasked bool
	// OverLimit says that the person, or a group of theirs, has as much as they may:
	// the call may be made again later.
	OverLimit bool
	// Invalid says that the answer came with a state that belongs to no open
	// question about this call, so no person decided this either.
	Invalid bool
}

func (e *DeniedError) Error() string { return "denied: " + e.Reason }

func (e *DeniedError) Is(target error) bool { return target == ErrDenied }

// A PendingError says that nobody has answered yet, and that an answer will hold
// when the same call is made again. Nothing happened.
type PendingError struct {
	Code    string
	Expires time.Time
	Hint    string // what to do now
	// InChat says that the client shows the question on a card when the model asks
	// for it. Hint is then what else the user can do; it may be empty.
	InChat bool
}

func (e *PendingError) Error() string {
	return fmt.Sprintf("nobody has answered yet; the question stays open under the code %s until %s", e.Code, queue.Clock(e.Expires))
}

func (e *PendingError) Is(target error) bool { return target == ErrDenied }

// A WeakSandboxError denies a run because programs cannot be confined here as
// strongly as the run or the configuration requires.
type WeakSandboxError struct {
	Place         sandbox.Place // where it would run
	Have, Require sandbox.Level
	// Network is what cannot be confined at level Have. It is none if the
	// configuration requires a stronger level.
	Network sandbox.Network
	Hint    string // how to get a better level on this machine, or empty
}

func (e *WeakSandboxError) Error() string {
	switch {
	case !e.Place.Local() && e.Network == sandbox.NetworkFull:
		return fmt.Sprintf("it needs the network %q, and it is to run in a container, which has no network but its own", e.Network)
	case !e.Place.Local() && e.Network == sandbox.NetworkNone:
		return fmt.Sprintf("it is to run in a container (%s), and none can be had here; it does not run anywhere else", e.Place)
	case e.Network != sandbox.NetworkNone:
		return fmt.Sprintf("it needs the network %q, which the sandbox here, of level %q, cannot give it", e.Network, e.Have)
	}
	return fmt.Sprintf("the sandbox level here is %q, and the configuration requires %q", e.Have, e.Require)
}

func (e *WeakSandboxError) Is(target error) bool { return target == ErrDenied }

// ErrSpent is returned if the permit has already been used.
var ErrSpent = errors.New("this permit was used")

// unasked marks a denial that no person decided because nobody could be asked.
func unasked(err error) error {
	if e, ok := errors.AsType[*DeniedError](err); ok {
		e.Unasked = true
	}
	return err
}

// invalid marks the denial of an answer whose state belongs to no open question
// about the call.
func invalid(err error) error {
	if e, ok := errors.AsType[*DeniedError](err); ok {
		e.Invalid = true
	}
	return err
}

// unavailable marks a denial that no person decided because the store that replicas share
// cannot be reached.
func unavailable(err error) error {
	if e, ok := errors.AsType[*DeniedError](err); ok {
		e.Unavailable = true
	}
	return err
}
