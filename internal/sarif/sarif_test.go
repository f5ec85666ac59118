package sarif

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLog(t *testing.T) {
	log := New(Tool{
		Name: "packs-mcp scan", Version: "1.2.3", URI: "https://example.com/docs",
		Rules: []Rule{
			{ID: "one", Short: "The first.", Level: Note, URI: "https://example.com/docs#one"},
			{ID: "two", Short: "The second.", Help: "Remove it.", Level: Error, Score: "9.5"},
		},
	}, []Result{
		{Rule: "two", Level: Error, Message: "here", File: "my pack/SKILL.md", Line: 3, Column: 2, Snippet: "x", Fingerprint: "sha256:00"},
		{Rule: "one", Level: Note, Message: "the whole file", File: "a.md", Accepted: "we know"},
		{Rule: "other", Level: Warning, Message: "nowhere"},
	})
	text, err := json.MarshalIndent(log, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want := `{
 "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
 "version": "2.1.0",
 "runs": [
  {
   "tool": {
    "driver": {
     "name": "packs-mcp scan",
     "version": "1.2.3",
     "informationUri": "https://example.com/docs",
     "rules": [
      {
       "id": "one",
       "helpUri": "https://example.com/docs#one",
       "shortDescription": {
        "text": "The first."
       },
       "defaultConfiguration": {
        "level": "note"
       }
      },
      {
       "id": "two",
       "shortDescription": {
        "text": "The second."
       },
       "help": {
        "text": "Remove it."
       },
       "defaultConfiguration": {
        "level": "error"
       },
       "properties": {
        "security-severity": "9.5",
        "tags": [
         "security"
        ]
       }
      }
     ]
    }
   },
   "results": [
    {
     "ruleId": "two",
     "ruleIndex": 1,
     "level": "error",
     "message": {
      "text": "here"
     },
     "locations": [
      {
       "physicalLocation": {
        "artifactLocation": {
         "uri": "my%20pack/SKILL.md"
        },
        "region": {
         "startLine": 3,
         "startColumn": 2,
         "snippet": {
          "text": "x"
         }
        }
       }
      }
     ],
     "partialFingerprints": {
      "packsMcp/v1": "sha256:00"
     }
    },
    {
     "ruleId": "one",
     "ruleIndex": 0,
     "level": "note",
     "message": {
      "text": "the whole file"
     },
     "locations": [
      {
       "physicalLocation": {
        "artifactLocation": {
         "uri": "a.md"
        }
       }
      }
     ],
     "suppressions": [
      {
       "kind": "external",
       "justification": "we know"
      }
     ]
    },
    {
     "ruleId": "other",
     "level": "warning",
     "message": {
      "text": "nowhere"
     }
    }
   ],
   "columnKind": "utf16CodeUnits"
  }
 ]
}`
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("the log differs (-want +got):\n%s", diff)
	}
}

// A run without results has an empty list; a missing list would mean that it failed.
func TestNoResults(t *testing.T) {
	text, err := json.Marshal(New(Tool{Name: "t"}, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"results":[]`, `"rules":[]`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the log %s has no %s", text, want)
		}
	}
}

func TestURI(t *testing.T) {
	for file, want := range map[string]string{
		"a/b.md":    "a/b.md",
		"../b.md":   "../b.md",
		"a b/ü?#.x": "a%20b/%C3%BC%3F%23.x",
		"a%20.md":   "a%2520.md",
		"c:d.md":    "./c:d.md",
	} {
		if got := uri(file); got != want {
			t.Errorf("uri(%q) = %q, want %q", file, got, want)
		}
	}
	abs, want := "/tmp/a b.md", "file:///tmp/a%20b.md"
	if runtime.GOOS == "windows" {
		abs, want = `C:\tmp\a b.md`, "file:///C:/tmp/a%20b.md"
	}
	if !filepath.IsAbs(abs) {
		t.Fatal("not absolute")
	}
	if got := uri(abs); got != want {
		t.Errorf("uri(%q) = %q, want %q", abs, got, want)
	}
}
