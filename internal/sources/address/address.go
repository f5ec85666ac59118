// Package address parses the addresses of packs that people write.
//
// It looks only at the text: it makes no request, opens no file, and does not know
// whether anything is there.
package address

import (
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

// A Kind is where a source is.
type Kind string

// The kinds of sources.
const (
	Folder  Kind = "folder"
	Archive Kind = "archive" // a file on this machine
	Git     Kind = "git"
	OCI     Kind = "oci"
	Site    Kind = "site"     // a site's index of skills, or an archive there
	Stakpak Kind = "rulebook" // from a server with Stakpak's API
)

// A Reference is a parsed address.
type Reference struct {
	Kind Kind
	At   string // a local path; the URL of a repository or site; REGISTRY/REPOSITORY; the URI of a rulebook, or "" for all
	Ref  string // of git: a branch, tag or commit; of OCI: a tag or digest; "" for the source's own default
	Path string // of a folder inside, with slashes; "" for all of it
	Sum  string // 64 hexadecimal digits that an archive must have; "" for any
}

// Owner returns the name to put before the names of packs from this source: the last
// but one part of its address, or "".
func (r Reference) Owner() string {
	var parts []string
	switch r.Kind {
	case Git, Site:
		if u, err := url.Parse(r.At); err == nil {
			parts = strings.Split(strings.Trim(u.Path, "/"), "/")
			if len(parts) < 2 {
				return slug(u.Hostname())
			}
		}
	case OCI:
		parts = strings.Split(r.At, "/")
	case Stakpak:
		return "stakpak"
	}
	if len(parts) < 2 {
		return ""
	}
	return slug(parts[len(parts)-2])
}

// slug returns the letters and digits of s in lower case, with a hyphen between the words.
func slug(s string) string {
	words := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return (r < 'a' || 'z' < r) && (r < '0' || '9' < r) })
	return strings.Join(words, "-")
}

// The patterns are compiled on demand: most starts of the program parse no address.
const (
	githubPattern = `^([A-Za-z0-9][A-Za-z0-9-]*)/([A-Za-z0-9._-]+)((?:/[^@#]+)?)(?:@([^#]+))?$`
	scpPattern    = `^([A-Za-z0-9._-]+@)?([A-Za-z0-9.-]+):([^\\]+)$`
)

func isSum(s string) bool { return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == "" }

