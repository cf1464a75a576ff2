// SPDX-License-Identifier: Apache-2.0

// Package examples checks that the examples of a package are complete.
package examples

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Check reports the operations of the package in the current folder that no example uses, and examples whose output is
// not checked. An operation is an exported function or the name of an exported method; a method of several types needs
// one example. The methods of unexported types are C callbacks and do not count, except for the promoted types.
func Check(t *testing.T, unchecked, promoted []string) {
	t.Helper()
	examples := files(t, func(name string) bool { return strings.HasPrefix(name, "example_") })
	used := map[string]bool{}
	for _, file := range examples {
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
			if ok && function.Name.IsExported() && !used[function.Name.Name] && !isCallback(function, promoted) {
				t.Errorf("%s: no example uses it", function.Name.Name)
			}
		}
	}
	var silent []string
	for _, example := range doc.Examples(examples...) {
		if example.Output == "" {
			silent = append(silent, example.Name)
		}
	}
	slices.Sort(unchecked)
	if !slices.Equal(silent, unchecked) {
		t.Errorf("examples without output: expected %v, got %v", unchecked, silent)
	}
}

// files parses the files of the current folder whose names match.
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
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	return parsed
}

func isCallback(function *ast.FuncDecl, promoted []string) bool {
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
			return !inner.IsExported() && !slices.Contains(promoted, inner.Name)
		default:
			return false
		}
	}
}
