package fields_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// words are what a piece of test code has: identifiers, fields that it sets as
// TYPE.FIELD (or .FIELD, where only an assignment shows it), and texts.
type words struct {
	uses, sets map[string]bool
	texts      []text
}

// text is a string literal or a file with its keys, as of a manifest.
type text struct {
	all  string
	keys map[string]bool
}

func newWords() words { return words{uses: map[string]bool{}, sets: map[string]bool{}} }

// mentions reports whether the code sets a field, in Go or in a manifest, where
// what the field belongs to must be named too.
func (w words) mentions(f apiField) bool {
	held := len(f.holders) == 0
	for holder := range f.holders {
		held = held || w.key(holder)
	}
	return w.sets[f.section+"."+f.goName] || w.sets[f.owner+"."+f.goName] || w.sets["."+f.goName] || held && w.key(f.json)
}

// key reports whether a text has that key.
func (w words) key(name string) bool {
	return slices.ContainsFunc(w.texts, func(t text) bool { return t.keys[name] })
}

func (w words) contains(s string) bool {
	return slices.ContainsFunc(w.texts, func(t text) bool { return strings.Contains(t.all, s) })
}

// testCode knows the tests of the repository: by package directory and name,
// the words of the test and of all that it uses of its own package's tests.
type testCode map[string]map[string]words

func readTests(t *testing.T, root string) testCode {
	t.Helper()
	files := map[string][]*ast.File{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "tools" || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != root):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		dir, _ := filepath.Rel(root, filepath.Dir(path))
		files[dir] = append(files[dir], f)
		return err
	}))
	code := testCode{}
	for dir, list := range files {
		code[dir] = testsOf(list)
		shared := manifests(t, filepath.Join(root, dir, "testdata"))
		for name, w := range code[dir] {
			if slices.ContainsFunc(w.texts, func(t text) bool { return strings.HasPrefix(t.all, "testdata") }) {
				code[dir][name] = w.with(shared)
			}
		}
	}
	return code
}

// manifests are the words of the files that tests of a package read.
func manifests(t *testing.T, dir string) words {
	t.Helper()
	w := newWords()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !(strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".json")) {
			return err
		}
		data, err := os.ReadFile(path)
		w.text(string(data))
		return err
	})
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	return w
}

func testsOf(files []*ast.File) map[string]words {
	own := map[string]words{} // by declared name: its own words
	for _, f := range files {
		for _, d := range f.Decls {
			declare(own, d)
		}
	}
	tests := map[string]words{}
	for name := range own {
		if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") {
			all, seen := newWords(), map[string]bool{}
			reach(own, name, &all, seen)
			tests[name] = all
		}
	}
	return tests
}

func declare(own map[string]words, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		own[d.Name.Name] = own[d.Name.Name].with(wordsOf(d))
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.ValueSpec:
				for _, n := range s.Names {
					own[n.Name] = own[n.Name].with(wordsOf(s))
				}
			case *ast.TypeSpec:
				own[s.Name.Name] = own[s.Name.Name].with(wordsOf(s))
			}
		}
	}
}

// reach collects what a declaration uses, directly or not.
func reach(own map[string]words, name string, all *words, seen map[string]bool) {
	if seen[name] {
		return
	}
	seen[name] = true
	*all = all.with(own[name])
	for used := range own[name].uses {
		if _, ok := own[used]; ok {
			reach(own, used, all, seen)
		}
	}
}

func (w words) with(more words) words {
	out := newWords()
	out.texts = slices.Concat(w.texts, more.texts)
	for _, from := range []words{w, more} {
		maps.Copy(out.uses, from.uses)
		maps.Copy(out.sets, from.sets)
	}
	return out
}

var keyOf = regexp.MustCompile(`([A-Za-z][A-Za-z0-9]*)["']?\s*:`)

func (w *words) text(s string) {
	t := text{all: s, keys: map[string]bool{}}
	for _, found := range keyOf.FindAllStringSubmatch(s, -1) {
		t.keys[found[1]] = true
	}
	w.texts = append(w.texts, t)
}

func wordsOf(n ast.Node) words {
	w := newWords()
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			w.uses[n.Name] = true
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				w.text(s)
			}
		case *ast.AssignStmt:
			for _, to := range n.Lhs {
				if sel, ok := to.(*ast.SelectorExpr); ok {
					w.sets["."+sel.Sel.Name] = true
				}
			}
		case *ast.CompositeLit:
			w.composite(n, n.Type)
		}
		return true
	})
	return w
}

// composite notes the fields that a literal sets; the type may be left out
// inside another literal.
func (w *words) composite(lit *ast.CompositeLit, of ast.Expr) {
	inner := element(of)
	for _, e := range lit.Elts {
		value := e
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			value = kv.Value
			if name, ok := kv.Key.(*ast.Ident); ok && of != nil {
				w.sets[typeName(of)+"."+name.Name] = true
			}
		}
		if l, ok := value.(*ast.CompositeLit); ok && l.Type == nil && inner != nil {
			w.composite(l, inner)
		}
	}
}

func element(of ast.Expr) ast.Expr {
	switch t := of.(type) {
	case *ast.ArrayType:
		return t.Elt
	case *ast.MapType:
		return t.Value
	}
	return nil
}

func typeName(of ast.Expr) string {
	switch t := of.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.StarExpr:
		return typeName(t.X)
	}
	return ""
}
