// SPDX-License-Identifier: Apache-2.0

// Command mutants writes copies of the hand-written files of packages that contain every mutant as a choice at run
// time, and an overlay for `go build`:
//
//	mutants OUT FOLDER...
//
// OUT/mutants.json lists the mutants, OUT/overlay.json is for -overlay. In a program built with the overlay, the
// environment variable FLETCHING_MUTANT selects a mutant by its number. FLETCHING_MUTANTS_SEEN names a file of zeros, in
// which the byte of each reached mutant is set to 1.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Mutant is one change in one place.
type Mutant struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Change string `json:"change"`
	Nth    int    `json:"nth"` // among equal changes in the file
}

// pkg is the output of `go list` for a package.
type pkg struct {
	Dir, Name         string
	GoFiles, CgoFiles []string
	ImportPath        string
	Export            string
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: mutants OUT FOLDER...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(out string, folders []string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	var mutants []Mutant
	replace := map[string]string{}
	for _, folder := range folders {
		if err := mutatePackage(folder, filepath.Join(out, "tree", folder), replace, &mutants); err != nil {
			return fmt.Errorf("%s: %w", folder, err)
		}
	}
	if err := writeJSON(filepath.Join(out, "mutants.json"), mutants); err != nil {
		return err
	}
	return writeJSON(filepath.Join(out, "overlay.json"), map[string]any{"Replace": replace})
}

func writeJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

func mutatePackage(folder, out string, replace map[string]string, mutants *[]Mutant) error {
	listed, err := list(folder)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	own := listed[len(listed)-1] // `go list -deps` lists it last
	sources, files, err := parse(own)
	if err != nil {
		return err
	}
	info := check(own, files, listed)
	for i, file := range files.syntax {
		if ast.IsGenerated(file) {
			continue
		}
		name := filepath.Base(sources[i])
		m := &mutator{
			name: filepath.ToSlash(filepath.Join(folder, name)), source: files.text[i], file: files.set.File(file.Pos()), info: info,
			mutants: mutants, counts: map[string]int{}, guards: map[ast.Stmt]bool{},
		}
		path := filepath.Join(out, name)
		if err := os.WriteFile(path, []byte(m.mutated(file)), 0o644); err != nil {
			return err
		}
		replace[sources[i]] = path
	}
	helper := filepath.Join(out, "fletching_mutant.go")
	replace[filepath.Join(own.Dir, "fletching_mutant.go")] = helper
	return os.WriteFile(helper, []byte(strings.Replace(choice, "PACKAGE", own.Name, 1)), 0o644)
}

// list returns the dependencies of the package in the folder, followed by that package.
func list(folder string) (listed []pkg, err error) {
	command := exec.Command("go", "list", "-deps", "-export", "-json=Dir,Name,GoFiles,CgoFiles,ImportPath,Export", ".")
	command.Dir, command.Stderr = folder, os.Stderr
	text, err := command.Output()
	if err != nil {
		return nil, err
	}
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		var one pkg
		if err := decoder.Decode(&one); errors.Is(err, io.EOF) {
			return listed, nil
		} else if err != nil {
			return nil, err
		}
		listed = append(listed, one)
	}
}

type parsed struct {
	set    *token.FileSet
	syntax []*ast.File
	text   []string
}

func parse(own pkg) (sources []string, files parsed, err error) {
	files.set = token.NewFileSet()
	for _, name := range append(own.GoFiles, own.CgoFiles...) {
		path := filepath.Join(own.Dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, files, err
		}
		file, err := parser.ParseFile(files.set, path, text, parser.ParseComments)
		if err != nil {
			return nil, files, err
		}
		sources, files.syntax, files.text = append(sources, path), append(files.syntax, file), append(files.text, string(text))
	}
	return sources, files, nil
}

// check determines the types. C names have no type, so they get only mutants that need none.
func check(own pkg, files parsed, listed []pkg) *types.Info {
	exports := map[string]string{}
	for _, one := range listed {
		exports[one.ImportPath] = one.Export
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
	info := &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
	}
	config := types.Config{
		FakeImportC: true, Importer: importer.ForCompiler(files.set, "gc", open), Error: func(error) {},
	}
	_, _ = config.Check(own.ImportPath, files.set, files.syntax, info) // errors were passed to Error
	return info
}

// choice is the file that is added to a mutated package.
//
//go:embed choice.go.txt
var choice string
