// Package engine starts a container engine for tests: Podman's service, with its own
// store and one small image, made here from busybox. It does not touch the user's
// images and containers or contact a registry.
package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// An Engine is a running service.
type Engine struct {
	Socket string
	Image  string // sha256:ID

	dir     string
	runtime string
	flags   []string
	service *exec.Cmd
}

// ErrLacks says why this machine cannot run the engine.
type ErrLacks struct{ Why string }

func (e *ErrLacks) Error() string { return e.Why }

// Start starts the engine in an existing folder, with a runtime by its name or path, and flags
// of Podman's for everything that it does. The caller calls Close.
func Start(ctx context.Context, dir, runtime string, flags ...string) (*Engine, error) {
	if os.Geteuid() != 0 {
		return nil, &ErrLacks{"without root it needs subordinate ids"}
	}
	for _, name := range []string{"podman", runtime, "busybox"} {
		if _, err := exec.LookPath(name); err != nil {
			return nil, &ErrLacks{fmt.Sprintf("there is no %s on the PATH", name)}
		}
	}
	e := &Engine{Socket: filepath.Join(dir, "s"), dir: dir, runtime: runtime, flags: flags}
	image, err := e.image(ctx)
	if err != nil {
		return nil, err
	}
	if e.Image, err = e.Import(ctx, "localhost/box", image); err != nil {
		return nil, err
	}
	return e, e.Serve()
}

// Serve starts the service. It can be called again after Stop.
func (e *Engine) Serve() error {
	_ = os.Remove(e.Socket)
	var said bytes.Buffer
	e.service = e.Podman(context.Background(), "system", "service", "--time", "0", "unix://"+e.Socket)
	e.service.Stdout, e.service.Stderr = &said, &said
	if err := e.service.Start(); err != nil {
		return err
	}
	for until := time.Now().Add(time.Minute); ; <-time.After(20 * time.Millisecond) {
		conn, err := net.Dial("unix", e.Socket)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(until) {
			e.Stop()
			return fmt.Errorf("the engine does not listen: %w\n%s", err, said.String())
		}
	}
}

// Podman returns a podman command that works on this engine's store.
func (e *Engine) Podman(ctx context.Context, args ...string) *exec.Cmd {
	own := []string{
		"--root", filepath.Join(e.dir, "store"), "--runroot", filepath.Join(e.dir, "run"), "--storage-driver", "overlay",
		"--runtime", e.runtime, "--cgroup-manager", "cgroupfs",
	}
	cmd := exec.CommandContext(ctx, "podman", slices.Concat(own, e.flags, args)...)
	cmd.Dir = e.dir // where Podman's monitor notes that memory ran out
	return cmd
}

// Import makes an image from a tar archive, and returns its id.
func (e *Engine) Import(ctx context.Context, name string, archive []byte) (string, error) {
	cmd := e.Podman(ctx, "import", "--change", "ENV PATH=/opt/tools:/bin", "-", name)
	cmd.Stdin = bytes.NewReader(archive)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("importing an image: %w\n%s", err, said.String())
	}
	return "sha256:" + strings.TrimPrefix(strings.TrimSpace(string(out)), "sha256:"), nil
}

// image returns a small system with only busybox, and a script in /opt/tools.
func (e *Engine) image(context.Context) ([]byte, error) {
	path, err := exec.LookPath("busybox")
	if err != nil {
		return nil, err
	}
	busybox, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(h tar.Header, body []byte) {
		h.Size = int64(len(body))
		err = errors.Join(err, w.WriteHeader(&h))
		_, werr := w.Write(body)
		err = errors.Join(err, werr)
	}
	for _, dir := range []string{"bin", "etc", "opt", "opt/tools", "tmp", "usr", "usr/bin", "var", "var/lib"} {
		add(tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}, nil)
	}
	add(tar.Header{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755}, busybox)
	for _, name := range []string{"sh", "cat", "cp", "env", "head", "id", "kill", "ln", "ls", "mkdir", "mknod", "mount", "rm", "sleep", "touch", "true", "dd", "chmod", "ps", "yes", "mkfifo", "wc"} {
		add(tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/" + name, Linkname: "busybox"}, nil)
	}
	add(tar.Header{Typeflag: tar.TypeSymlink, Name: "usr/bin/env", Linkname: "/bin/env"}, nil)
	add(tar.Header{Typeflag: tar.TypeReg, Name: "etc/hostname", Mode: 0o644}, []byte("box\n"))
	add(tar.Header{Typeflag: tar.TypeReg, Name: "opt/tools/greet", Mode: 0o755}, []byte("#!/usr/bin/env sh\necho hello from the image\n"))
	return out.Bytes(), errors.Join(err, w.Close())
}

// Stop ends the service, but not the containers.
func (e *Engine) Stop() {
	if e.service != nil && e.service.Process != nil {
		_ = e.service.Process.Kill()
		_ = e.service.Wait()
		e.service = nil
	}
}

// Close ends the service and its containers, and removes its store.
func (e *Engine) Close() {
	e.Stop()
	_ = e.Podman(context.Background(), "rm", "--force", "--all").Run()
	_ = e.Podman(context.Background(), "unmount", "--all").Run()
	_ = os.RemoveAll(e.dir)
}
