package sandbox

func systemChild(string, []string) int { return 99 }
