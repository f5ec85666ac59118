package level

import "github.com/packs-mcp/packs-mcp/internal/sandbox"

// CheckSpace returns a [*sandbox.TooLargeError] if argv and env together exceed the
// system's limit.
func CheckSpace(argv, env []string) error {
	if size, limit := spaceOf(argv, env), argSpace(); size > limit {
		return &sandbox.TooLargeError{What: allStrings, Size: size, Limit: limit}
	}
	return nil
}

// TooLarge returns the error for argv and env that the system refused.
func TooLarge(argv, env []string) error {
	return &sandbox.TooLargeError{What: allStrings, Size: spaceOf(argv, env)}
}

const allStrings = "the arguments and the environment together"
