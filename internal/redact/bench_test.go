package redact

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// BenchmarkHide removes secrets from prose and source text that contain one of them.
func BenchmarkHide(b *testing.B) {
	some, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		b.Fatal(err)
	}
	for _, size := range []int{16 << 10, 1 << 20} {
		for _, n := range []int{1, 10, 200} {
			var values []string
			for i := range n {
				values = append(values, fmt.Sprintf("ghp_%036x", (i+1)*0x9e3779b97f4a7c1))
			}
			secrets := New(values...)
			text := strings.Repeat(string(some), size/len(some)+1)[:size/2]
			text += values[0] + text
			b.Run(fmt.Sprintf("%dKiB/%d", size>>10, n), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				for b.Loop() {
					secrets.Hide(text)
				}
			})
		}
	}
}

// BenchmarkIn looks for the tokens of a team in the arguments of a small call.
func BenchmarkIn(b *testing.B) {
	call := map[string]any{"pack_id": "notes", "command": "./go.sh", "args": []any{"1", "some words"}}
	for _, n := range []int{1, 32, 1000} {
		var values []string
		for i := range n {
			values = append(values, fmt.Sprintf("token-%032x", (i+1)*0x9e3779b97f4a7c1))
		}
		secrets := New(values...)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if secrets.In(call) {
					b.Fatal("a token was found")
				}
			}
		})
	}
}
