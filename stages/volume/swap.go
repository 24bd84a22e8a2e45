package volume

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
)

// dataLink is the link that is swapped; names that begin with two dots are not
// for users.
const (
	dataLink  = "..data"
	plumbing  = ".."
	dataMode  = 0o755
	timestamp = "..2006_01_02_15_04_05."
)

// swapper shows files that change all at once. They are in a directory with a
// time in its name, to which the link ..data points; what users see are links
// through it:
//
//	labels  → ..data/labels
//	..data  → ..2026_11_30_22_10_00.123456789
//
// It may be stopped between any two steps: until ..data points to the new
// directory, the old files are seen, and the next converge does what is left.
type swapper struct {
	root  *os.Root
	group *int64                  // gets what is written; nil: nobody
	step  func(name string) error // a test stops here; nil: none does
}

// converge makes the directory show exactly these files. Nothing is written if
// it does already.
func (w *swapper) converge(p payload) error {
	now, err := w.current()
	if err != nil {
		return err
	}
	if now == "" || !w.holds(now, p) {
		if now, err = w.write(p); err != nil {
			return err
		}
		if err := renameio.SymlinkRoot(w.root, now, dataLink); err != nil {
			return err
		}
		if err := w.reached("swapped"); err != nil {
			return err
		}
	}
	if err := w.link(p); err != nil {
		return err
	}
	return w.tidy(p, now)
}

func (w *swapper) reached(name string) error {
	if w.step == nil {
		return nil
	}
	return w.step(name)
}

// current is the directory that ..data points to; empty when there is none.
func (w *swapper) current() (string, error) {
	name, err := w.root.Readlink(dataLink)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if info, err := w.root.Lstat(name); err != nil || !info.IsDir() || !strings.HasPrefix(name, plumbing) {
		return "", nil //nolint:nilerr // a link to nowhere is no version
	}
	return name, nil
}

// holds reports whether dir has these files and no others. What cannot be read
// is written anew.
func (w *swapper) holds(dir string, p payload) bool {
	left := len(p)
	err := fs.WalkDir(w.root.FS(), dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		want, ok := p[strings.TrimPrefix(name, dir+"/")]
		if !ok || !w.equal(name, want) {
			return errors.New("differs")
		}
		left--
		return nil
	})
	return err == nil && left == 0
}

func (w *swapper) equal(name string, want content) bool {
	info, err := w.root.Lstat(name)
	if err != nil || info.Mode() != w.fileMode(want) || info.Size() != int64(len(want.data)) {
		return false
	}
	is, err := w.root.ReadFile(name)
	return err == nil && bytes.Equal(is, want.data)
}

// fileMode lets the group read.
func (w *swapper) fileMode(c content) fs.FileMode {
	if w.group == nil {
		return c.mode
	}
	return c.mode | 0o440
}

// write makes a new directory with the files.
func (w *swapper) write(p payload) (dir string, err error) {
	dir = fmt.Sprintf("%s%09d", time.Now().UTC().Format(timestamp), rand.IntN(1e9)) //nolint:gosec // no secret
	if err := w.root.Mkdir(dir, dataMode); err != nil {
		return "", err
	}
	if err := w.reached("new directory"); err != nil {
		return "", err
	}
	for _, name := range p.paths() {
		if err := w.root.MkdirAll(path.Join(dir, path.Dir(name)), dataMode); err != nil {
			return "", err
		}
		if err := w.root.WriteFile(path.Join(dir, name), p[name].data, 0o600); err != nil {
			return "", err
		}
		if err := w.reached("wrote " + name); err != nil {
			return "", err
		}
	}
	return dir, w.permit(dir, p)
}

// permit sets modes, whatever the umask, and the group. Like the kubelet it
// goes on where the group cannot be given.
func (w *swapper) permit(dir string, p payload) error {
	return fs.WalkDir(w.root.FS(), dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		mode := fs.FileMode(dataMode)
		if !e.IsDir() {
			mode = w.fileMode(p[strings.TrimPrefix(name, dir+"/")])
		}
		if w.group != nil {
			_ = w.root.Lchown(name, -1, int(*w.group))
			if e.IsDir() {
				mode |= fs.ModeSetgid
			}
		}
		if err := w.root.Chmod(name, mode); err != nil {
			return err
		}
		return w.reached("permitted " + name)
	})
}

// link makes the links that users see.
func (w *swapper) link(p payload) error {
	for _, top := range p.tops() {
		want := dataLink + "/" + top
		info, err := w.root.Lstat(top)
		switch {
		case err == nil && info.IsDir():
			continue // where another volume is mounted inside of this one
		case err == nil:
			if is, err := w.root.Readlink(top); err == nil && is == want {
				continue
			}
			err = w.root.Remove(top)
		}
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = w.root.Symlink(want, top)
		}
		if err != nil {
			return err
		}
		if err := w.reached("linked " + top); err != nil {
			return err
		}
	}
	return nil
}

// tidy removes links to files that are no more, and everything of ours but
// what is shown now: old versions, and what a crash left.
func (w *swapper) tidy(p payload, now string) error {
	entries, err := fs.ReadDir(w.root.FS(), ".")
	if err != nil {
		return err
	}
	tops := p.tops()
	for _, e := range entries {
		name := e.Name()
		_, shown := slices.BinarySearch(tops, name)
		switch {
		case name == dataLink || name == now || shown:
			continue
		case strings.HasPrefix(name, plumbing):
			err = w.root.RemoveAll(name)
		case w.isOurs(e):
			err = w.root.Remove(name)
		default:
			continue
		}
		if err != nil {
			return err
		}
		if err := w.reached("removed " + name); err != nil {
			return err
		}
	}
	return nil
}

// isOurs is true for a link through ..data.
func (w *swapper) isOurs(e fs.DirEntry) bool {
	if e.Type() != fs.ModeSymlink {
		return false
	}
	to, err := w.root.Readlink(e.Name())
	return err == nil && strings.HasPrefix(to, dataLink+"/")
}
