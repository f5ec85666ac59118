package served

import (
	"strings"
	"syscall"
)

// Goroutines ends the server, and returns who made each of the goroutines that it
// had: what the runtime prints when it gets a SIGABRT. Those of the runtime itself
// do not count.
func (s *Server) Goroutines() []string {
	s.w.T.Helper()
	s.quit.Store(true)
	if err := s.cmd.Process.Signal(syscall.SIGABRT); err != nil {
		s.w.T.Fatal(err)
	}
	s.finish()
	_, stacks, _ := strings.Cut(s.Log(), "\nSIGABRT: abort\n")
	var all []string
	for line := range strings.Lines(stacks) {
		who, made := strings.CutPrefix(line, "created by ")
		if who, _, _ = strings.Cut(who, " "); made && !strings.HasPrefix(who, "runtime.") {
			all = append(all, strings.TrimSpace(who))
		}
	}
	return all
}
