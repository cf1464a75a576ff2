// SPDX-License-Identifier: Apache-2.0

// Package targets computes the layout of structs for any target as the Go compiler does, without compiling.
package targets

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Layout describes a struct or a field. The offset of a struct is 0. A constant has only a kind: its value.
type Layout struct {
	Offset, Size int64
	Kind         string // "int64", "address" of a pointer or uintptr, "[3]int64" or "struct"
}

func (l Layout) String() string {
	return fmt.Sprintf("%s at offset %d, size %d", l.Kind, l.Offset, l.Size)
}

// standard imports the packages of the standard library once. Their types are the same on all targets.
var standard = newImporter()

func newImporter() types.Importer {
	if build.Default.GOROOT == "" { // the program is built with -trimpath
		if root, err := exec.Command("go", "env", "GOROOT").Output(); err == nil {
			build.Default.GOROOT = strings.TrimSpace(string(root))
		}
	}
	return importer.ForCompiler(token.NewFileSet(), "source", nil)
}

// Sources reads the files that a package has on a target without cgo, by name.
func Sources(folder, goos, goarch string) (map[string]string, error) {
	target := build.Default
	target.GOOS, target.GOARCH, target.CgoEnabled = goos, goarch, false
	found, err := target.ImportDir(folder, 0)
	if err != nil {
		return nil, err
	}
	sources := map[string]string{}
	for _, name := range found.GoFiles {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			return nil, err
		}
		sources[name] = string(text)
	}
	return sources, nil
}

// Check type-checks a package for a target, including sizes and assertions. The error joins all errors that the
// compiler would report. The keys of the layouts are "Struct", "Struct.Field" and "Constant".
func Check(sources map[string]string, goarch string) (map[string]Layout, error) {
	set := token.NewFileSet()
	var files []*ast.File
	for name, text := range sources {
		file, err := parser.ParseFile(set, name, text, 0)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	var problems []error
	config := types.Config{
		Importer: standard,
		Sizes:    types.SizesFor("gc", goarch),
		Error:    func(err error) { problems = append(problems, err) },
	}
	// config.Check returns only the first problem.
	checked, _ := config.Check("target", set, files, nil)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return layouts(checked.Scope(), config.Sizes), nil
}

func layouts(scope *types.Scope, sizes types.Sizes) map[string]Layout {
	found := map[string]Layout{}
	for _, name := range scope.Names() {
		if value, isConstant := scope.Lookup(name).(*types.Const); isConstant {
			found[name] = Layout{Kind: value.Val().ExactString()}
		}
		declared := scope.Lookup(name).Type()
		members, isStruct := declared.Underlying().(*types.Struct)
		if !isStruct {
			continue
		}
		found[name] = Layout{0, sizes.Sizeof(declared), kind(declared)}
		var fields []*types.Var
		for i := range members.NumFields() {
			fields = append(fields, members.Field(i))
		}
		for i, offset := range sizes.Offsetsof(fields) {
			found[name+"."+fields[i].Name()] = Layout{offset, sizes.Sizeof(fields[i].Type()), kind(fields[i].Type())}
		}
	}
	return found
}

func kind(t types.Type) string {
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return "address"
	case *types.Array:
		return fmt.Sprintf("[%d]%s", u.Len(), kind(u.Elem()))
	case *types.Struct:
		return "struct"
	default:
		if types.Identical(u, types.Typ[types.Uintptr]) {
			return "address"
		}
		return u.String()
	}
}
