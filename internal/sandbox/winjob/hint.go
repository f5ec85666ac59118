package winjob

// Gaps returns, in words for people, what the level covers elsewhere but not on
// Windows.
func Gaps(ui bool) []string {
	gaps := []string{
		"the network is NOT closed: with none and loopback, too, a program reaches what this computer reaches",
		"reading is not confined: a program can read every file that you can read, private ones too",
		"a program can write to what Windows itself leaves open to programs of low integrity (AppData\\LocalLow), " +
			"and to the folders of other runs while they last",
		"a program may be able to end other programs of yours, though not to read or change them",
		"what a program has a service of Windows start for it (a scheduled task, WMI) may be out of reach of the kill",
		"open files and the size of a file are not limited, and of processor time only user mode",
	}
	if !ui {
		gaps = append(gaps, "the clipboard is open, because packs-mcp itself was started inside a job object")
	}
	return gaps
}

// Server is what Windows reports about the server's own process.
type Server struct {
	AppContainer bool // it runs in one, like programs from the Microsoft Store
	Low          bool // its own integrity is low or less
}

// Hint says, for people, why the server may have no level and what to do now.
func Hint(s Server) string {
	switch {
	case s.AppContainer:
		return "packs-mcp was started inside an app container, and cannot confine anything from there: " +
			"start it from a program that is not in one, such as a terminal"
	case s.Low:
		return "packs-mcp itself was started with low integrity, as inside the sandbox of its client, " +
			"and cannot confine anything from there: start it outside of that sandbox"
	}
	return "the problem of each level names the step that Windows refused; " +
		"rules of your organisation (AppLocker, Defender) or a virus scanner can be the cause"
}
