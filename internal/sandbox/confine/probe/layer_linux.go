//go:build amd64 || arm64

package probe

import (
	"errors"
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// The trial of a layer changes a file, removes another, and removes and remakes a
// folder, which needs an extended attribute that not every file system supports.
const (
	trialFile, trialGone, trialFolder = "file", "gone", "folder"

	trialBefore, trialAfter = "before", "after"
)

// PrepareLayer fills the folder dir for a trial of layers.
func PrepareLayer(dir string) error {
	return errors.Join(
		os.WriteFile(path.Join(dir, trialFile), []byte(trialBefore), 0o600),
		os.WriteFile(path.Join(dir, trialGone), nil, 0o600),
		os.Mkdir(path.Join(dir, trialFolder), 0o700),
		os.WriteFile(path.Join(dir, trialFolder, trialFile), nil, 0o600),
	)
}

// changeLayer makes the trial's changes in the folder.
func changeLayer(dir string) error {
	f, err := os.OpenFile(path.Join(dir, trialFile), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(trialAfter)
	return errors.Join(err, f.Close(),
		os.Remove(path.Join(dir, trialGone)),
		os.RemoveAll(path.Join(dir, trialFolder)),
		os.Mkdir(path.Join(dir, trialFolder), 0o700),
	)
}

// InspectLayer reports what is wrong after a trial: the folder dir must be as
// [PrepareLayer] left it, and everything that the program changed in the layer.
func InspectLayer(dir string, layer *os.File) error {
	if layer == nil {
		return errors.New("no layer came")
	}
	for name, want := range map[string]string{trialFile: trialBefore, trialGone: "", path.Join(trialFolder, trialFile): ""} {
		got, err := os.ReadFile(path.Join(dir, name))
		if err != nil || string(got) != want {
			return fmt.Errorf("the folder below a layer was changed (%s)", name)
		}
	}
	fd := int(layer.Fd())
	var st unix.Stat_t
	if err := unix.Fstatat(fd, trialGone, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != 0 {
		return fmt.Errorf("a removed file left no mark in the layer (%v)", err)
	}
	at, err := unix.Openat(fd, trialFile, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("a changed file is not in the layer: %w", err)
	}
	defer unix.Close(at)
	b := make([]byte, 64)
	if n, err := unix.Read(at, b); err != nil || string(b[:n]) != trialAfter {
		return fmt.Errorf("a changed file is not in the layer as it was written (%v)", err)
	}
	return nil
}
