package audit

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// rotate renames the file and begins a new one. If the rename fails, the log
// keeps growing and rotate tries again at double the size: a failed rename is no
// reason to lose an entry.
func (l *Log) rotate() error {
	if err := l.syncFile(l.file); err != nil {
		return err
	}
	name, err := l.nextName()
	if err == nil {
		// Some systems cannot rename an open file.
		err = l.file.Close()
		l.file = nil
	}
	if err == nil {
		err = os.Rename(l.path, name)
	}
	if err != nil {
		l.opts.Logger.Warn("the audit log could not be renamed, and grows", "path", l.path, "err", err)
		l.opts.MaxSize *= 2 // not again with every entry
	}
	size := l.size
	if l.file == nil {
		if err := l.reopen(); err != nil {
			return err
		}
	}
	if err != nil {
		l.size = size
		return nil
	}
	l.size = 0
	return syncDir(filepath.Dir(l.path))
}

// nextName returns the free name to which the current file will be renamed.
func (l *Log) nextName() (string, error) {
	first := int64(0)
	for line, err := range readLines(io.NewSectionReader(l.file, 0, l.size), l.path) {
		if err != nil {
			return "", err
		}
		if e, intact, _ := parse(line.text); intact {
			first = e.Seq
			break
		}
	}
	name := rotatedName(l.path, first)
	if _, err := os.Lstat(name); err == nil {
		return "", fmt.Errorf("%q already exists", name)
	}
	return name, nil
}
