package usage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// block is the unit of st_blocks, whatever the file system's own is.
const block = 512

// batch is how many names of a directory are held at a time.
const batch = 1024

type fileID struct{ dev, ino uint64 }

// walk is one measurement of a tree. Directories are opened through root, so
// that nothing a pod does meanwhile leads out of the tree.
type walk struct {
	root   *os.Root
	device uint64
	dirs   []string // to be read
	linked map[fileID]bool
	sum    Disk
}

// Walk measures the tree at dir: blocks that are in use, like du, and files.
// A file with several links counts once; another file system that is mounted
// in the tree does not count and is not entered. When ctx ends, or a directory
// cannot be read, the error comes with the sum so far, which is then a lower
// bound. A tree that is not there takes nothing.
func Walk(ctx context.Context, dir string) (Disk, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, os.ErrNotExist) {
		return Disk{}, nil
	}
	if err != nil {
		return Disk{}, fmt.Errorf("measuring %s: %w", dir, err)
	}
	defer func() { _ = root.Close() }()
	w := &walk{root: root, linked: map[fileID]bool{}}
	if err := w.all(ctx); err != nil {
		return w.sum, fmt.Errorf("measuring %s: %w", dir, err)
	}
	return w.sum, nil
}

func (w *walk) all(ctx context.Context) error {
	var st unix.Stat_t
	top, err := w.root.Open(".")
	if err != nil {
		return err
	}
	err = unix.Fstat(int(top.Fd()), &st)
	_ = top.Close()
	if err != nil {
		return err
	}
	w.device = st.Dev
	w.count(&st)
	w.dirs = append(w.dirs, ".")
	var errs []error
	for len(w.dirs) > 0 && len(errs) < 10 {
		name := w.dirs[len(w.dirs)-1]
		w.dirs = w.dirs[:len(w.dirs)-1]
		if err := w.directory(ctx, name); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return errors.Join(errs...)
}

func (w *walk) directory(ctx context.Context, name string) error {
	f, err := w.root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Dev != w.device {
		return err // it was replaced, or something was mounted on it
	}
	for ctx.Err() == nil {
		names, err := f.Readdirnames(batch)
		for _, child := range names {
			w.entry(int(f.Fd()), name, child)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(dir int, parent, name string) {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT) != nil || st.Dev != w.device {
		return // it is gone, or another file system
	}
	isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR
	if !isDir && st.Nlink > 1 {
		id := fileID{st.Dev, st.Ino}
		if w.linked[id] {
			return
		}
		w.linked[id] = true
	}
	w.count(&st)
	if isDir {
		w.dirs = append(w.dirs, filepath.Join(parent, name))
	}
}

func (w *walk) count(st *unix.Stat_t) {
	w.sum = w.sum.Plus(Disk{Bytes: st.Blocks * block, Inodes: 1})
}
