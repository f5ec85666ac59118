package cli

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// Errors other than the end by a signal are not lost.
func TestOtherErrorsAreKept(t *testing.T) {
	other := errors.New("the disk is full")
	stopped := fmt.Errorf("calling: %w", context.Canceled)
	for _, tt := range []struct {
		err  error
		want string
	}{
		{stopped, ""},
		{errors.Join(stopped, nil), ""},
		{errors.Join(stopped, other), "the disk is full"},
		{fmt.Errorf("test: %w", errors.Join(other, stopped)), "the disk is full"},
		{other, "the disk is full"},
	} {
		got := ""
		if err := besides(tt.err); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("besides(%q) = %q, want %q", tt.err, got, tt.want)
		}
	}
}
