package toolbox

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// CacheDir is where built tools are kept, outside the checkout.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a place for built tools: %w", err)
	}
	return filepath.Join(dir, "flowlet", "tools"), nil
}

// cached returns the directory of that name in the cache. If it is not there, fill is called with an empty directory
// beside it, which gets the name when that has succeeded. Of concurrent calls, of other processes too, one fills.
func cached(name string, fill func(dir string) error) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, name)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(dir + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(dir); err == nil {
		return dir, nil // another process was faster
	}
	tmp, err := os.MkdirTemp(cache, name+"-*.tmp")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := fill(tmp); err != nil {
		return "", err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", err
	}
	return dir, os.Rename(tmp, dir)
}

// lockFile waits for the lock, which the kernel gives back when the process ends.
func lockFile(path string) (func(), error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		_ = f.Close()
		return nil, os.NewSyscallError("flock", err)
	}
	return func() { _ = f.Close() }, nil
}
