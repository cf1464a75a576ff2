# SPDX-License-Identifier: Apache-2.0
"""Signatures of the extension's functions, for `inspect.signature` and `help`."""

from __future__ import annotations

import ast
import re
from inspect import Parameter, Signature
from typing import Any


def signature_of(function: Any) -> Signature:
    """Returns the signature of a function or an unbound method of nanobind."""
    text = function.__nb_signature__[0][0]
    source = re.sub(r"\\=?\d+", "...", text)  # a default that the text does not show
    (definition,) = ast.parse(f"{source}: ...").body
    assert isinstance(definition, ast.FunctionDef)
    returned = _annotation(definition.returns)
    return Signature(_parameters(definition.args), return_annotation=returned)


def signature_of_bound(method: Any) -> Signature:
    whole = signature_of(method.__func__)
    return whole.replace(parameters=list(whole.parameters.values())[1:])


def _annotation(node: ast.expr | None) -> Any:
    return Signature.empty if node is None else ast.unparse(node)


def _parameters(arguments: ast.arguments) -> list[Parameter]:
    positional = [*arguments.posonlyargs, *arguments.args]
    padding = [None] * (len(positional) - len(arguments.defaults))
    kinds = [
        (positional, [*padding, *arguments.defaults], Parameter.POSITIONAL_OR_KEYWORD),
        (arguments.kwonlyargs, arguments.kw_defaults, Parameter.KEYWORD_ONLY),
    ]
    return [
        Parameter(
            argument.arg,
            kind if argument not in arguments.posonlyargs else Parameter.POSITIONAL_ONLY,
            default=_default(default),
            annotation=_annotation(argument.annotation),
        )
        for names, defaults, kind in kinds
        for argument, default in zip(names, defaults, strict=True)
    ]


def _default(node: ast.expr | None) -> Any:
    return Parameter.empty if node is None else ast.literal_eval(node)
