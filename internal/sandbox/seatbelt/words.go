package seatbelt

// Gaps returns what the level does not cover on macOS but covers elsewhere, in words for
// people. The argument says whether the Rules allow hard links.
func Gaps(hardLinks bool) []string {
	gaps := []string{
		"memory is not limited, and processor time is limited for each process, not for all together",
		"a process that was never seen, because its parent ended at once, and that has another environment, can outlive its run, still confined",
		"whether a file outside exists can be told, but nothing else of it",
		"named semaphores of the user's other programs can be reached",
		"no network of its own: loopback is not available",
		"programs that confine others themselves do not work",
	}
	if !hardLinks {
		gaps = append(gaps, "hard links and clones of files cannot be made")
	}
	return gaps
}

// NestedHint says what to do if the server is itself confined.
const NestedHint = "the client has already put this server in a sandbox, inside of which there can be no other: " +
	"start packs-mcp outside of it (over HTTP, for example), or set `sandbox.require: none` and rely on the client's"
