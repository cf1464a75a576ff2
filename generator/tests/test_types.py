"""Tests of type expressions: their results, and rejected ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from fletching_generator.reading.types import (
    Argument,
    Callback,
    FixedArray,
    Pointer,
    Scalar,
    StructType,
    Type,
    Typedef,
    TypeExpressionError,
    parse_type,
    spell,
)
from fletching_generator.spec.model import Spec

NESTED = Callback(
    (
        Argument("a", Pointer(StructType("T"), const=False)),
        Argument(
            "f",
            Callback(
                (Argument("b", Typedef("E", Scalar("int32"))), Argument("c", Scalar("int64"))),
                Scalar("void"),
            ),
        ),
    ),
    Scalar("int"),
)
NAMES = {"T": StructType("T"), "E": Typedef("E", Scalar("int32"))}


@pytest.mark.parametrize(
    ("text", "parsed"),
    [
        ("int64", Scalar("int64")),
        ("E", Typedef("E", Scalar("int32"))),
        ("T", StructType("T")),
        ("T*", Pointer(StructType("T"), const=False)),
        ("T**", Pointer(Pointer(StructType("T"), const=False), const=False)),
        ("const char*", Pointer(Scalar("char"), const=True)),
        ("const void**", Pointer(Pointer(Scalar("void"), const=True), const=False)),
        ("int64[3]", FixedArray(Scalar("int64"), 3)),
        ("callback(a: T*, f: callback(b: E, c: int64) -> void) -> int", NESTED),
    ],
)
def test_parse(text: str, parsed: object) -> None:
    assert parse_type(text, NAMES) == parsed


@pytest.mark.parametrize(
    "text", ["", "int65", "const int64", "int64[0]", "int64[", "T *x", "callback(T*) -> int", "**"]
)
def test_parse_rejects_invalid_type(text: str) -> None:
    with pytest.raises(TypeExpressionError):
        parse_type(text, NAMES)


def test_spell_inverts_parse(spec: Spec) -> None:
    names = {s.name: StructType(s.name) for s in spec.structs}
    known = {**names, **{t.type.name: t.type for t in spec.typedefs}}
    for struct in spec.structs:
        for field in struct.fields:
            type_ = field.type
            if isinstance(type_, Callback):
                type_ = dataclasses.replace(
                    type_, name=None
                )  # the name of a typedef is not spelled
            assert parse_type(spell(type_), known) == type_


def test_pointer_target_does_not_affect_equality(spec: Spec) -> None:
    """Every pointer of a field or a callback has a target, but the C types remain equal."""
    fields = [field for struct in spec.structs for field in struct.fields]
    types = [field.type for field in fields]
    found = [pointer for type_ in types for pointer in pointers(type_)]
    assert found and all(p.target is not None and p.nullable is not None for p in found)
    buffers = next(field.type for field in fields if field.name == "buffers")
    assert buffers == parse_type("const void**", {})
    assert isinstance(buffers, Pointer) and isinstance(buffers.to, Pointer)
    assert (buffers.target, buffers.nullable) == ("many", True)
    assert (buffers.to.target, buffers.to.nullable) == ("opaque", True)


def pointers(type_: Type) -> Iterator[Pointer]:
    match type_:
        case Pointer(to=to):
            yield type_
            yield from pointers(to)
        case Callback(arguments=arguments, returns=returns):
            for part in (returns, *(argument.type for argument in arguments)):
                yield from pointers(part)
        case _:
            pass
