"""Rust: the traits that a struct derives."""

from __future__ import annotations

from ...reading.types import Callback, Scalar, StructType, Type, Typedef
from ...spec.model import Spec, Struct


def derives(spec: Spec, struct: Struct) -> str:
    """Returns the traits: plain values are Copy; structs without pointers are also comparable."""
    if not all(_copies(spec, field.type) for field in struct.fields):
        return "Debug"
    if not all(_compares(spec, field.type) for field in struct.fields):
        return "Clone, Copy, Debug"
    return "Clone, Copy, Debug, PartialEq, Eq, Hash"


def _copies(spec: Spec, type_: Type) -> bool:
    """Returns whether a copy owns nothing: it contains no callback that could release it."""
    match type_:
        case StructType(name=name):
            return all(_copies(spec, field.type) for field in spec.struct(name).fields)
        case _:
            return not isinstance(type_, Callback)


def _compares(spec: Spec, type_: Type) -> bool:
    match type_:
        case StructType(name=name):
            return all(_compares(spec, field.type) for field in spec.struct(name).fields)
        case _:
            return isinstance(type_, Scalar | Typedef)
