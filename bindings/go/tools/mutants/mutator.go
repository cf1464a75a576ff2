// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// mutator rewrites one file with the choices. Its methods return the new text of a node.
type mutator struct {
	name    string
	source  string
	file    *token.File
	info    *types.Info
	mutants *[]Mutant
	counts  map[string]int

	function string            // the current function, such as "owner.Close"
	results  []*types.Tuple    // the results of the enclosing functions, innermost last
	guards   map[ast.Stmt]bool // the last statement of each if without else
}

func (m *mutator) plain(node ast.Node) string { return m.text(node.Pos(), node.End()) }

func (m *mutator) text(from, to token.Pos) string {
	return m.source[m.file.Offset(from):m.file.Offset(to)]
}

// add returns the number of a new mutant.
func (m *mutator) add(at ast.Node, format string, arguments ...any) int {
	change := fmt.Sprintf(format, arguments...) + " in " + m.function
	m.counts[change]++
	*m.mutants = append(*m.mutants, Mutant{m.name, m.file.Line(at.Pos()), change, m.counts[change]})
	return len(*m.mutants) - 1
}

// short returns the text of a node for the list of mutants.
func (m *mutator) short(node ast.Node) string {
	text := strings.Join(strings.Fields(m.plain(node)), " ")
	if runes := []rune(text); len(runes) > 48 {
		text = string(runes[:45]) + "..."
	}
	return text
}

func (m *mutator) mutated(file *ast.File) string {
	var text strings.Builder
	from := m.file.Pos(0)
	for _, declaration := range file.Decls {
		text.WriteString(m.text(from, declaration.Pos()))
		text.WriteString(m.declaration(declaration))
		from = declaration.End()
	}
	text.WriteString(m.source[m.file.Offset(from):])
	return text.String()
}

func (m *mutator) declaration(declaration ast.Decl) string {
	switch declaration := declaration.(type) {
	case *ast.FuncDecl:
		if declaration.Body == nil {
			break
		}
		m.function = declaration.Name.Name
		if declaration.Recv != nil {
			receiver := strings.TrimLeft(m.short(declaration.Recv.List[0].Type), "*")
			m.function = strings.SplitN(receiver, "[", 2)[0] + "." + m.function
		}
		signature := m.info.Defs[declaration.Name].Type().(*types.Signature)
		return m.text(declaration.Pos(), declaration.Body.Pos()) + m.body(signature, declaration.Body)
	case *ast.GenDecl:
		if spec, isValue := declaration.Specs[0].(*ast.ValueSpec); declaration.Tok == token.VAR && isValue {
			m.function = spec.Names[0].Name
			return m.below(declaration)
		}
	}
	return m.plain(declaration)
}

func (m *mutator) body(signature *types.Signature, body *ast.BlockStmt) string {
	m.results = append(m.results, signature.Results())
	defer func() { m.results = m.results[:len(m.results)-1] }()
	return m.node(body)
}

// below returns the text of a node with changes only in its children.
func (m *mutator) below(node ast.Node) string {
	var children []ast.Node
	ast.Inspect(node, func(child ast.Node) bool {
		if child == node {
			return true
		}
		if _, isComment := child.(*ast.CommentGroup); child != nil && !isComment {
			children = append(children, child)
		}
		return false
	})
	slices.SortStableFunc(children, func(a, b ast.Node) int { return cmp.Compare(a.Pos(), b.Pos()) })
	var text strings.Builder
	from := node.Pos()
	for _, child := range children {
		text.WriteString(m.text(from, child.Pos()))
		text.WriteString(m.child(node, child))
		from = child.End()
	}
	text.WriteString(m.text(from, node.End()))
	return text.String()
}

// child returns the text of a node according to its role in its parent.
func (m *mutator) child(above, node ast.Node) string {
	statement, isStatement := node.(ast.Stmt)
	switch above := above.(type) {
	case *ast.BlockStmt:
		return m.statement(statement)
	case *ast.CommClause:
		if node == above.Comm {
			return m.plain(node)
		}
		return m.statement(statement)
	case *ast.CaseClause:
		if isStatement {
			return m.statement(statement)
		}
		return m.condition(node.(ast.Expr)) // not a bool in a switch with a tag
	case *ast.ReturnStmt:
		return m.condition(node.(ast.Expr))
	case *ast.IfStmt:
		if last := len(above.Body.List) - 1; above.Else == nil && last >= 0 {
			m.guards[above.Body.List[last]] = true
		}
		if node == above.Cond {
			return m.condition(above.Cond)
		}
	case *ast.ForStmt:
		if node == above.Cond {
			return m.condition(above.Cond)
		}
	}
	return m.node(node)
}

func (m *mutator) node(node ast.Node) string {
	switch node := node.(type) {
	case *ast.FuncType, *ast.ArrayType, *ast.MapType, *ast.StructType, *ast.Field, *ast.FieldList:
		return m.plain(node)
	case ast.Expr:
		return m.expression(node)
	case *ast.DeclStmt:
		if node.Decl.(*ast.GenDecl).Tok != token.VAR {
			return m.plain(node)
		}
	}
	return m.below(node)
}
