package resources

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"github.com/packs-mcp/packs-mcp/internal/packs/packfs"
	"github.com/packs-mcp/packs-mcp/internal/server/calls"
	"github.com/packs-mcp/packs-mcp/internal/server/wire"
)

// The code of an error says that a resource is missing in the way of its era, and the
// error says no more than that.
func TestNotFound(t *testing.T) {
	for _, c := range []struct {
		method string
		modern bool
		want   int
	}{
		{string(mcp.MethodResourcesRead), false, mcp.RESOURCE_NOT_FOUND},
		{string(mcp.MethodResourcesRead), true, wire.CodeInvalidParams},
		{MethodDirectoryRead, false, wire.CodeInvalidParams},
		{MethodSkillsGet, true, wire.CodeInvalidParams},
	} {
		e := notFound(&calls.Request{Method: c.method, Modern: c.modern}, "skill://notes/x")
		if e.Code != c.want || e.Message != "there is no such resource" {
			t.Errorf("%s, modern %v: %d %q, want %d", c.method, c.modern, e.Code, e.Message, c.want)
		}
	}
}

// Only a file that can be had by pages has a hint to the tool that gives pages.
func TestTooLargeForOne(t *testing.T) {
	s := New(Options{ReadFile: 100, ReadFileTool: "read_file"})
	for size, hint := range map[int64]bool{100: true, 101: false} {
		err := s.tooLargeForOne(&packfs.TooLargeError{Size: size})
		_, same := errors.AsType[*packfs.TooLargeError](err)
		if same == hint {
			t.Errorf("a file of %d bytes: %v, want a hint: %v", size, err, hint)
		}
	}
}

func ExampleResources_Templates() {
	s := New(Options{})
	out, err := s.Templates(context.Background(), new(calls.Request))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range out.(*templatesResult).ResourceTemplates {
		fmt.Println(t.URITemplate)
	}
	// Output:
	// pack://{+pack_id}/{+path}
	// skill://{+pack_id}/{+path}
	// workspace://{workspace}/{+path}
}
