package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ensureHostPath checks the path on the host, and makes it where the type says
// so. Symbolic links are followed, as they are when the path is mounted.
func ensureHostPath(v *corev1.HostPathVolumeSource) error {
	if slices.Contains(strings.Split(v.Path, "/"), "..") {
		return fmt.Errorf("hostPath %s: may not contain \"..\"", v.Path)
	}
	kind := corev1.HostPathUnset
	if v.Type != nil {
		kind = *v.Type
	}
	switch kind {
	case corev1.HostPathUnset:
		return nil
	case corev1.HostPathDirectoryOrCreate:
		if err := makeMissing(v.Path, func() error { return os.MkdirAll(v.Path, 0o755) }); err != nil {
			return err
		}
	case corev1.HostPathFileOrCreate:
		if err := makeMissing(v.Path, func() error { return makeFile(v.Path) }); err != nil {
			return err
		}
	default:
	}
	return checkHostPath(v.Path, kind)
}

func makeMissing(path string, create func() error) error {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = create()
	}
	if err != nil {
		return fmt.Errorf("hostPath %s: %w", path, err)
	}
	return nil
}

// makeFile does not make the directory that the file is in.
func makeFile(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func checkHostPath(path string, kind corev1.HostPathType) error {
	var mode fs.FileMode
	info, err := os.Stat(path)
	if err == nil {
		mode = info.Mode()
	}
	var ok bool
	var want string
	switch kind {
	case corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate:
		ok, want = mode.IsDir(), "directory"
	case corev1.HostPathFile, corev1.HostPathFileOrCreate:
		ok, want = mode.IsRegular(), "file"
	case corev1.HostPathSocket:
		ok, want = mode&fs.ModeSocket != 0, "socket file"
	case corev1.HostPathCharDev:
		ok, want = mode&fs.ModeCharDevice != 0, "character device"
	case corev1.HostPathBlockDev:
		ok, want = mode&fs.ModeDevice != 0 && mode&fs.ModeCharDevice == 0, "block device"
	default:
		return fmt.Errorf("hostPath %s: type %q is not known", path, kind)
	}
	switch {
	case err != nil:
		return fmt.Errorf("hostPath type check failed: %s is not a %s: %w", path, want, err)
	case !ok:
		return fmt.Errorf("hostPath type check failed: %s is not a %s", path, want)
	}
	return nil
}
