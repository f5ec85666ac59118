package servertest

import "strings"

// HostileURIs name nothing that may be read, whatever is on the disk.
func HostileURIs(handle string) []string {
	uris := []string{
		"", "skill", "skill:", "skill://", "skill:///", "skill:acme/refunds/SKILL.md", "skill:/acme/refunds/SKILL.md",
		// Traversal, plain and encoded once.
		"skill://acme/refunds/../refunds/SKILL.md", "skill://acme/refunds/../../secret.txt", "skill://../secret.txt",
		"skill://acme/refunds/..", "skill://acme/refunds/.", "skill://acme/refunds/./SKILL.md", "skill://acme/refunds//SKILL.md",
		"skill://acme/refunds/%2e%2e/refunds/SKILL.md", "skill://acme/refunds/%2E%2E/%2E%2E/secret.txt", "skill://acme/refunds/.%2e/secret.txt",
		"skill://acme/refunds/docs/..%2f..%2fSKILL.md", "skill://acme%2frefunds/SKILL.md", "skill://acme/refunds%2fSKILL.md", "skill://acme/refunds/%2fetc/passwd",
		"skill://acme/refunds/docs%5cpolicy.md", `skill://acme/refunds/docs\policy.md`, `skill://acme/refunds/..\..\secret.txt`,
		// Encoded twice.
		"skill://acme/refunds/%252e%252e/refunds/SKILL.md", "skill://acme/refunds/%252e%252e%252f%252e%252e%252fsecret.txt", "skill://acme/refunds/%2553KILL.md",
		// Absolute, drives, streams, devices.
		"skill:///etc/passwd", "skill://acme/refunds//etc/passwd", "skill://acme/refunds/C:/Windows/win.ini", "skill://acme/refunds/SKILL.md:stream", "skill://acme/refunds/SKILL.md%3astream",
		// What is no path.
		"skill://acme/refunds/SKILL.md?x=1", "skill://acme/refunds/SKILL.md#top", "skill://acme/refunds/SKILL.md/", "skill://acme/refunds/", "skill://acme/refunds/SKILL.md%00", "skill://acme/refunds/SKILL.md%00.txt",
		"skill://acme/refunds/SKILL.md\x00", "skill://acme/refunds/SKILL.md\n", "skill://acme/refunds/ SKILL.md", "skill://acme/refunds/%", "skill://acme/refunds/%4", "skill://acme/refunds/%zz", "skill://acme/refunds/%u0053KILL.md",
		"skill://acme/refunds/" + strings.Repeat("a/", 20_000) + "b", "skill://" + strings.Repeat("%2e%2e/", 1000),
		// Authorities that are none.
		"skill://user@acme/refunds/SKILL.md", "skill://acme:80/refunds/SKILL.md", "skill://[::1]/SKILL.md",
		// Other letter case, where a path has one.
		"SKILL://acme/refunds/SKILL.md", "skill://Acme/refunds/SKILL.md", "skill://acme/refunds/skill.md", "skill://refunds/SKILL.md",
		// Other schemes, and the scheme of another kind of pack.
		"file:///etc/passwd", "file://" + "localhost/etc/passwd", "http://127.0.0.1/SKILL.md", "data:text/plain,x", "javascript:alert(1)", "ui://acme/refunds", "pack://acme/refunds/SKILL.md", "skill://notes/README.md",
		// What is there and may not be known.
		"skill://hidden/SKILL.md", "skill://loner/SKILL.md", "pack://acme/SKILL.md", "skill://acme/refunds/missing.txt", "skill://acme/refunds/docs/link.md", "skill://acme/refunds/out.md",
		"skill://acme/missing/SKILL.md", "skill://index.json/x", "pack://index.json", "skill://acme/_manifest", "skill://acme/refunds/docs/_manifest", "pack://notes/_manifest",
		// Workspaces: FS-08.
		"workspace://", "workspace:///made.txt", "workspace://../made.txt", "workspace://" + strings.Repeat("0", 32) + "/made.txt", "workspace://workspace/made.txt",
		"workspace://" + handle + "/../" + handle + "/made.txt", "workspace://" + handle + "/%2e%2e/x", "workspace://" + handle + "//made.txt", "workspace://" + strings.ToUpper(handle) + "x/made.txt",
		"workspace://" + handle + "/missing.txt", "workspace://" + handle + "/link.txt",
	}
	return uris
}
