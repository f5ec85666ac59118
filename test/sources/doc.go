// Package sources kills and starves the real program while it adds, updates and
// restores packs, and measures it beside git.
package sources
