package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Confirm asks a yes-or-no question on the terminal. Anything but a yes is a no. Text
// that was typed before the question was shown does not answer it. If ctx ends, it
// returns its error.
func (env *Env) Confirm(ctx context.Context, question string) (bool, error) {
	if env.keys == nil {
		env.keys = NewKeyboard(ctx, env.Stdin)
	}
	err := env.keys.Rest(ctx)
	var line string
	if err == nil {
		line, err = env.keys.Ask(ctx, env.Stderr, fmt.Sprintf("\n%s [y/N] ", question))
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	line = strings.ToLower(strings.TrimSpace(line))
	return err == nil && (line == "y" || line == "yes"), nil
}
