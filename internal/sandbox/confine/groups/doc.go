// Package groups bounds all processes of a run together, with Linux control groups: how
// many there are, their memory, and the processors that they keep busy. Root needs that,
// because no other limit counts root's processes. Other users can make such groups where
// one is delegated to them, as in their part of systemd's.
//
// It does not move processes into a group; it says how a process gets in.
package groups
