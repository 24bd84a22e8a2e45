package file

import (
	"path/filepath"
	"strings"
)

// ignoredName says why a file of that name is no manifest; empty when it may
// be one. Copies that editors and people leave behind end in something else
// than a manifest does, which is all that has to be known about them.
func ignoredName(name string) string {
	if strings.HasPrefix(name, ".") {
		return "its name begins with a dot"
	}
	switch filepath.Ext(name) {
	case ".yaml", ".yml", ".json":
		return ""
	}
	return "its name does not end in .yaml, .yml or .json"
}

// ignoredDirectory is why a directory is no manifest.
const ignoredDirectory = "it is a directory, and manifests in sub-directories are not read"

// isPlumbing is true for the entries by which a mounted config map swaps its
// contents (..data and the directories it points to): not worth a word.
func isPlumbing(name string) bool { return strings.HasPrefix(name, "..") }
