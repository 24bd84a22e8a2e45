package usage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// block is the unit of st_blocks, whatever the file system's own is.
const block = 512

// batch is how many names of a directory are held at a time.
const batch = 1024

// mostErrors is after how many directories that cannot be read a tree is given up.
const mostErrors = 10

type fileID struct{ dev, ino uint64 }

// level is a directory between the top of the tree and where the walk is.
type level struct {
	id   fileID
	name string
	dirs []string // in it, to be read
}

// walk is one measurement of a tree. It holds one directory open, goes down by
// name without following links, and back by "..": a step costs the same however
// deep the tree is, and nothing a pod does meanwhile leads out of it.
type walk struct {
	top    string
	at     *os.File
	levels []level
	linked map[fileID]bool
	sum    Disk
}

// Walk measures the tree at dir: blocks that are in use, like du, and files.
// A file with several links counts once; another file system that is mounted
// in the tree does not count and is not entered. When ctx ends, or a directory
// cannot be read, the error comes with the sum so far, which is then a lower
// bound. A tree that is not there takes nothing.
func Walk(ctx context.Context, dir string) (Disk, error) {
	top, err := openDir(unix.AT_FDCWD, dir, 0)
	if errors.Is(err, os.ErrNotExist) {
		return Disk{}, nil
	}
	if err != nil {
		return Disk{}, fmt.Errorf("measuring %s: %w", dir, err)
	}
	w := &walk{top: dir, at: top, linked: map[fileID]bool{}}
	defer func() { _ = w.at.Close() }()
	if err := w.all(ctx); err != nil {
		return w.sum, fmt.Errorf("measuring %s: %w", dir, err)
	}
	return w.sum, nil
}

func openDir(parent int, name string, flags int) (*os.File, error) {
	for {
		fd, err := unix.Openat(parent, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC|flags, 0)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), name), nil
		case !errors.Is(err, unix.EINTR):
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
	}
}

func (w *walk) all(ctx context.Context) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(w.at.Fd()), &st); err != nil {
		return err
	}
	w.count(&st)
	errs := []error{w.read(ctx, w.at, level{id: fileID{st.Dev, st.Ino}})}
	for len(w.levels) > 0 && len(errs) < mostErrors {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var err error
		if here := &w.levels[len(w.levels)-1]; len(here.dirs) > 0 {
			name := here.dirs[len(here.dirs)-1]
			here.dirs = here.dirs[:len(here.dirs)-1]
			err = w.down(ctx, name)
		} else {
			w.levels = w.levels[:len(w.levels)-1]
			err = w.up()
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// down reads a directory and stays in it. One that is gone, or was replaced by
// something else, or has something mounted on it is passed over.
func (w *walk) down(ctx context.Context, name string) error {
	dir, err := openDir(int(w.at.Fd()), name, unix.O_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return nil
	}
	if err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil || st.Dev != w.levels[0].id.dev {
		return errors.Join(err, dir.Close())
	}
	_ = w.at.Close() // only read
	w.at = dir
	return w.read(ctx, dir, level{id: fileID{st.Dev, st.Ino}, name: name})
}

// read counts what is in dir, which becomes the lowest level.
func (w *walk) read(ctx context.Context, dir *os.File, l level) error {
	var err error
	for err == nil && ctx.Err() == nil {
		var names []string
		names, err = dir.Readdirnames(batch)
		for _, child := range names {
			if w.entry(int(dir.Fd()), l.id.dev, child) {
				l.dirs = append(l.dirs, child)
			}
		}
	}
	w.levels = append(w.levels, l)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// up goes back to what is the lowest level now. Where ".." is another directory,
// since one was moved meanwhile, it goes down again from the top of the tree, as far as it gets.
func (w *walk) up() error {
	if len(w.levels) == 0 {
		return nil
	}
	if dir, err := openDir(int(w.at.Fd()), "..", 0); err == nil {
		if w.levels[len(w.levels)-1].is(dir) {
			_ = w.at.Close() // only read
			w.at = dir
			return nil
		}
		_ = dir.Close()
	}
	at, err := openDir(unix.AT_FDCWD, w.top, 0)
	if err != nil || !w.levels[0].is(at) {
		w.levels = nil
		return errors.Join(err, errors.New("the tree was moved meanwhile"))
	}
	_ = w.at.Close()
	w.at = at
	for i := range w.levels[1:] {
		dir, err := openDir(int(w.at.Fd()), w.levels[i+1].name, unix.O_NOFOLLOW)
		if err == nil && !w.levels[i+1].is(dir) {
			_ = dir.Close()
			err = os.ErrNotExist
		}
		if err != nil { // what is below is elsewhere now
			w.levels = w.levels[:i+1]
			return nil
		}
		_ = w.at.Close()
		w.at = dir
	}
	return nil
}

// is reports whether f is the directory of this level.
func (l level) is(f *os.File) bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && l.id == fileID{st.Dev, st.Ino}
}

// entry counts one entry of a directory and reports whether it is one itself.
func (w *walk) entry(dir int, device uint64, name string) (isDir bool) {
	var st unix.Stat_t
	if unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT) != nil || st.Dev != device {
		return false // it is gone, or another file system
	}
	isDir = st.Mode&unix.S_IFMT == unix.S_IFDIR
	if !isDir && st.Nlink > 1 {
		id := fileID{st.Dev, st.Ino}
		if w.linked[id] {
			return false
		}
		w.linked[id] = true
	}
	w.count(&st)
	return isDir
}

func (w *walk) count(st *unix.Stat_t) {
	w.sum = w.sum.Plus(Disk{Bytes: st.Blocks * block, Inodes: 1})
}
