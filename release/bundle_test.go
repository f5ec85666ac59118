package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The official tool accepts each bundle as valid and unpacks it.
func TestBundlesAreValid(t *testing.T) {
	dir := dist(t)
	for _, name := range []string{"linux-amd64", "darwin-universal", "windows-amd64"} {
		unpackBundle(t, dir, name)
	}
}

// unpackBundle has the official tool unpack a bundle and validate its manifest.
func unpackBundle(t *testing.T, dir, name string) string {
	t.Helper()
	tool := os.Getenv("PACKS_MCP_MCPB")
	if tool == "" {
		skip(t, "mcpb", "PACKS_MCP_MCPB does not name the official tool")
	}
	to := filepath.Join(t.TempDir(), name)
	for _, args := range [][]string{
		{"unpack", filepath.Join(dir, "packs-mcp-"+name+".mcpb"), to},
		{"validate", filepath.Join(to, "manifest.json")},
	} {
		if out, err := exec.Command("node", append([]string{tool}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("mcpb %s: %v\n%s", args[0], err, out)
		}
	}
	return to
}

// A client that starts the bundle as its manifest says gets the packs from the folders that
// the user chose.
func TestBundleServes(t *testing.T) {
	dir := dist(t)
	to := unpackBundle(t, dir, hostBundle(t))
	var m struct {
		Server struct {
			EntryPoint string `json:"entry_point"`
			Config     struct {
				Command string
				Args    []string
			} `json:"mcp_config"`
		}
	}
	decode(t, filepath.Join(to, "manifest.json"), &m)

	home := t.TempDir()
	folders := []string{filepath.Join(home, "one"), filepath.Join(home, "two words")}
	for i, folder := range folders {
		pack := filepath.Join(folder, []string{"first", "second"}[i])
		if err := os.MkdirAll(pack, 0o755); err != nil {
			t.Fatal(err)
		}
		text := "---\nname: " + filepath.Base(pack) + "\ndescription: A pack of the bundle's test.\n---\n\nText.\n"
		if err := os.WriteFile(filepath.Join(pack, "SKILL.md"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// As clients do it, a setting with several values becomes several arguments.
	command := strings.ReplaceAll(m.Server.Config.Command, "${__dirname}", to)
	var args []string
	for _, a := range m.Server.Config.Args {
		if a == "${user_config.packs}" {
			args = append(args, folders...)
		} else {
			args = append(args, a)
		}
	}
	if command != filepath.Join(to, filepath.FromSlash(m.Server.EntryPoint)) {
		t.Errorf("the command is %s, and the entry point %s", command, m.Server.EntryPoint)
	}
	cmd := exec.Command(command, args...)
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	client := mcp.NewClient(&mcp.Implementation{Name: "bundle-test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(tools.Tools, func(tool *mcp.Tool) bool { return tool.Name == "capability_packs_list" }) {
		t.Errorf("%d tools, and no capability_packs_list", len(tools.Tools))
	}
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "capability_packs_list"})
	if err != nil {
		t.Fatal(err)
	}
	text := result.Content[0].(*mcp.TextContent).Text
	for _, want := range []string{`"first"`, `"second"`} {
		if result.IsError || !strings.Contains(text, want) {
			t.Errorf("the list of packs has no %s: %s", want, text)
		}
	}
}

// hostBundle returns the bundle that this machine can start.
func hostBundle(t *testing.T) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("there is no bundle that this machine could start")
	}
	return "linux-amd64"
}
