package address

import "testing"

func TestParse(t *testing.T) {
	const sum = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for text, want := range map[string]Reference{
		"./packs":           {Kind: Folder, At: "./packs"},
		"../x/pack":         {Kind: Folder, At: "../x/pack"},
		"/srv/packs":        {Kind: Folder, At: "/srv/packs"},
		"~/packs":           {Kind: Folder, At: "~/packs"},
		"pack.tar.gz":       {Kind: Archive, At: "pack.tar.gz"},
		"./pack.skill":      {Kind: Archive, At: "./pack.skill"},
		"anthropics/skills": {Kind: Git, At: "https://github.com/anthropics/skills.git"},
		"anthropics/skills/document-skills/pdf@v1": {Kind: Git, At: "https://github.com/anthropics/skills.git", Path: "document-skills/pdf", Ref: "v1"},
		"a/b@feature/x":                           {Kind: Git, At: "https://github.com/a/b.git", Ref: "feature/x"},
		"https://host/o/x.git":                    {Kind: Git, At: "https://host/o/x.git"},
		"https://host/o/x.git@main#skills/a":      {Kind: Git, At: "https://host/o/x.git", Ref: "main", Path: "skills/a"},
		"https://host/o/x.git@feature/y":          {Kind: Git, At: "https://host/o/x.git", Ref: "feature/y"},
		"https://me@host/o/x.git":                 {Kind: Git, At: "https://me@host/o/x.git"},
		"ssh://git@host/o/x.git@v1":               {Kind: Git, At: "ssh://git@host/o/x.git", Ref: "v1"},
		"git@github.com:o/x.git#p":                {Kind: Git, At: "ssh://git@github.com/o/x.git", Path: "p"},
		"git://host/org/repo@v2#skills/a":         {Kind: Git, At: "https://host/org/repo.git", Ref: "v2", Path: "skills/a"},
		"file:///srv/x":                           {Kind: Git, At: "file:///srv/x"},
		"oci://ghcr.io/acme/triage:1":             {Kind: OCI, At: "ghcr.io/acme/triage", Ref: "1"},
		"oci://localhost:5000/acme/triage":        {Kind: OCI, At: "localhost:5000/acme/triage"},
		"oci://ghcr.io/a/t:1@sha256:" + sum:       {Kind: OCI, At: "ghcr.io/a/t", Ref: "sha256:" + sum},
		"https://example.org":                     {Kind: Site, At: "https://example.org"},
		"https://example.org/x.zip#sha256=" + sum: {Kind: Site, At: "https://example.org/x.zip", Sum: sum},
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "pack", "a\nb", "ftp://host/x", "https://u:secret@host/x.git", "https://host/x.git@-x", "https://host/x.git@a..b", "https://host/x.git#../x",
		"https://host/x.git#a/../../b", "https://u@host/", "https://host/x#y", "https://host/x.zip#sha256=12", "oci://ghcr.io", "oci://ghcr.io/a@sha256:12", "a/b/../c",
	} {
		if got, err := Parse(text); err == nil {
			t.Errorf("Parse(%q) = %+v, want an error", text, got)
		}
	}
}
