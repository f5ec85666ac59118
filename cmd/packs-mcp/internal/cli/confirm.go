package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
)

// Confirm asks on the terminal; anything but a yes is a no. It ends with ctx,
// and returns its error.
func (env *Env) Confirm(ctx context.Context, question string) (bool, error) {
	fmt.Fprintf(env.Stderr, "\n%s [y/N] ", question)
	if env.lines == nil {
		env.lines = bufio.NewReader(env.Stdin) // one for all questions: it may read ahead
	}
	got := make(chan string, 1)
	go func() { // ends with the next line, or with the program
		line, _ := env.lines.ReadString('\n')
		got <- line
	}()
	select {
	case line := <-got:
		line = strings.ToLower(strings.TrimSpace(line))
		return line == "y" || line == "yes", nil
	case <-ctx.Done():
		fmt.Fprintln(env.Stderr)
		return false, ctx.Err()
	}
}
