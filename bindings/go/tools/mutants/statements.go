// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"strings"
)

// statement returns the text of a statement in a list, which may be several statements.
func (m *mutator) statement(statement ast.Stmt) string {
	var text string
	switch known := statement.(type) {
	case *ast.ReturnStmt:
		text = m.returns(known)
	case *ast.IncDecStmt:
		text = m.step(known)
	case *ast.AssignStmt:
		text = m.assignment(known)
	default:
		text = m.node(statement)
	}
	switch {
	case isExit(statement) && m.guards[statement]:
		return fmt.Sprintf("if !isMutant(%d) { %s }", m.add(statement, "remove exit %s", m.short(statement)), text)
	case m.canBeRemoved(statement):
		return fmt.Sprintf("if !isMutant(%d) { %s }", m.add(statement, "remove %s", m.short(statement)), text)
	}
	return text
}

func isExit(statement ast.Stmt) bool {
	switch statement := statement.(type) {
	case *ast.ReturnStmt:
		return true
	case *ast.BranchStmt:
		return statement.Tok == token.BREAK || statement.Tok == token.CONTINUE
	}
	return false
}

// canBeRemoved excludes KeepAlive: without it a test fails only if a garbage collection runs at that moment.
func (m *mutator) canBeRemoved(statement ast.Stmt) bool {
	switch statement := statement.(type) {
	case *ast.ExprStmt:
		call, isCall := statement.X.(*ast.CallExpr)
		return isCall && !strings.HasPrefix(m.short(call), "runtime.KeepAlive(") && m.short(call.Fun) != "panic"
	case *ast.DeferStmt:
		return m.short(statement.Call.Fun) != "runtime.KeepAlive"
	case *ast.AssignStmt:
		_, isCall := statement.Rhs[0].(*ast.CallExpr)
		return statement.Tok != token.DEFINE && (isCall || m.short(statement.Lhs[0]) != "_")
	case *ast.IncDecStmt, *ast.GoStmt, *ast.SendStmt:
		return true
	}
	return false
}

// assignment returns `x += 1` as a choice between it and `x -= 1`.
func (m *mutator) assignment(statement *ast.AssignStmt) string {
	operator := strings.TrimSuffix(statement.Tok.String(), "=")
	to, known := arithmetic[operator]
	if !known || !m.isNumber(statement.Lhs[0]) {
		return m.below(statement)
	}
	number := m.add(statement, "replace %s= with %s= of %s", operator, to, m.short(statement.Lhs[0]))
	left, right := m.short(statement.Lhs[0]), m.short(statement.Rhs[0])
	return fmt.Sprintf("if isMutant(%d) { %s %s= %s } else { %s }", number, left, to, right, m.below(statement))
}

// step returns `x++` as a choice between it and `x--`.
func (m *mutator) step(statement *ast.IncDecStmt) string {
	to := map[token.Token]token.Token{token.INC: token.DEC, token.DEC: token.INC}[statement.Tok]
	number := m.add(statement, "replace %s with %s of %s", statement.Tok, to, m.short(statement.X))
	return fmt.Sprintf("if isMutant(%d) { %s%s } else { %s }", number, m.short(statement.X), to, m.below(statement))
}

// returns adds returns of empty values before the statement.
func (m *mutator) returns(statement *ast.ReturnStmt) string {
	results := m.results[len(m.results)-1]
	if results == nil || results.Len() != len(statement.Results) {
		return m.below(statement)
	}
	last := len(statement.Results) - 1
	_, isNew := statement.Results[last].(*ast.CallExpr)
	fails := last > 0 && (isNew || m.guards[statement]) && isError(results.At(last).Type()) && m.plain(statement.Results[last]) != "nil"
	var before strings.Builder
	for i, value := range statement.Results {
		if fails && i < last { // callers do not read other values together with an error
			continue
		}
		empty := emptyOf(results.At(i).Type())
		if empty == "" || m.info.Types[value].Value != nil || m.short(value) == empty {
			continue
		}
		others := make([]string, len(statement.Results))
		for j, other := range statement.Results {
			others[j] = m.plain(other)
		}
		others[i] = empty
		number := m.add(value, "return %s instead of %s", empty, m.short(value))
		fmt.Fprintf(&before, "if isMutant(%d) { return %s }; ", number, strings.Join(others, ", "))
	}
	if fails {
		first := statement.Results[last]
		return before.String() + m.text(statement.Pos(), first.Pos()) + m.condition(first)
	}
	return before.String() + m.below(statement)
}

func isError(kind types.Type) bool {
	return types.Identical(kind, types.Universe.Lookup("error").Type())
}

// emptyOf returns the type's zero value as Go source, or "" if there is no mutant for the type. A bool is negated
// instead.
func emptyOf(kind types.Type) string {
	if _, isParameter := kind.(*types.TypeParam); isParameter {
		return ""
	}
	switch under := kind.Underlying().(type) {
	case *types.Pointer, *types.Interface, *types.Slice, *types.Map, *types.Chan, *types.Signature:
		return "nil"
	case *types.Basic:
		switch {
		case under.Info()&types.IsNumeric != 0:
			return "0"
		case under.Info()&types.IsString != 0:
			return `""`
		case under.Kind() == types.UnsafePointer:
			return "nil"
		}
	}
	return ""
}
