package level

import "github.com/packs-mcp/packs-mcp/internal/sandbox"

// CheckSpace predicts what the system says to argv and env taken together.
func CheckSpace(argv, env []string) error {
	if size, limit := spaceOf(argv, env), argSpace(); size > limit {
		return &sandbox.TooLargeError{What: allStrings, Size: size, Limit: limit}
	}
	return nil
}

// TooLarge is the error for argv and env that the system refused to take.
func TooLarge(argv, env []string) error {
	return &sandbox.TooLargeError{What: allStrings, Size: spaceOf(argv, env)}
}

const allStrings = "the arguments and the environment together"
