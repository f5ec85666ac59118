package prompt

// Folded returns c with the facts that a person should see before they allow a run, and
// how many facts and quotes it leaves out. Kept are all facts that are more than plain,
// all changes, what the run may read, change and reach, and how far the pack is trusted.
// The command and the marks stay complete.
func (c *Card) Folded() (short Card, left int) {
	short = *c
	short.Facts, short.Quotes = nil, nil
	for _, f := range c.Facts {
		if f.Weight != Plain || f.Section == SectionChange || essential(f.Role) {
			short.Facts = append(short.Facts, f)
		}
	}
	return short, len(c.Facts) - len(short.Facts) + len(c.Quotes)
}

// essential reports whether facts of a role are shown at first, whatever their weight.
func essential(r Role) bool {
	switch r {
	case RoleSandbox, RoleReads, RoleWrites, RoleNetwork, RoleField, RoleHidden, RoleTrust:
		return true
	default:
		return false
	}
}
