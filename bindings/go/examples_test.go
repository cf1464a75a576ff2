// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// files parses the files of this folder whose names match.
func files(t *testing.T, matches func(name string) bool) (parsed []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if !matches(path) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	return parsed
}

// An operation is an exported function, or the name of an exported method: a method of several types has one example.
func TestEveryOperationHasAnExample(t *testing.T) {
	used := map[string]bool{}
	for _, file := range files(t, func(name string) bool { return strings.HasPrefix(name, "example_") }) {
		ast.Inspect(file, func(node ast.Node) bool {
			if selected, ok := node.(*ast.SelectorExpr); ok {
				used[selected.Sel.Name] = true
			}
			return true
		})
	}
	for _, file := range files(t, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }) {
		for _, declared := range file.Decls {
			function, ok := declared.(*ast.FuncDecl)
			if ok && function.Name.IsExported() && !used[function.Name.Name] && !isCallback(function) {
				t.Errorf("%s: no example uses it", function.Name.Name)
			}
		}
	}
}

// isCallback reports whether the method is one of an unexported type, which C calls.
func isCallback(function *ast.FuncDecl) bool {
	if function.Recv == nil {
		return false
	}
	receiver := function.Recv.List[0].Type
	for {
		switch inner := receiver.(type) {
		case *ast.StarExpr:
			receiver = inner.X
		case *ast.IndexExpr:
			receiver = inner.X
		case *ast.IndexListExpr:
			receiver = inner.X
		case *ast.Ident:
			promoted := map[string]bool{"owner": true, "arrayOwner": true, "stream": true, "view": true}
			return !inner.IsExported() && !promoted[inner.Name]
		default:
			return false
		}
	}
}
