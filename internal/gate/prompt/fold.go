package prompt

// Folded returns c with only the facts that a person should see before they allow a
// run, and how many facts and quotes it leaves out. It leaves out plain facts that
// the command shows too, or that are the same for every run. The command and the
// marks stay complete.
func (c *Card) Folded() (short Card, left int) {
	short = *c
	short.Facts, short.Quotes = nil, nil
	for _, f := range c.Facts {
		if f.Weight != Plain || f.Section == SectionChange || !folds(f.Role) {
			short.Facts = append(short.Facts, f)
		}
	}
	return short, len(c.Facts) - len(short.Facts) + len(c.Quotes)
}

// folds reports whether plain facts of a role can be left out at first. Facts of an
// unknown role stay.
func folds(r Role) bool {
	switch r {
	case RoleAsked, RoleClient, RoleClaim, RoleLimits, RoleTimeout, RoleProgram, RoleInterpreter, RoleArgument, RoleInput, RoleFolder, RolePack, RoleDigest:
		return true
	default:
		return false
	}
}
