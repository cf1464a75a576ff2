// Command apidoc writes the documentation of packages as Markdown, one page for each:
//
//	apidoc OUT TITLE=FOLDER...
//
// The page of a package is OUT/TITLE.md.
package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fail("missing argument: expected OUT TITLE=FOLDER...")
	}
	for _, argument := range os.Args[2:] {
		title, folder, _ := strings.Cut(argument, "=")
		text, err := page(title, folder)
		if err != nil {
			fail(err.Error())
		}
		path := filepath.Join(os.Args[1], title+".md")
		if err := os.WriteFile(path, text, 0o644); err != nil {
			fail(err.Error())
		}
	}
}

func fail(text string) {
	fmt.Fprintln(os.Stderr, "apidoc:", text)
	os.Exit(2)
}

// printer writes the parts of a page.
type printer struct {
	bytes.Buffer
	files *token.FileSet
	of    *doc.Package
	has   map[string]bool // symbols with a heading
}

func page(title, folder string) ([]byte, error) {
	found, err := build.ImportDir(folder, 0)
	if err != nil {
		return nil, err
	}
	out := &printer{files: token.NewFileSet()}
	var files []*ast.File
	for _, name := range append(found.GoFiles, found.CgoFiles...) {
		file, err := parser.ParseFile(out.files, filepath.Join(folder, name), nil, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if out.of, err = doc.NewFromFiles(out.files, files, found.ImportPath); err != nil {
		return nil, err
	}
	out.has = names(out.of)
	fmt.Fprintf(out, "# Go: %s\n\n", title)
	out.prose(out.of.Doc, 2)
	out.values(out.of.Consts)
	out.values(out.of.Vars)
	for _, each := range out.of.Funcs {
		out.function(each, "")
	}
	for _, each := range out.of.Types {
		out.symbol(each.Name, each.Decl, each.Doc)
		out.values(each.Consts)
		out.values(each.Vars)
		for _, function := range each.Funcs {
			out.function(function, "")
		}
		for _, method := range each.Methods {
			out.function(method, each.Name+".")
		}
	}
	return out.Bytes(), nil
}

func (out *printer) function(function *doc.Func, receiver string) {
	out.symbol(receiver+function.Name, function.Decl, function.Doc)
}

func (out *printer) values(values []*doc.Value) {
	for _, each := range values {
		out.symbol(cmp.Or(strings.Join(each.Names[:min(len(each.Names), 2)], ", "), "values"), each.Decl, each.Doc)
	}
}

// symbol writes a heading, the declaration and the comment.
func (out *printer) symbol(name string, declaration ast.Decl, text string) {
	fmt.Fprintf(out, "## `%s`\n\n```go\n", name)
	if function, is := declaration.(*ast.FuncDecl); is {
		function.Body = nil
	}
	if err := format.Node(out, out.files, declaration); err != nil {
		fail(err.Error())
	}
	out.WriteString("\n```\n\n")
	out.prose(text, 3)
}

func (out *printer) prose(text string, level int) {
	markdown := out.of.Printer()
	markdown.HeadingLevel = level
	markdown.DocLinkURL = out.address
	markdown.HeadingID = func(*comment.Heading) string { return "" }
	out.Write(markdown.Markdown(out.of.Parser().Parse(text)))
	out.WriteString("\n")
}

// address is the heading of a symbol of this page, or empty for other symbols.
func (out *printer) address(link *comment.DocLink) string {
	name := link.Name
	if link.Recv != "" {
		name = link.Recv + "." + link.Name
	}
	if link.ImportPath != "" || !out.has[name] {
		return ""
	}
	return "#" + strings.ToLower(strings.ReplaceAll(name, ".", ""))
}

// names returns the symbols with a heading.
func names(of *doc.Package) map[string]bool {
	found := map[string]bool{}
	for _, function := range of.Funcs {
		found[function.Name] = true
	}
	for _, each := range of.Types {
		found[each.Name] = true
		for _, function := range each.Funcs {
			found[function.Name] = true
		}
		for _, method := range each.Methods {
			found[each.Name+"."+method.Name] = true
		}
	}
	return found
}
