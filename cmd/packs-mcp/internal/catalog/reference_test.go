package catalog

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/cmd/packs-mcp/internal/cli"
)

// run runs a command line, as the program does, and returns its status.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	env := &cli.Env{Environ: environ, Stdin: stdin, Stdout: stdout, Stderr: stderr}
	return env.Run(ctx, env.Root(Commands(env)...), args)
}

// TestReferencePrompts compares prompt --format available_skills with recorded
// results of the reference library's to_prompt; package lint has the other recorded
// cases.
func TestReferencePrompts(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "..", "shared", "data", "skills-ref-cases.json"))
	if err != nil {
		if slices.Contains(strings.Split(os.Getenv("PACKS_MCP_REQUIRE"), ","), "corpora") {
			t.Fatalf("corpora: %v", err)
		}
		t.Skip("corpora: data/skills-ref-cases.json is not there")
	}
	var all struct {
		Cases []struct {
			Test, Fn string
			Input    json.RawMessage
			Result   json.RawMessage
		}
	}
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, c := range all.Cases {
		if c.Fn != "to_prompt" {
			continue
		}
		tested++
		t.Run(c.Test, func(t *testing.T) {
			var input struct {
				Skills []struct {
					DirName string `json:"dir_name"`
					Files   map[string]string
				}
			}
			var want string
			if err := json.Unmarshal(c.Input, &input); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(c.Result, &want); err != nil {
				t.Fatal(err)
			}
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range input.Skills {
				for name, text := range s.Files {
					if err := os.MkdirAll(filepath.Join(dir, s.DirName), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(filepath.Join(dir, s.DirName, name), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			var stdout, stderr bytes.Buffer
			environ := []string{"PACKS_MCP_HOME=" + t.TempDir(), "HOME=" + t.TempDir()}
			if code := run(t.Context(), []string{"prompt", "--packs", dir, "--format", "available_skills"}, environ, strings.NewReader(""), &stdout, &stderr); code != 0 {
				t.Fatalf("prompt = %d: %s", code, &stderr)
			}
			want = strings.ReplaceAll(want, "$TMP", filepath.ToSlash(dir))
			if got := filepath.ToSlash(strings.TrimSuffix(stdout.String(), "\n")); got != want {
				t.Errorf("prompt prints\n%s\nwant\n%s", got, want)
			}
		})
	}
	if tested != 4 {
		t.Errorf("%d cases of to_prompt, want 4", tested)
	}
}
