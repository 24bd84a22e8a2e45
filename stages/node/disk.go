package node

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// files is what a rotation changes on disk.
type files interface {
	// Rename never replaces a file: then it is fs.ErrExist.
	Rename(from, to string) error
	Remove(path string) error
	// Gzip writes what is in from, compressed, to the new file to, with the
	// same owner and mode, and returns how much it has read. It is on disk then.
	Gzip(from, to string) (size int64, err error)
}

type disk struct{}

func (disk) Rename(from, to string) error {
	err := unix.Renameat2(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS): // the file system cannot
		return linkAndRemove(from, to)
	}
	return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
}

func linkAndRemove(from, to string) error {
	if err := os.Link(from, to); err != nil {
		return err
	}
	return os.Remove(from)
}

func (disk) Remove(path string) error { return os.Remove(path) }

func (disk) Gzip(from, to string) (size int64, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return 0, err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm())
	if err != nil {
		return 0, err
	}
	defer func() {
		if cerr := out.Close(); err == nil {
			err = cerr
		}
	}()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		if err := out.Chown(int(st.Uid), int(st.Gid)); err != nil {
			return 0, fmt.Errorf("owner of %s: %w", to, err)
		}
	}
	z := gzip.NewWriter(out)
	if size, err = io.Copy(z, in); err != nil {
		return size, err
	}
	if err := z.Close(); err != nil {
		return size, err
	}
	return size, out.Sync()
}
