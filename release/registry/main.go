// Command registry prints server.json, which tells the MCP registry where a release is.
//
// It reads the checksums of the release, so it cannot name a missing file.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
)

// name is the server's name in the registry. A label of the image repeats it, which proves
// to the registry that both have the same owner; see the Dockerfile.
const name = "io.github.packs-mcp/packs-mcp"

const home = "https://github.com/packs-mcp/packs-mcp"

func main() {
	version := flag.String("version", "", "`version` of the release, without \"v\"")
	flag.Parse()
	if flag.NArg() != 1 || *version == "" {
		fmt.Fprintln(os.Stderr, "registry: usage: registry -version VERSION CHECKSUMS")
		os.Exit(2)
	}
	sums, err := read(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
	entry, err := entryFor(*version, sums)
	if err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", "  ")
	if err := out.Encode(entry); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

// read returns the checksums of a release: name of a file → SHA-256 in hexadecimal.
func read(file string) (map[string]string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("reading the checksums: %w", err)
	}
	defer f.Close()
	sums := make(map[string]string)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || len(sum) != 64 {
			return nil, fmt.Errorf("%s: not a line of checksums: %q", file, lines.Text())
		}
		sums[name] = sum
	}
	return sums, lines.Err()
}

// entry is the part of server.json that is used here.
type entry struct {
	Schema      string     `json:"$schema"`
	Name        string     `json:"name"`
	Title       string     `json:"title"`
	Description string     `json:"description"`
	Version     string     `json:"version"`
	WebsiteURL  string     `json:"websiteUrl"`
	Repository  repository `json:"repository"`
	Packages    []pkg      `json:"packages"`
}

type repository struct {
	URL    string `json:"url"`
	Source string `json:"source"`
}

type pkg struct {
	RegistryType string    `json:"registryType"`
	Identifier   string    `json:"identifier"`
	Version      string    `json:"version,omitempty"`
	FileSHA256   string    `json:"fileSha256,omitempty"`
	Transport    transport `json:"transport"`
}

type transport struct {
	Type string `json:"type"`
}

func entryFor(version string, sums map[string]string) (*entry, error) {
	stdio := transport{"stdio"}
	e := &entry{
		Schema:      "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
		Name:        name,
		Title:       "Capability packs",
		Description: "Your own instructions and tools for any MCP client, each call approved by a person",
		Version:     version,
		WebsiteURL:  home,
		Repository:  repository{home, "github"},
	}
	for _, system := range []string{"darwin-universal", "linux-amd64", "windows-amd64"} {
		file := "packs-mcp-" + system + ".mcpb"
		sum, ok := sums[file]
		if !ok {
			return nil, fmt.Errorf("the checksums have no %s", file)
		}
		e.Packages = append(e.Packages, pkg{
			RegistryType: "mcpb",
			Identifier:   home + "/releases/download/v" + version + "/" + file,
			FileSHA256:   sum,
			Transport:    stdio,
		})
	}
	e.Packages = append(e.Packages, pkg{
		RegistryType: "oci",
		Identifier:   "ghcr.io/packs-mcp/packs-mcp:" + version,
		Transport:    stdio,
	})
	return e, nil
}
