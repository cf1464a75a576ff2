"""Finds the mutants of Python, of the same kinds, in the syntax trees of functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mutant import Mutant, distinct

_CHOSEN = '__import__("fletching_mutant").chosen(@NUMBER@)'
_RELATIONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
_CALCULATIONS: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "//",
    ast.FloorDiv: "*",
    ast.Mod: "*",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.LShift: ">>",
    ast.RShift: "<<",
}
# Nodes without an effect, or with an effect that a mutant cannot be inserted into.
_NOT_ENTERED = (ast.JoinedStr, ast.Lambda, ast.match_case)


def of_package(root: Path, folder: Path) -> list[Mutant]:
    found = (
        mutant
        for path in sorted(folder.rglob("*.py"))
        if "templates" not in path.parts
        for mutant in of_text(path.relative_to(root).as_posix(), path.read_bytes())
    )
    return distinct(found)


def of_text(file: str, text: bytes) -> Iterator[Mutant]:
    yield from _Finder(file, text).module(ast.parse(text))


class _Finder:
    def __init__(self, file: str, text: bytes) -> None:
        self._file = file
        self._text = text
        self._starts = [0]  # offset of each line
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._function = ""

    def module(self, tree: ast.AST) -> Iterator[Mutant]:
        for node in ast.iter_child_nodes(tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                outer, self._function = self._function, self._joined(node.name)
                for statement in node.body:
                    yield from self._statement(statement, False)
                self._function = outer
            elif isinstance(node, ast.ClassDef):
                outer, self._function = self._function, self._joined(node.name)
                yield from self.module(node)
                self._function = outer

    def _joined(self, name: str) -> str:
        return f"{self._function}.{name}" if self._function else name

    def _statement(self, node: ast.stmt, in_branch: bool) -> Iterator[Mutant]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield from self.module(ast.Module([node], []))
            return
        yield from self._left_out(node, in_branch)
        if isinstance(node, (ast.If, ast.While)):
            yield from self._condition(node.test)
        if isinstance(node, ast.Return) and node.value is not None:
            yield from self._returned(node.value)
        inner = isinstance(node, ast.If) and not node.orelse
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                yield from self._statement(child, inner)
            elif isinstance(child, ast.ExceptHandler):
                for statement in child.body:
                    yield from self._statement(statement, False)
            elif isinstance(child, ast.expr) and child is not getattr(node, "annotation", None):
                yield from self._expression(child)

    def _left_out(self, node: ast.stmt, in_branch: bool) -> Iterator[Mutant]:
        has_effect = isinstance(node, (ast.AugAssign, ast.Raise)) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        )
        if isinstance(node, ast.Assign):
            has_effect = all(isinstance(t, (ast.Attribute, ast.Subscript)) for t in node.targets)
        leaves = in_branch and isinstance(node, (ast.Return, ast.Break, ast.Continue))
        start = self._starts[node.lineno - 1]
        if (has_effect or leaves) and not self._text[start : start + node.col_offset].strip():
            kind = "exit" if leaves else "statement"
            yield self._mutant(node, kind, "pass", f"if not {_CHOSEN}: ", "")

    def _returned(self, node: ast.expr) -> Iterator[Mutant]:
        if not isinstance(node, ast.Constant):
            yield self._replaced(node, "return", "None")

    def _condition(self, node: ast.expr) -> Iterator[Mutant]:
        is_inverted_anyway = isinstance(node, ast.UnaryOp) or (
            isinstance(node, ast.Compare) and type(node.ops[0]) not in (ast.Lt, ast.Gt)
        )
        if not is_inverted_anyway:
            yield self._inverted(node, "condition", f"not ({self._source(node)})")

    def _expression(self, node: ast.expr) -> Iterator[Mutant]:
        if isinstance(node, _NOT_ENTERED):
            return
        yield from self._changes(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from self._expression(child)
            elif isinstance(child, ast.comprehension):
                yield from self._expression(child.iter)
                for test in child.ifs:
                    yield from self._condition(test)
                    yield from self._expression(test)
            elif isinstance(child, ast.keyword):
                yield from self._expression(child.value)

    def _changes(self, node: ast.expr) -> Iterator[Mutant]:
        match node:
            case ast.Compare(ops=[sign], comparators=[right]):
                after = f"{self._source(node.left)} {_RELATIONS[type(sign)]} {self._source(right)}"
                yield self._replaced(node, "relation", after)
            case ast.BoolOp():
                word = " or " if isinstance(node.op, ast.And) else " and "
                yield self._replaced(node, "logic", word.join(map(self._source, node.values)))
            case ast.UnaryOp(op=ast.Not()):
                yield self._inverted(node, "not", self._source(node.operand))
            case ast.BinOp():
                yield from self._calculation(node)
            case ast.IfExp():
                yield from self._condition(node.test)
            case ast.Constant():
                yield from self._constant(node)
            case ast.Call():
                yield from self._arguments(node)

    def _calculation(self, node: ast.BinOp) -> Iterator[Mutant]:
        """Only with an integer constant: other operands may be strings, which have no minus."""
        sign = _CALCULATIONS.get(type(node.op))
        sides = (node.left, node.right)
        if sign and any(isinstance(s, ast.Constant) and isinstance(s.value, int) for s in sides):
            left, right = map(self._source, sides)
            yield self._replaced(node, "arithmetic", f"{left} {sign} {right}")

    def _constant(self, node: ast.Constant) -> Iterator[Mutant]:
        if isinstance(node.value, bool):
            yield self._replaced(node, "constant", str(not node.value))
        elif isinstance(node.value, int):
            after = {0: "1", 1: "0"}.get(node.value, f"{self._source(node)} + 1")
            yield self._replaced(node, "constant", after)

    def _arguments(self, node: ast.Call) -> Iterator[Mutant]:
        """Only for two names, whose types are unknown."""
        for i, (one, two) in enumerate(zip(node.args, node.args[1:], strict=False)):
            if isinstance(one, ast.Name) and isinstance(two, ast.Name) and one.id != two.id:
                texts = [self._source(each) for each in node.args]
                texts[i : i + 2] = [two.id, one.id]
                texts += [self._source(each) for each in node.keywords]
                after = f"{self._source(node.func)}({', '.join(texts)})"
                yield self._replaced(node, "arguments", after)

    def _range(self, node: ast.stmt | ast.expr | ast.keyword) -> tuple[int, int]:
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def _source(self, node: ast.stmt | ast.expr | ast.keyword) -> str:
        """The source on one line without comments, so that a copy of it moves no lines."""
        begin, end = self._range(node)
        text = self._text[begin:end].decode()
        return ast.unparse(node) if "\n" in text else text

    def _replaced(self, node: ast.expr, kind: str, after: str) -> Mutant:
        return self._mutant(node, kind, after, f"(({after}) if {_CHOSEN} else (", "))")

    def _inverted(self, node: ast.expr, kind: str, after: str) -> Mutant:
        return self._mutant(node, kind, after, f"({_CHOSEN} != bool(", "))")

    def _mutant(
        self, node: ast.stmt | ast.expr, kind: str, after: str, opened: str, close: str
    ) -> Mutant:
        begin, end = self._range(node)
        return Mutant(
            *(self._file, begin, end, node.lineno, node.col_offset + 1, kind),
            *(self._function, self._source(node), after, opened, close),
        )
