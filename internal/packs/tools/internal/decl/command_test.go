package decl

import (
	"testing"
	"time"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
	"github.com/packs-mcp/packs-mcp/internal/packs/tools/internal/template"
	"github.com/packs-mcp/packs-mcp/internal/strictjson"
)

// The words of a command are scanned once.
func TestManyWords(t *testing.T) {
	p := &Parser{lines: []int{0}}
	c := &tools.Command{Program: "sh"}
	nodes := make([]*strictjson.Node, 0, 200_000)
	word, err := template.Parse("sh")
	if err != nil {
		t.Fatal(err)
	}
	for range 200_000 {
		c.Args = append(c.Args, word)
		nodes = append(nodes, &strictjson.Node{})
	}
	start := time.Now()
	p.Code(c, nodes)
	if took := time.Since(start); took > time.Minute {
		t.Errorf("a command of 200,000 words takes %v", took)
	}
}
