package redact

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnviron(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials.json")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	got := Environ([]string{
		"HOME=/home/somebody", "PATH=/usr/bin:/bin", "PWD=/home/somebody/project", "EMPTY_TOKEN=", "NO_VALUE_TOKEN", "=C:=C:\\some\\folder",
		"OPENAI_API_KEY=sk-openai-1", "openai_apikey=sk-openai-2", "AWS_SECRET_ACCESS_KEY=aws-secret-3", "GITHUB_TOKEN=ghp-token-4",
		"DB_PASSWORD=password-5", "SHORT_TOKEN=1234567", "GOOGLE_APPLICATION_CREDENTIALS=" + file, "STRIPE_KEY=sk-stripe-6", "AGAIN_TOKEN=ghp-token-4",
		"MAX_OUTPUT_TOKENS=16000000", "TOKENIZERS_PARALLELISM=disabled", "GIT_AUTHOR_NAME=Somebody Else",
		"DATABASE_URL=postgres://app:database-7@host/db", "LOCAL_URL=postgres://postgres:postgres@host/db", "WITH_EQUALS_TOKEN=a=b=c=d=e",
		"HUGE_SECRET=" + strings.Repeat("x", maxEnvironSecret+1), "TLS_PRIVATE_KEY=/not/a/file/that/exists",
	})
	want := []string{
		"sk-openai-1", "sk-openai-2", "aws-secret-3", "ghp-token-4", "password-5", "sk-stripe-6", "database-7", "a=b=c=d=e", "/not/a/file/that/exists",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Environ differs (-want +got):\n%s", diff)
	}
}
