package file

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// Entry is one name in a directory.
type Entry struct {
	Name string
	Dir  bool // a directory itself, not a link to one
}

// Disk is the file system as far as the source reads it. Errors are those of
// package os.
type Disk interface {
	// List gives the entries of a directory, sorted by name. The error is
	// syscall.ENOTDIR when the path is something else.
	List(path string) ([]Entry, error)
	// Read gives at most limit bytes of a regular file, and follows links.
	// The error is syscall.EISDIR for a directory. It never waits for a
	// writer.
	Read(path string, limit int64) ([]byte, error)
}

// osDisk is the real file system.
type osDisk struct{}

var _ Disk = osDisk{}

func (osDisk) List(path string) ([]Entry, error) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	out := make([]Entry, len(entries))
	for i, e := range entries {
		out[i] = Entry{Name: e.Name(), Dir: e.IsDir()}
	}
	return out, nil
}

func (osDisk) Read(path string, limit int64) (data []byte, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a FIFO would block
	if err != nil {
		if link, lerr := os.Readlink(path); lerr == nil && errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("link to %s, which is not there", link)
		}
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, &os.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("no regular file (%s)", info.Mode().Type())
	}
	return io.ReadAll(io.LimitReader(f, limit))
}
