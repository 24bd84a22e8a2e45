package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// openPart opens a part of a volume, whose content nobody trusts, to be bound
// somewhere: a file of any kind or a directory. Symbolic links are followed as
// long as they stay in the volume. What is missing is made, as directories with
// the mode of the volume's own. The handle cannot be read from (O_PATH), so a
// FIFO or a device does not block. name is relative. Linux 5.6 is needed.
func openPart(volume, name string) (*os.File, error) {
	root, err := os.OpenFile(volume, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, inWords(err)
	}
	defer func() { _ = root.Close() }()
	f, err := openBeneath(root, name, 0)
	switch {
	case errors.Is(err, unix.EXDEV):
		f, err = openResolved(root, volume, name)
	case errors.Is(err, unix.ENOENT):
		f, err = makeBeneath(root, name)
	}
	return f, inWords(err)
}

func inWords(err error) error {
	switch {
	case errors.Is(err, unix.EXDEV):
		return errors.New("it leads out of the volume")
	case errors.Is(err, unix.ELOOP):
		return errors.New("symbolic links lead nowhere, or were changed meanwhile")
	case errors.Is(err, unix.ENOTDIR):
		return errors.New("something on the way is no directory")
	case errors.Is(err, unix.ENOSYS):
		return errors.New("it cannot be opened safely: the kernel has no openat2 (Linux 5.6)")
	}
	return err
}

// openBeneath opens name without leaving dir; EXDEV if it would.
func openBeneath(dir *os.File, name string, resolve uint64) (*os.File, error) {
	how := &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS | resolve}
	return openat2(dir, name, how)
}

func openat2(dir *os.File, name string, how *unix.OpenHow) (*os.File, error) {
	const most = 64 // the kernel gives up when something is renamed meanwhile
	for try := 0; ; try++ {
		fd, err := unix.Openat2(int(dir.Fd()), name, how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), name), nil
		case try < most && (errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EINTR)):
		default:
			return nil, err
		}
	}
}

// openResolved is for absolute links, which are those of the host: they may
// lead back into the volume. What they lead to is opened without any link.
func openResolved(root *os.File, volume, name string) (*os.File, error) {
	volume, err := filepath.EvalSymlinks(volume)
	if err != nil {
		return nil, unix.EXDEV
	}
	to, err := filepath.EvalSymlinks(filepath.Join(volume, name))
	if err != nil {
		return nil, unix.EXDEV // nothing is told of what is outside
	}
	rel, err := filepath.Rel(volume, to)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, unix.EXDEV
	}
	return openBeneath(root, rel, unix.RESOLVE_NO_SYMLINKS)
}

// makeBeneath makes the directories of name that are missing.
func makeBeneath(root *os.File, name string) (*os.File, error) {
	info, err := root.Stat()
	if err != nil {
		return nil, err
	}
	parts := strings.Split(path.Clean(name), "/")
	dir, n, err := openLongest(root, parts)
	if err != nil {
		return nil, err
	}
	for _, part := range parts[n:] {
		next, err := makeIn(dir, part, info.Mode())
		_ = dir.Close()
		if err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// openLongest opens as many of the parts as there are, and says how many.
func openLongest(root *os.File, parts []string) (*os.File, int, error) {
	for n := len(parts) - 1; ; n-- {
		dir, err := openBeneath(root, path.Join(".", path.Join(parts[:n]...)), 0)
		if n == 0 || !errors.Is(err, unix.ENOENT) {
			return dir, n, err
		}
	}
}

// makeIn makes one directory, whatever the umask, and opens it; a symbolic link
// that is put in its place is not followed.
func makeIn(dir *os.File, name string, mode fs.FileMode) (*os.File, error) {
	made := unix.Mkdirat(int(dir.Fd()), name, uint32(mode.Perm()))
	if made != nil && !errors.Is(made, unix.EEXIST) {
		return nil, fmt.Errorf("making directory %s: %w", name, made)
	}
	next, err := openat2(dir, name, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err != nil || made != nil {
		return next, err
	}
	if err := next.Chmod(mode & (fs.ModePerm | fs.ModeSetgid | fs.ModeSetuid | fs.ModeSticky)); err != nil {
		_ = next.Close()
		return nil, err
	}
	return next, nil
}
