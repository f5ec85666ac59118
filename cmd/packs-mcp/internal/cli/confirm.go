package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Confirm asks on the terminal, below what it is about; anything but a yes is a no. What
// was typed before the question was there does not answer it. It ends with ctx, and
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
