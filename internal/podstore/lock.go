package podstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Lock is the exclusive lock on a root directory.
type Lock struct{ f *os.File }

// LockRoot takes the lock on a root directory, or fails at once with an error
// that names the agent that has it. The kernel frees it when the process ends.
func LockRoot(root string) (*Lock, error) {
	dir := filepath.Join(root, "flowlet")
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("making root directory %s: %w", root, err)
	}
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // below the root directory
	if err != nil {
		return nil, fmt.Errorf("locking root directory %s: %w", root, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			holder, _ := io.ReadAll(io.LimitReader(f, 256))
			return nil, fmt.Errorf("root directory %s is in use by another agent (%s): stop it, or use another --root-dir",
				root, strings.TrimSpace(string(holder)))
		}
		return nil, fmt.Errorf("locking root directory %s: %w", root, err)
	}
	who := fmt.Sprintf("pid %d, since %s\n", os.Getpid(), time.Now().UTC().Format(time.RFC3339))
	if err := errors.Join(f.Truncate(0), writeAt(f, who)); err != nil {
		return nil, errors.Join(fmt.Errorf("locking root directory %s: %w", root, err), f.Close())
	}
	return &Lock{f}, nil
}

func writeAt(f *os.File, s string) error {
	_, err := f.WriteAt([]byte(s), 0)
	return err
}

// Unlock frees the lock.
func (l *Lock) Unlock() error { return l.f.Close() }
