package archtest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/flowlet/flowlet"

// pkg is what the rules need to know of a package, its path relative to the module.
type pkg struct {
	path    string
	dir     string
	doc     string
	files   []string // without tests
	imports []string // of files; paths of this module are relative
	tests   bool     // there are test files
}

// testDouble says whether p serves tests only, by the naming habit.
func (p pkg) testDouble() bool {
	return strings.HasSuffix(path.Base(p.path), "test") || strings.HasPrefix(p.path, "test/")
}

// load lists the packages of the module that holds this test. Scaffolding that pins dependencies is left out.
func load(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,Doc,GoFiles,Imports,TestGoFiles,XTestGoFiles", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoErrorf(t, err, "go list: %s", stderr.String())

	var pkgs []pkg
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l struct {
			ImportPath, Dir, Doc                        string
			GoFiles, Imports, TestGoFiles, XTestGoFiles []string
		}
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		p := pkg{path: relative(l.ImportPath), dir: l.Dir, doc: l.Doc, files: l.GoFiles}
		p.tests = len(l.TestGoFiles)+len(l.XTestGoFiles) > 0
		for _, imp := range l.Imports {
			p.imports = append(p.imports, relative(imp))
		}
		pkgs = append(pkgs, p)
	}
	require.NotEmpty(t, pkgs)
	return pkgs
}

func relative(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }

// match says how well p fits a pattern: 0 not at all, otherwise longer is better and an exact path is best.
func match(pattern, p string) int {
	switch {
	case pattern == "*":
		return 1
	case pattern == p:
		return 2*len(p) + 1
	case strings.HasSuffix(pattern, "/*") && strings.HasPrefix(p, strings.TrimSuffix(pattern, "*")):
		return 2 * (len(pattern) - 1)
	}
	return 0
}

func matchAny(patterns []string, p string) bool {
	for _, pattern := range patterns {
		if match(pattern, p) > 0 {
			return true
		}
	}
	return false
}
