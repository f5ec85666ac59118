package server

// everyList are the notes about all lists, in the order in which they come.
var everyList = []string{toolsChanged, promptsChanged, resourcesChanged}

// noted are the methods of the notifications that came.
func (w *world) noted() []string {
	var all []string
	for _, n := range w.notes {
		all = append(all, n["method"].(string))
	}
	return all
}
