// Package gate lets a call happen only after a person approved exactly that call,
// and starts the programs that were approved.
//
// The gate is a function of (request, answer, state). A caller describes what would
// happen as a [Request] made of facts, and [Gate.Check] returns exactly one of
// three things: a [Permit], a [Question] for a person, or an error that is a
// denial. The caller carries the question to the person over whatever channel it
// has, builds the same request again, and calls Check with the [answers.Answer]. The
// question's state is authenticated, bound to the chat and to everything the person
// was shown, expires, and works once. It may therefore travel through a client that
// is not trusted.
//
// The runner is an unexported field of the Gate, and only [Permit.Run] gives it a
// program, so no pack's program can start without a decision. Every decision is in the
// audit log before Check returns it. A run is on disk there, with its decision, before
// it starts, and again after it ends.
//
// A person's own act, such as choosing a prompt in the client, need not be asked
// about again. [Caller].Act marks one, for opening, attaching and detaching only.
// Only the client vouches that a person acted, so by default the gate believes just
// the client that started this program, for trusted packs, and where no rule asks
// or denies. The log records it as the client's word.
//
// Doubt is denial: no answer, an answer nobody asked for, a state that does not
// fit, a client that cannot ask, a log that cannot be written.
//
// The gate does not judge whether a command is wise, and it does not confine what
// it starts; see package sandbox for that.
package gate
