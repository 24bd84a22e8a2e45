package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// layerOf is the index of p's layer in layers, -1 when the map does not know the folder.
func layerOf(p string) int {
	best, at := 0, -1
	for i, l := range layers {
		for _, pattern := range l.paths {
			if m := match(pattern, p); m > best {
				best, at = m, i
			}
		}
	}
	return at
}

func TestEveryPackageIsOnTheMap(t *testing.T) {
	for _, p := range load(t) {
		if layerOf(p.path) < 0 {
			t.Errorf("package %s is in no layer: put it into a folder of CONTRIBUTING.md, or change the map there, in docs/architecture.md and in rules_test.go on purpose", p.path)
		}
	}
}

func TestImportsPointDown(t *testing.T) {
	for _, p := range load(t) {
		from := layerOf(p.path)
		for _, imp := range p.imports {
			to := layerOf(imp)
			if from < 0 || to < 0 || to > from {
				continue
			}
			if to < from {
				t.Errorf("%s (%s) imports %s (%s): imports point down only", p.path, layers[from].name, imp, layers[to].name)
			} else if !siblingAllowed(p.path, imp) {
				t.Errorf("%s imports %s: packages of one layer (%s) do not know each other; declare an interface or move the shared part down", p.path, imp, layers[from].name)
			}
		}
	}
}

func siblingAllowed(from, to string) bool {
	if strings.HasPrefix(to, from+"/") {
		return true
	}
	for _, e := range siblings {
		if match(e.from, from) > 0 && match(e.to, to) > 0 {
			return true
		}
	}
	return false
}

func TestBannedImports(t *testing.T) {
	for _, p := range load(t) {
		for _, b := range bans {
			if !matchAny(b.from, p.path) || matchAny(b.except, p.path) || b.exceptTests && p.testDouble() {
				continue
			}
			for _, imp := range p.imports {
				if banned(b, imp) {
					t.Errorf("%s imports %s: %s", p.path, imp, b.why)
				}
			}
		}
	}
}

func banned(b ban, imp string) bool {
	for _, pattern := range b.imports {
		if match(pattern, imp) > 0 || !strings.HasSuffix(pattern, "/*") && strings.Contains(pattern, ".") && strings.HasPrefix(imp, pattern) {
			return true
		}
	}
	return false
}

func TestTestDoublesStayInTests(t *testing.T) {
	for _, p := range load(t) {
		for _, imp := range p.imports {
			double := pkg{path: imp}
			if layerOf(imp) >= 0 && double.testDouble() && !p.testDouble() {
				t.Errorf("%s imports %s, which is for tests", p.path, imp)
			}
		}
	}
}

func TestEveryPackageHasADocComment(t *testing.T) {
	for _, p := range load(t) {
		if p.doc == "" && len(p.files) > 0 {
			t.Errorf("package %s has no doc comment: say in one sentence what it is for", p.path)
		}
	}
}

func TestHabitsOfProductCode(t *testing.T) {
	fset := token.NewFileSet()
	for _, p := range load(t) {
		if p.testDouble() {
			continue
		}
		for _, name := range p.files {
			f, err := parser.ParseFile(fset, filepath.Join(p.dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			checkFile(t, fset, p.path, f)
		}
	}
}

// checkFile reports init functions and the calls of the table. It looks at syntax alone, which a local variable named like
// a package could fool; that is a bad name anyway.
func checkFile(t *testing.T, fset *token.FileSet, path string, f *ast.File) {
	t.Helper()
	names := map[string]string{} // local name → import path
	for _, spec := range f.Imports {
		imp, _ := strconv.Unquote(spec.Path.Value)
		local := imp[strings.LastIndex(imp, "/")+1:]
		if spec.Name != nil {
			local = spec.Name.Name
		}
		names[local] = imp
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Recv == nil && n.Name.Name == "init" {
				t.Errorf("%s: func init: start nothing and register nothing on import; wire it in cmd/flowlet/app", fset.Position(n.Pos()))
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if !ok {
				return true
			}
			for _, c := range calls {
				if names[x.Name] == c.pkg && n.Sel.Name == c.fn && !matchAny(c.except, path) {
					t.Errorf("%s: %s.%s: %s", fset.Position(n.Pos()), c.pkg, c.fn, c.instead)
				}
			}
		}
		return true
	})
}
