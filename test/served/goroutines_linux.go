package served

import (
	"strings"
	"syscall"
)

// Goroutines ends the server, and returns the creators of its goroutines, as the runtime
// prints them on SIGABRT. It omits the runtime's own.
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
