package approvals

import (
	"io"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/safetext"
)

// A ChatSource gives access to the chats that the page shows beside the calls. Its
// strings need not be safe to show; the page escapes them.
type ChatSource interface {
	Chats() []Chat
	// SetAttached attaches a pack to a chat, or detaches it. Its error is shown.
	SetAttached(chat, pack string, on bool) error
	// OpenArtifact opens a file in a chat's workspace, and nothing outside it.
	OpenArtifact(chat, path string) (io.ReadSeekCloser, Artifact, error)
	// Changes returns a channel that is closed at the next change.
	Changes() <-chan struct{}
}

// A Chat is one chat of the server.
type Chat struct {
	ID        string // opaque
	Client    string // name and version that the client gave; may be empty
	Person    string // whose chat it is, where people have names; not supplied by the client
	Ends      string // when it ends, in words; may be empty
	Packs     []Pack
	Artifacts []Artifact
}

// A Pack is attached to a chat, or can be attached.
type Pack struct {
	ID          string
	Name        string
	Description string // the pack's own words
	Trust       string // bundled, user or untrusted, or in words
	Attached    bool
	Problems    []string
}

// An Artifact is a file that a run left in a chat's workspace.
type Artifact struct {
	Path     string // with slashes, below the workspace
	Size     int64  // bytes
	MIME     string
	Modified time.Time
}

// The JSON that the page receives about chats.
type (
	pageChat struct {
		ID        string         `json:"id"`
		Client    string         `json:"client"`
		Person    string         `json:"person"`
		Ends      string         `json:"ends"`
		Packs     []pagePack     `json:"packs"`
		Artifacts []pageArtifact `json:"artifacts"`
	}
	pagePack struct {
		ID          string   `json:"id"`
		Name        string   `json:"name"`
		Description string   `json:"description"`
		Trust       string   `json:"trust"`
		Attached    bool     `json:"attached"`
		Problems    []string `json:"problems"`
	}
	pageArtifact struct {
		// Key is the path, in base64: a file's name need be neither UTF-8 nor
		// safe to show.
		Key      string    `json:"key"`
		Path     string    `json:"path"`
		Size     int64     `json:"size"`
		MIME     string    `json:"mime"`
		Modified time.Time `json:"modified"`
		Shown    string    `json:"shown"` // how the page can show it: picture or text; empty: not
	}
)

// pageChats returns chats, made safe to show.
func pageChats(chats []Chat) []pageChat {
	all := make([]pageChat, 0, len(chats))
	for _, c := range chats {
		p := pageChat{
			ID: c.ID, Client: safetext.Line(c.Client), Person: safetext.Line(c.Person), Ends: safetext.Line(c.Ends),
			Packs: []pagePack{}, Artifacts: []pageArtifact{},
		}
		for _, k := range c.Packs {
			problems := []string{}
			for _, text := range k.Problems {
				problems = append(problems, safetext.Line(text))
			}
			p.Packs = append(p.Packs, pagePack{
				ID: k.ID, Name: safetext.Line(k.Name), Description: safetext.Line(k.Description),
				Trust: safetext.Line(k.Trust), Attached: k.Attached, Problems: problems,
			})
		}
		for _, a := range c.Artifacts {
			p.Artifacts = append(p.Artifacts, pageArtifact{
				Key: keyOf(a.Path), Path: safetext.Line(a.Path),
				Size: a.Size, MIME: safetext.Line(a.MIME), Modified: a.Modified, Shown: shownOnPage(a),
			})
		}
		all = append(all, p)
	}
	return all
}
