package sandbox

// copyable says how a copy of dir can be had, and why it is no better one.
func (r *Runner) copyable(dir string) (LayerKind, string) {
	return LayerReadOnly, "todo"
}
