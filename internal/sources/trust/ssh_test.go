package trust

import (
	"bytes"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sign signs a message with the real ssh-keygen, with a new key of a type.
func sign(t *testing.T, kind, namespace, message string) (armored []byte, fingerprint string) {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen: not found")
	}
	dir := t.TempDir()
	key, file := filepath.Join(dir, "key"), filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte(message), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		out, err := exec.Command("ssh-keygen", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("ssh-keygen %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	run("-q", "-t", kind, "-N", "", "-f", key)
	run("-q", "-Y", "sign", "-f", key, "-n", namespace, file)
	armored, err := os.ReadFile(file + ".sig")
	if err != nil {
		t.Fatal(err)
	}
	return armored, strings.Fields(run("-l", "-f", key))[1]
}

func TestSSH(t *testing.T) {
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		t.Run(kind, func(t *testing.T) {
			armored, want := sign(t, kind, "git", "message")
			if got, err := SSH(armored, []byte("message"), NamespaceGit); err != nil || got != want {
				t.Errorf("SSH = %q, %v, want %q", got, err, want)
			}
			if got, err := SSH(armored, []byte("massage"), NamespaceGit); err == nil {
				t.Errorf("another message is signed by %q", got)
			}
			if got, err := SSH(armored, []byte("message"), NamespaceFile); err == nil {
				t.Errorf("another namespace is signed by %q", got)
			}
			// Every byte of the signature counts, except those that name nothing.
			block, _ := pem.Decode(armored)
			for i := range block.Bytes {
				changed := bytes.Clone(block.Bytes)
				changed[i] ^= 1
				if got, err := SSH(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: changed}), []byte("message"), NamespaceGit); err == nil && got == want {
					t.Errorf("with byte %d changed it is still signed by %q", i, got)
				}
			}
		})
	}
	if _, err := SSH([]byte("-----BEGIN PGP SIGNATURE-----\n\naaaa\n-----END PGP SIGNATURE-----\n"), nil, NamespaceGit); !errors.Is(err, ErrNotSSH) {
		t.Errorf("a PGP signature: %v, want ErrNotSSH", err)
	}
}
