package tools_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/packs-mcp/packs-mcp/internal/packs/tools"
)

func TestMerge(t *testing.T) {
	set := func(file string, names ...string) *tools.Set {
		s := &tools.Set{}
		for i, name := range names {
			s.Tools = append(s.Tools, &tools.Tool{Name: name, File: file, Line: i + 1})
		}
		return s
	}
	tests := []struct {
		name         string
		sets         []*tools.Set
		names, where []string
	}{
		{name: "none"},
		{name: "nil", sets: []*tools.Set{nil, nil}},
		{name: "empty", sets: []*tools.Set{set("a")}},
		{name: "in order", sets: []*tools.Set{set("b", "z", "y"), nil, set("a", "x")}, names: []string{"z", "y", "x"}},
		{name: "both are refused, whole", sets: []*tools.Set{set("a", "one", "two"), set("b", "three", "TWO"), set("c", "four")},
			names: []string{"four"}, where: []string{"b:2"}},
		{name: "three", sets: []*tools.Set{set("a", "x-y"), set("b", "x_y"), set("c", "x.y")}, where: []string{"b:1", "c:1"}},
	}
	for _, tt := range tests {
		got, problems := tools.Merge(tt.sets...)
		var names, where []string
		if got != nil {
			for _, tool := range got.Tools {
				names = append(names, tool.Name)
			}
		}
		for _, d := range problems {
			where = append(where, fmt.Sprintf("%s:%d", d.File, d.Line))
			if d.Code != tools.CodeNameDuplicate || d.Hint == "" {
				t.Errorf("%s: %v, want %s with a hint", tt.name, d, tools.CodeNameDuplicate)
			}
		}
		if diff := cmp.Diff(tt.names, names); diff != "" {
			t.Errorf("%s: Merge (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(tt.where, where); diff != "" {
			t.Errorf("%s: problems (-want +got):\n%s", tt.name, diff)
		}
		if (got == nil) != (len(names) == 0) {
			t.Errorf("%s: Merge = %v, want nil exactly when no tool is left", tt.name, got)
		}
	}
}
