package attack_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/packs-mcp/packs-mcp/internal/sandbox"
)

// lookScript is a pack's program that looks for its own pack's files at the original path.
// It reads the path from a file, where nothing rewrites it, and first waits for the test to
// change the files.
const lookScript = `#!/bin/sh
orig=$(cat "$PACKS_PACK_DIR/where")
echo ready >"$1"
while [ ! -e "$2" ]; do sleep 0.05; done
odd=$(printf 'odd\001')
for way in "$orig" "$PACKS_PACK_DIR" "$PACKS_PACK_DIR/../pack"; do
	cat "$way/late.txt" "$way/$odd.txt"
	"$way/late.sh"
	"$way/$odd.sh"
	sh "$way/$odd.sh"
	ls "$way" | grep odd
done
cat "$PACKS_PACK_DIR/absolute" "$PACKS_PACK_DIR/odd-link"
echo looked
`

// A run neither reads nor starts files that are not in the approved digest, whether denied
// or changed after the answer, however it tries to reach the original folder of the pack.
// At level none, nothing prevents it.
func TestOriginalOfACopy(t *testing.T) {
	t.Parallel()
	for _, v := range append(confined(t), withoutLandlock, variant{name: "none", level: sandbox.LevelNone}) {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			originalOfACopy(t, v)
		})
	}
}

// originalOfACopy is TestOriginalOfACopy at one level.
func originalOfACopy(t *testing.T, v variant) {
	w := newWorld(t)
	var before []string
	switch v.name {
	case "partial":
		before = []string{probe(t), "block", "userns", "--"}
	case withoutLandlock.name:
		notAsRoot(t)
		before = []string{probe(t), "block", "landlock", "--"}
	case "none":
		before = []string{probe(t), "block", "landlock,userns", "--"}
		put(t, w.dir("state/config.yaml"), "sandbox:\n  require: none\n")
	}
	const secret, odd = "in no digest", "odd\x01"
	program := "#!/bin/sh\necho " + secret + "\n"
	for name, text := range map[string]string{
		"look.sh": lookScript, "where": w.dir("pack"), "late.txt": "approved text\n", "late.sh": "#!/bin/sh\necho approved program\n",
		odd + ".txt": secret + "\n", odd + ".sh": program,
	} {
		put(t, w.dir("pack/"+name), text)
		if err := os.Chmod(w.dir("pack/"+name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"absolute": w.dir("pack/late.txt"), "odd-link": odd + ".txt"} {
		if err := os.Symlink(target, w.dir("pack/"+name)); err != nil {
			t.Fatal(err)
		}
	}
	w.ownWorkspaces = true // the other kind is layered, so a run does not see the test's changes
	c := w.serve(t, before...)
	c.exec("exit", "0") // creates the chat's workspace
	workspace := filepath.Join(w.dir("state/workspaces"), names(t, w.dir("state/workspaces"))[0])
	ready, changed := fifo(t, filepath.Join(workspace, "ready")), filepath.Join(workspace, "changed")
	ended := make(chan envelope, 1)
	go func() {
		defer close(ended)
		ended <- c.run("./look.sh", ready, changed)
		releaseFIFO(ready)
	}()
	awaitFIFO(ready)
	put(t, w.dir("pack/late.txt"), secret+"\n")
	put(t, w.dir("pack/late.sh"), program)
	put(t, changed, "")
	e, ok := <-ended
	if !ok {
		t.Fatal("the call did not end as it should")
	}
	if e.Sandbox != v.level.String() {
		lacks(t, v.needs, "level "+v.name+" cannot be had here: "+e.Error.Message)
	}
	lines := strings.Split(strings.TrimSpace(e.Stdout), "\n")
	if !slices.Contains(lines, "looked") || !slices.Contains(lines, "approved program") {
		t.Fatalf("the program printed %q (%+v, stderr %q), want it to see its copy and to look around", e.Stdout, e.Error, e.Stderr)
	}
	if found := strings.Contains(e.Stdout, secret) || strings.Contains(e.Stdout, odd); found != (v.level == sandbox.LevelNone) {
		t.Errorf("at level %s the program printed %q; want what is in no digest only where nothing confines", v.level, e.Stdout)
	}
}