// IsArchive reports whether a file is read as an archive, by its name.
func IsArchive(name string) bool {
	name = strings.ToLower(name)
	for _, end := range []string{".tar.gz", ".tgz", ".tar", ".zip", ".skill"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// Parse parses an address:
//
//	./dir  file.tar.gz|.tgz|.tar|.zip|.skill          what is here
//	owner/repo[/path][@ref]                           GitHub
//	https://host/x.git[@ref][#path]  ssh://…  file://…  user@host:x  git://host/org/repo@ref#path
//	oci://registry/repository[:tag|@sha256:…]
//	https://host[/path][#sha256=…]                    a site's index, or an archive
//	stakpak:[URI]                                     a rulebook, or the list of them
//
// A local path begins with "./", "../", "/", "~" or a drive, or ends like an archive.
func Parse(text string) (Reference, error) {
	if text == "" || strings.ContainsAny(text, "\x00\r\n") {
		return Reference{}, fmt.Errorf("%q is not an address of packs", text)
	}
	if uri, ok := strings.CutPrefix(text, RulebookScheme); ok {
		return rulebookReference(text, uri)
	}
	scheme, _, hasScheme := strings.Cut(text, "://")
	switch {
	case !hasScheme && isPath(text):
		if IsArchive(text) {
			return Reference{Kind: Archive, At: text}, nil
		}
		return Reference{Kind: Folder, At: text}, nil
	case !hasScheme:
		if m := regexp.MustCompile(githubPattern).FindStringSubmatch(text); m != nil {
			return checked(text, Reference{Kind: Git, At: "https://github.com/" + m[1] + "/" + strings.TrimSuffix(m[2], ".git") + ".git", Ref: m[4], Path: strings.Trim(m[3], "/")})
		}
		if m := regexp.MustCompile(scpPattern).FindStringSubmatch(text); m != nil {
			rest, ref, inside := gitSuffix(m[3])
			return checked(text, Reference{Kind: Git, At: "ssh://" + m[1] + m[2] + "/" + strings.TrimPrefix(rest, "/"), Ref: ref, Path: inside})
		}
		return Reference{}, fmt.Errorf("%q is not an address of packs: for a folder here, write ./%s", text, text)
	}
	switch scheme {
	case "oci":
		return ociReference(text)
	case "git": // ToolHive's way to say https
		rest, ref, inside := gitSuffix(strings.TrimPrefix(text, "git://"))
		if !strings.HasSuffix(rest, ".git") {
			rest += ".git"
		}
		return checked(text, Reference{Kind: Git, At: "https://" + rest, Ref: ref, Path: inside})
	case "ssh", "file":
		rest, ref, inside := gitSuffix(text)
		return checked(text, Reference{Kind: Git, At: rest, Ref: ref, Path: inside})
	case "https", "http":
		rest, ref, inside := gitSuffix(text)
		if strings.HasSuffix(rest, ".git") {
			return checked(text, Reference{Kind: Git, At: rest, Ref: ref, Path: inside})
		}
		return webReference(text)
	}
	return Reference{}, fmt.Errorf("%q: packs come over https, ssh, file and oci, and not over %q", text, scheme)
}

// isPath reports whether text is a local path.
func isPath(text string) bool {
	return text == "." || text == ".." || filepath.IsAbs(text) || filepath.VolumeName(text) != "" || strings.HasPrefix(text, "./") || strings.HasPrefix(text, "../") ||
		strings.HasPrefix(text, `.\`) || strings.HasPrefix(text, `..\`) || strings.HasPrefix(text, "~") || IsArchive(text) && !strings.Contains(text, "@")
}

// gitSuffix cuts "[@ref][#path]" from the address of a repository. An @ before the path
// belongs to a user name.
func gitSuffix(text string) (rest, ref, inside string) {
	rest, inside, _ = strings.Cut(text, "#")
	if i := strings.LastIndexByte(rest, '@'); i > strings.LastIndexByte(rest, '/') && strings.ContainsRune(rest, '/') {
		rest, ref = rest[:i], rest[i+1:]
	} else if i := strings.Index(rest, ".git@"); i >= 0 { // a branch may contain slashes
		rest, ref = rest[:i+len(".git")], rest[i+len(".git@"):]
	}
	return rest, ref, strings.Trim(inside, "/")
}

// checked refuses a reference that must not be sent to a server.
func checked(text string, r Reference) (Reference, error) {
	u, err := url.Parse(r.At)
	if err != nil || u.Host == "" && u.Scheme != "file" {
		return Reference{}, fmt.Errorf("%q is not an address of a repository", text)
	}
	if _, has := u.User.Password(); has {
		return Reference{}, fmt.Errorf("the address has a password in it, which would be kept in %s; take it out, and see the documentation for credentials", "packs.lock.json")
	}
	if r.Ref != "" && (strings.HasPrefix(r.Ref, "-") || strings.ContainsAny(r.Ref, " ~^:?*[\\") || strings.Contains(r.Ref, "..")) {
		return Reference{}, fmt.Errorf("%q is not the name of a branch, tag or commit", r.Ref)
	}
	if r.Path != "" && (path.Clean(r.Path) != r.Path || strings.HasPrefix(r.Path, "..") || strings.ContainsAny(r.Path, `\:`)) {
		return Reference{}, fmt.Errorf("%q is not a path inside a repository", r.Path)
	}
	return r, nil
}

// RulebookScheme begins the address of a rulebook.
const RulebookScheme = "stakpak:"

// rulebookReference parses the URI of a rulebook. Many URIs themselves begin with the
// scheme.
func rulebookReference(text, uri string) (Reference, error) {
	if strings.HasPrefix(uri, "//") {
		uri = text
	}
	if len(uri) > 1024 || strings.ContainsFunc(uri, unicode.IsControl) {
		return Reference{}, fmt.Errorf("%q is not an address of a rulebook", text)
	}
	return Reference{Kind: Stakpak, At: uri}, nil
}

func ociReference(text string) (Reference, error) {
	rest := strings.TrimPrefix(text, "oci://")
	r := Reference{Kind: OCI, At: rest}
	if name, digest, ok := strings.Cut(rest, "@"); ok {
		if !strings.HasPrefix(digest, "sha256:") || !isSum(strings.TrimPrefix(digest, "sha256:")) {
			return Reference{}, fmt.Errorf("%q: after @ comes sha256: and 64 hexadecimal digits", text)
		}
		r.At, r.Ref = name, digest
		if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') { // the digest takes precedence
			r.At = name[:i]
		}
	} else if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') {
		r.At, r.Ref = rest[:i], rest[i+1:]
	}
	if !strings.Contains(r.At, "/") || strings.ContainsAny(r.At, " ?#%") {
		return Reference{}, fmt.Errorf("%q is not an address of an artifact: oci://REGISTRY/REPOSITORY[:TAG]", text)
	}
	return r, nil
}

func webReference(text string) (Reference, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.User != nil {
		return Reference{}, fmt.Errorf("%q is not an address of a site", text)
	}
	r := Reference{Kind: Site}
	if sum, ok := strings.CutPrefix(u.Fragment, "sha256="); ok {
		if r.Sum = strings.ToLower(sum); !isSum(r.Sum) {
			return Reference{}, fmt.Errorf("%q: sha256= wants 64 hexadecimal digits", text)
		}
	} else if u.Fragment != "" {
		return Reference{}, fmt.Errorf("%q: after # comes sha256=, or the address of a repository ends in .git", text)
	}
	u.Fragment = ""
	r.At = u.String()
	return r, nil
}
