// Command mcpb packs the program into a bundle that clients such as Claude Desktop install
// with a click.
//
// It replaces the official "mcpb pack" so that builds are reproducible: that tool writes
// the files' times into the bundle. "make snapshot-check" has the official tool validate
// and unpack the result.
package main

import (
	"archive/zip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"time"
)

func main() {
	system := flag.String("os", "", "`system` of the program: linux, darwin or windows")
	version := flag.String("version", "", "`version` of the program, without \"v\"")
	seconds := flag.Int64("time", 0, "time of all files, in `seconds` since 1970")
	out := flag.String("out", "", "`file` to write")
	flag.Parse()
	if flag.NArg() != 1 || *version == "" || *out == "" {
		fmt.Fprintln(os.Stderr, "mcpb: usage: mcpb -os SYSTEM -version VERSION -time SECONDS -out FILE PROGRAM")
		os.Exit(2)
	}
	if err := pack(*out, flag.Arg(0), *system, *version, time.Unix(*seconds, 0).UTC()); err != nil {
		fmt.Fprintln(os.Stderr, "mcpb:", err)
		os.Exit(1)
	}
}

// pack writes the bundle. It removes an incomplete file.
func pack(out, program, system, version string, at time.Time) (err error) {
	m, err := manifestFor(system, version)
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("writing the manifest: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(out), "mcpb-*")
	if err != nil {
		return fmt.Errorf("making the bundle: %w", err)
	}
	defer func() {
		f.Close() // closing a second time does nothing
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	z := zip.NewWriter(f)
	add := func(name string, mode os.FileMode, content func(io.Writer) error) error {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at}
		h.SetMode(mode)
		w, err := z.CreateHeader(h)
		if err == nil {
			err = content(w)
		}
		if err != nil {
			return fmt.Errorf("packing %s: %w", name, err)
		}
		return nil
	}
	copied := func(name string) func(io.Writer) error {
		return func(w io.Writer) error {
			src, err := os.Open(name)
			if err != nil {
				return err
			}
			defer src.Close()
			_, err = io.Copy(w, src)
			return err
		}
	}
	err = add("manifest.json", 0o644, func(w io.Writer) error { _, err := w.Write(append(text, '\n')); return err })
	if err == nil {
		err = add("LICENSE", 0o644, copied("LICENSE"))
	}
	if err == nil {
		err = add(m.Server.EntryPoint, 0o755, copied(program))
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Close()
	}
	if err == nil {
		err = os.Rename(f.Name(), out)
	}
	return err
}

// manifest is the part of MCPB's manifest.json, version 0.3, that is used here.
type manifest struct {
	ManifestVersion  string            `json:"manifest_version"`
	Name             string            `json:"name"`
	DisplayName      string            `json:"display_name"`
	Version          string            `json:"version"`
	Description      string            `json:"description"`
	LongDescription  string            `json:"long_description"`
	Author           author            `json:"author"`
	Repository       repository        `json:"repository"`
	Homepage         string            `json:"homepage"`
	Support          string            `json:"support"`
	License          string            `json:"license"`
	Server           server            `json:"server"`
	ToolsGenerated   bool              `json:"tools_generated"`
	PromptsGenerated bool              `json:"prompts_generated"`
	Compatibility    compatibility     `json:"compatibility"`
	UserConfig       map[string]option `json:"user_config"`
}

type author struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

type repository struct {
	Type string `json:"type"`
	URL  string `json:"url"`
}

type server struct {
	Type       string  `json:"type"`
	EntryPoint string  `json:"entry_point"`
	Config     command `json:"mcp_config"`
}

type command struct {
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

type compatibility struct {
	Platforms []string `json:"platforms"`
}

type option struct {
	Type        string   `json:"type"`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Multiple    bool     `json:"multiple"`
	Required    bool     `json:"required"`
	Default     []string `json:"default"`
}

func manifestFor(system, version string) (*manifest, error) {
	platform, file := system, "packs-mcp"
	switch system {
	case "linux", "darwin":
	case "windows":
		platform, file = "win32", "packs-mcp.exe" // Node's name for it
	default:
		return nil, fmt.Errorf("no bundle is made for %q", system)
	}
	const home = "https://github.com/packs-mcp/packs-mcp"
	entry := path.Join("server", file)
	return &manifest{
		ManifestVersion: "0.3",
		Name:            "packs-mcp",
		DisplayName:     "Capability packs",
		Version:         version,
		Description:     "Your own instructions and tools for an assistant, each call approved by you",
		LongDescription: "A capability pack is a folder: a document that tells a model how to do something, the files it needs, and programs that it may ask to run. You approve every call, and what runs is confined by the operating system.",
		Author:          author{"The packs-mcp authors", home},
		Repository:      repository{"git", home},
		Homepage:        home,
		Support:         home + "/issues",
		License:         "MIT",
		// Each folder that the user chose becomes one argument.
		Server: server{Type: "binary", EntryPoint: entry, Config: command{
			Command: "${__dirname}/" + entry,
			Args:    []string{"serve", "${user_config.packs}"},
			Env:     map[string]string{},
		}},
		ToolsGenerated:   true,
		PromptsGenerated: true,
		Compatibility:    compatibility{[]string{platform}},
		UserConfig: map[string]option{"packs": {
			Type:        "directory",
			Title:       "Folders of packs",
			Description: "Folders with capability packs. Each folder below them that has a SKILL.md is a pack.",
			Multiple:    true,
			Required:    true,
			Default:     []string{"${HOME}/packs"},
		}},
	}, nil
}
