package container

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
)

// mostEnvFile is how much of a file with variables is read, in bytes: a
// container that writes on and on must not fill the agent's memory.
const mostEnvFile = 1 << 20

// fileKey reads a variable from a file that another container of the pod has
// written into an emptyDir. A link in it does not lead out of the volume.
// Values are in no error: they may be secret.
func (c *Containers) fileKey(p *v1.Pod, ref *v1.FileKeySelector) (value string, ok bool, err error) {
	if !c.Settings.EnvFiles {
		return "", false, errors.New("fileKeyRef: needs the feature gate EnvFiles")
	}
	dir, err := c.Volumes.VolumePath(p, ref.VolumeName)
	if err != nil {
		return "", false, fmt.Errorf("fileKeyRef: %w", err)
	}
	optional := ref.Optional != nil && *ref.Optional
	value, err = readKey(dir, ref.Path, ref.Key)
	switch {
	case errors.Is(err, fs.ErrNotExist) && optional:
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("fileKeyRef: file %s of volume %s: %w", ref.Path, ref.VolumeName, err)
	case strings.ContainsRune(value, 0): // a runtime's error might quote it
		return "", false, fmt.Errorf("fileKeyRef: file %s of volume %s: the value of %s has a NUL byte in it, which no variable can hold", ref.Path, ref.VolumeName, ref.Key)
	case value == "" && optional:
		return "", false, nil
	case value == "":
		return "", false, fmt.Errorf("environment variable key %q not found in file %q of volume %s", ref.Key, ref.Path, ref.VolumeName)
	}
	return value, true, nil
}

func readKey(dir, path, key string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close() //nolint:errcheck // read only
	f, err := root.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // read only
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New("it is no regular file")
	case info.Size() > mostEnvFile:
		return "", fmt.Errorf("it is larger than %d bytes", mostEnvFile)
	}
	return envKey(io.LimitReader(f, mostEnvFile), key)
}

// envKey returns the value of a key among lines NAME='value', where a value
// may go over several lines and holds no quote; "" where it is not, or empty.
// Lines that begin with # and empty ones count for nothing, as in kubelet v1.37.2.
func envKey(r io.Reader, key string) (string, error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, mostEnvFile+1)
	for line := 1; sc.Scan(); line++ {
		text := strings.TrimLeft(sc.Text(), " \t")
		if text == "" || text[0] == '#' {
			continue
		}
		name, rest, ok := strings.Cut(text, "=")
		switch {
		case !ok:
			return "", fmt.Errorf("line %d: missing '='", line)
		case name == "" || strings.TrimRight(name, " \t") != name:
			return "", fmt.Errorf("line %d: there must be a name right before '='", line)
		case strings.TrimLeft(rest, " \t") != rest: // as a shell takes it: empty
			if name == key {
				return "", nil
			}
			continue
		}
		begin := line
		value, after, closed := quoted(rest)
		if value == nil {
			return "", fmt.Errorf("line %d: a value must be in single quotes", line)
		}
		for !closed {
			if !sc.Scan() {
				return "", fmt.Errorf("line %d: the quote is never closed", begin)
			}
			line++
			var more string
			more, after, closed = strings.Cut(sc.Text(), "'")
			*value += "\n" + more
		}
		if after = strings.TrimLeft(after, " \t"); after != "" && after[0] != '#' {
			return "", fmt.Errorf("line %d: there is something after the closing quote", line)
		}
		if name == key {
			return *value, nil
		}
	}
	return "", sc.Err()
}

// quoted returns what follows an opening quote, up to the closing one if it is
// in text; a nil value where there is no opening quote.
func quoted(text string) (value *string, after string, closed bool) {
	rest, ok := strings.CutPrefix(text, "'")
	if !ok {
		return nil, "", false
	}
	rest, after, closed = strings.Cut(rest, "'")
	return &rest, after, closed
}
