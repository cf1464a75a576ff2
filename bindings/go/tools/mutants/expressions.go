// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
)

var (
	relations = map[token.Token]string{
		token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.LAND: "||", token.LOR: "&&",
	}
	negations = map[token.Token]string{token.EQL: "!=", token.NEQ: "=="}
	// Both variants are evaluated, so neither may panic.
	arithmetic = map[string]string{
		"+": "-", "-": "+", "*": "+", "/": "*", "%": "*", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "^": "&", "&^": "&",
	}
)

func (m *mutator) expression(node ast.Expr) string {
	if known := m.info.Types[node]; known.IsType() {
		return m.plain(node)
	} else if known.Value != nil {
		return m.constant(node, known)
	}
	switch node := node.(type) {
	case *ast.BinaryExpr:
		return m.binary(node)
	case *ast.UnaryExpr:
		if node.Op == token.NOT {
			return fmt.Sprintf("(bool(%s) == isMutant(%d))", m.node(node.X), m.add(node, "remove ! of %s", m.short(node.X)))
		}
	case *ast.CallExpr:
		return m.call(node)
	case *ast.KeyValueExpr:
		return m.text(node.Pos(), node.Value.Pos()) + m.node(node.Value)
	case *ast.FuncLit:
		signature, _ := m.info.Types[node.Type].Type.(*types.Signature)
		if signature == nil {
			return m.plain(node)
		}
		return m.text(node.Pos(), node.Body.Pos()) + m.body(signature, node.Body)
	}
	return m.below(node)
}

// constant returns a literal as a choice. Named constants and constant expressions stay.
func (m *mutator) constant(node ast.Expr, known types.TypeAndValue) string {
	text := m.plain(node)
	basic, isBasic := types.Unalias(known.Type).(*types.Basic)
	if !isBasic {
		return text
	}
	switch known.Value.Kind() {
	case constant.Bool:
		if text == "true" || text == "false" {
			return fmt.Sprintf("(%s != isMutant(%d))", text, m.add(node, "replace %s with %t", text, text == "false"))
		}
	case constant.Int:
		if literal, isLiteral := node.(*ast.BasicLit); isLiteral && literal.Kind == token.INT && basic.Info()&types.IsUntyped == 0 {
			to := "0"
			if text != "1" {
				to = constant.BinaryOp(known.Value, token.ADD, constant.MakeInt64(1)).String()
			}
			return fmt.Sprintf("pickMutant[%s](%d, %s, %s)", basic, m.add(node, "replace %s with %s", text, to), text, to)
		}
	}
	return text
}

func (m *mutator) binary(node *ast.BinaryExpr) string {
	between := func(operator string) string {
		after := node.OpPos + token.Pos(len(node.Op.String()))
		return m.text(node.X.End(), node.OpPos) + operator + m.text(after, node.Y.Pos())
	}
	original := node.Op.String()
	if to, known := negations[node.Op]; known {
		number := m.add(node, "replace %s with %s of %s", original, to, m.short(node))
		return fmt.Sprintf("((%s) != isMutant(%d))", m.below(node), number)
	}
	to, isRelation := relations[node.Op]
	if !isRelation && (arithmetic[original] == "" || !m.isNumber(node) || !isPure(m, node.X) || !isPure(m, node.Y)) {
		return m.below(node)
	} else if !isRelation {
		to = arithmetic[original]
	}
	number := m.add(node, "replace %s with %s of %s", original, to, m.short(node))
	x, y := m.node(node.X), m.node(node.Y)
	before, after := x+between(original)+y, x+between(to)+y
	if isRelation { // only one of the two is evaluated
		return fmt.Sprintf("(isMutant(%d) && (%s) || !isMutant(%d) && (%s))", number, after, number, before)
	}
	return fmt.Sprintf("pickMutant(%d, %s, %s)", number, before, after)
}

// condition returns a condition as a choice between it and its inverse. An equality comparison is inverted directly.
func (m *mutator) condition(node ast.Expr) string {
	text := m.node(node)
	switch node := ast.Unparen(node).(type) {
	case *ast.BinaryExpr:
		if negations[node.Op] != "" {
			return text
		}
	case *ast.UnaryExpr:
		if node.Op == token.NOT {
			return text
		}
	}
	known := m.info.Types[node]
	if known.Value != nil || known.Type == nil || !isBool(known.Type) {
		return text
	}
	return fmt.Sprintf("(bool(%s) != isMutant(%d))", text, m.add(node, "invert %s", m.short(node)))
}

func isBool(kind types.Type) bool {
	basic, isBasic := kind.Underlying().(*types.Basic)
	return isBasic && basic.Info()&types.IsBoolean != 0
}

func (m *mutator) isNumber(node ast.Expr) bool {
	known := m.info.Types[node].Type
	if known == nil {
		return false
	}
	basic, isBasic := known.Underlying().(*types.Basic)
	return isBasic && basic.Info()&types.IsInteger != 0
}

// isPure reports whether a value may be computed twice: it contains no calls except conversions, len and cap.
func isPure(m *mutator, node ast.Expr) bool {
	pure := true
	ast.Inspect(node, func(below ast.Node) bool {
		switch below := below.(type) {
		case *ast.CallExpr:
			known := m.info.Types[below.Fun]
			pure = pure && (known.IsType() || known.IsBuiltin())
		case *ast.FuncLit, *ast.UnaryExpr:
			pure = false
		}
		return pure
	})
	return pure
}

// call swaps two neighboring arguments of the same type.
func (m *mutator) call(node *ast.CallExpr) string {
	for i := 0; i+1 < len(node.Args); i++ {
		a, b := node.Args[i], node.Args[i+1]
		if !m.canSwap(a) || !m.canSwap(b) || !types.Identical(m.info.Types[a].Type, m.info.Types[b].Type) || m.info.Types[node.Fun].Type == types.Typ[types.Invalid] {
			continue
		}
		number := m.add(node, "swap %s and %s of %s", m.short(a), m.short(b), m.short(node.Fun))
		first, second := m.plain(a), m.plain(b)
		return m.text(node.Pos(), a.Pos()) +
			fmt.Sprintf("pickMutant(%d, %s, %s), pickMutant(%d, %s, %s)", number, first, second, number, second, first) +
			m.text(b.End(), node.End())
	}
	return m.below(node)
}

func (m *mutator) canSwap(node ast.Expr) bool {
	known := m.info.Types[node]
	return known.IsValue() && known.Value == nil && !known.IsNil() && known.Type != types.Typ[types.Invalid] && isPure(m, node)
}
