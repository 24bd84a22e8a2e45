package container

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/flowlet/flowlet/internal/pod"
)

// maxName is the longest name of a file that Linux file systems take.
const maxName = 255

// linkName is what log collectors look for: POD_NAMESPACE_CONTAINER-ID.log,
// cut before the suffix.
func linkName(id pod.Identity, container, containerID string) string {
	const suffix = ".log"
	name := id.FullName() + "_" + container + "-" + containerID
	return name[:min(len(name), maxName-len(suffix))] + suffix
}

// link makes the link to a container's log. Containers run without, so a
// failure only warns.
func (c *Containers) link(st *Start, id string) {
	if c.Settings.LinkDir == "" {
		return
	}
	log := filepath.Join(st.Sandbox.GetLogDirectory(), st.Container.Name, logName(st.Attempt))
	if _, err := os.Stat(log); errors.Is(err, fs.ErrNotExist) {
		return // a runtime that logs elsewhere
	}
	link := filepath.Join(c.Settings.LinkDir, linkName(st.State.Identity, st.Container.Name, id))
	err := os.Symlink(log, link)
	if errors.Is(err, fs.ErrNotExist) {
		const everybody = 0o755
		if err = os.MkdirAll(c.Settings.LinkDir, everybody); err == nil {
			err = os.Symlink(log, link)
		}
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		c.Log.Warn("container's log has no link", "container", st.Container.Name, "link", link, "error", err)
	}
}

func (c *Containers) unlink(id pod.Identity, ct pod.Container) {
	if c.Settings.LinkDir == "" {
		return
	}
	link := filepath.Join(c.Settings.LinkDir, linkName(id, ct.Name, ct.ID))
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Log.Warn("link to the log of a removed container is left", "link", link, "error", err)
	}
}

// removeLogs removes a log file and those it was rotated into, which have its
// name and an ending.
func removeLogs(path string) error {
	if path == "" {
		return nil
	}
	dir, name := filepath.Split(path)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.Name() == name || strings.HasPrefix(e.Name(), name+".") {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
