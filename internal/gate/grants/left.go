package grants

import (
	"slices"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/approvers"
)

// Leave takes from the answers that a person of an identity provider gave the groups that
// the person is no longer in, according to a token that was issued after the answer. A
// group that was taken stays away from the answer, even if the person is in it again: they
// answer anew. Leave returns the answers and how many it changed. It leaves those that it
// was given as they are.
func Leave(all []Grant, now approvers.Person, issued time.Time) (left []Grant, changed int) {
	left = slices.Clone(all)
	for i, g := range left {
		// Tokens have whole seconds. One of the same second counts as issued later.
		if g.By == nil || g.By.Operator || !approvers.SameSubject(g.By.Name, now.Name) || issued.Before(g.Since.Truncate(time.Second)) {
			continue
		}
		gone := func(group string) bool { return !slices.Contains(now.Groups, group) }
		if slices.ContainsFunc(g.By.Groups, gone) {
			by := *g.By
			by.Groups = slices.DeleteFunc(slices.Clone(by.Groups), gone)
			left[i].By = &by
			changed++
		}
	}
	return left, changed
}
