"""Compares fletching.abi with upstream's headers: layout, memory and calls, in both directions.

Every test prints the oracle's line about a difference, and reports one cell of the round trip.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

import oracle
import reflection
from cells import CONSTANTS, Checks, reporting, struct_key
from reflection import Ctype

STRUCTS = reflection.structs()
# A name that only one side has is also a failure.
NAMES = list(dict.fromkeys([*STRUCTS, *oracle.struct_names()]))
SLACK = 64
LANGUAGE = "python"

each_struct = pytest.mark.parametrize("name", NAMES)


@contextmanager
def cell(struct: str, direction: str) -> Iterator[Checks]:
    """Reports the cell of these checks, then fails the test if one of them failed."""
    with reporting(struct_key(LANGUAGE, struct, direction)) as checks:
        yield checks
    assert not checks.problems, "\n".join(checks.problems)


def record(checks: Checks, line: str | None) -> None:
    """Counts one answer of the oracle."""
    checks.expect(line is None, line or "")


def declared(name: str) -> type[ctypes.Structure]:
    if name not in STRUCTS:
        raise LookupError(f"{name}: the binding has no such struct")
    return STRUCTS[name]


class Object:
    """A zeroed struct with room for the larger of both declarations, plus slack."""

    def __init__(self, name: str) -> None:
        struct = declared(name)
        size = max(ctypes.sizeof(struct), oracle.size(name.encode()), 0) + SLACK
        self._memory = (ctypes.c_int64 * (size // 8 + 1))()
        self.address = ctypes.addressof(self._memory)
        self.struct = struct.from_buffer(self._memory)


def layout_problems(name: str) -> list[str | None]:
    """Returns the oracle's answers on a struct's size, names, offsets and signatures; None for each
    correct one."""
    struct, c_name = declared(name), name.encode()
    names = ",".join(field for field, _ in reflection.fields(struct))
    answers = [
        oracle.check_field_names(c_name, names.encode()),
        oracle.check_struct(c_name, ctypes.sizeof(struct), ctypes.alignment(struct)),
    ]
    for path, offset, size in reflection.paths(struct):
        answers.append(oracle.check_field(c_name, path.encode(), offset, size))
    callbacks = reflection.callbacks(struct)
    answers.append(oracle.check_callback_names(c_name, ",".join(callbacks).encode()))
    for callback, ctype in callbacks.items():
        signature = reflection.signature(ctype)
        answers.append(oracle.check_signature(c_name, callback.encode(), signature.encode()))
    return answers


def layout_agrees(name: str, checks: Checks) -> bool:
    """Reports a different layout. A call through it could crash, so the test then calls no
    callback.
    """
    lines = [line for line in layout_problems(name) if line]
    text = "nothing was called, because the layout differs: " + "; ".join(lines)
    return checks.expect(not lines, text)


def all_callbacks(name: str) -> dict[str, Ctype | None]:
    """Returns callback types by name; None for a callback that only upstream has."""
    return {n: None for n in oracle.callback_names(name)} | reflection.callbacks(declared(name))


# --- Layout --------------------------------------------------------------------------------------


@each_struct
def test_layout_matches_oracle(name: str) -> None:
    with cell(name, "layout") as checks:
        for line in layout_problems(name):
            record(checks, line)


def test_constants_match_oracle() -> None:
    macros = reflection.integer_macros()
    with cell(CONSTANTS, "layout") as checks:
        record(checks, oracle.check_constant_names(",".join(macros).encode()))
        for macro, value in macros.items():
            record(checks, oracle.check_constant(macro.encode(), value))
        for name, values in reflection.enumerators().items():
            record(checks, oracle.check_enumerators(name.encode(), values.encode()))


# --- Memory --------------------------------------------------------------------------------------


@each_struct
def test_c_writes(name: str) -> None:
    with cell(name, "c_writes") as checks:
        target = Object(name)
        checks.equal(oracle.fill(name.encode(), target.address), 0, f"{name}: the oracle's fill")
        for leaf in reflection.leaves(declared(name)):
            seen = leaf.read(target.struct)
            record(checks, oracle.check_read(name.encode(), leaf.path.encode(), leaf.element, seen))


@each_struct
def test_c_verifies(name: str) -> None:
    with cell(name, "c_verifies") as checks:
        target = Object(name)
        for leaf in reflection.leaves(declared(name)):
            canary = oracle.canary(name.encode(), leaf.path.encode(), leaf.element)
            checks.expect(canary != 0, f"{name}.{leaf.path}: upstream has no such field")
            leaf.write(target.struct, canary)
        record(checks, oracle.check_written(name.encode(), target.address))


# --- Calls ---------------------------------------------------------------------------------------


class Callee:
    """A callback of the exact declared type that reports its arguments to the oracle."""

    def __init__(self, struct: str, name: str, ctype: Ctype, checks: Checks) -> None:
        self._names = (struct.encode(), name.encode())
        self._ctype = ctype
        self._checks = checks
        self.pointer = ctype(self._enter)

    def _enter(self, *arguments: object) -> object:
        try:
            for index, (kind, value) in enumerate(
                zip(self._ctype._argtypes_, arguments, strict=True)
            ):
                oracle.saw_argument(*self._names, index, reflection.bits_of(kind, value))
            self._checks.releases += self._names[1] == b"release"
            result = self._ctype._restype_
            return result and reflection.from_bits(result, oracle.expected_result()).value
        except Exception as error:  # must not leave the callback
            self._checks.problems.append(f"{type(error).__name__} inside the callback: {error}")
            return None


@each_struct
def test_c_calls(name: str) -> None:
    with cell(name, "c_calls") as checks:
        if layout_agrees(name, checks):
            for callback, ctype in all_callbacks(name).items():
                call_from_c(name, callback, ctype, checks)


def call_from_c(name: str, callback: str, ctype: Ctype | None, checks: Checks) -> None:
    target = Object(name)
    callee = Callee(name, callback, ctype, checks) if ctype else None
    if callee:
        setattr(target.struct, callback, callee.pointer)
    for variant in range(oracle.variant_count()):
        record(checks, oracle.call(name.encode(), callback.encode(), variant, target.address))


@each_struct
def test_c_is_called(name: str) -> None:
    with cell(name, "c_is_called") as checks:
        if layout_agrees(name, checks):
            target = Object(name)
            checks.equal(oracle.install(name.encode(), target.address), 0, f"{name}: the install")
            for callback, ctype in all_callbacks(name).items():
                call_c(name, callback, ctype, target, checks)


def call_c(name: str, callback: str, ctype: Ctype | None, target: Object, checks: Checks) -> None:
    path = (name.encode(), callback.encode())
    upstream = oracle.argument_count(*path)  # -1: no such callback
    own = len(ctype._argtypes_) if ctype else -1
    text = f"{name}.{callback}: {upstream} arguments upstream, {own} in the binding"
    if not checks.expect(own == upstream, text):
        return
    for variant in range(oracle.variant_count()):
        oracle.begin_call(*path, variant, target.address)
        result = call_with_oracle_s_arguments(getattr(target.struct, callback), ctype)
        record(checks, oracle.end_call(result))


def call_with_oracle_s_arguments(function: Callable[..., object], ctype: Ctype) -> int:
    """Completes the call that the oracle has started; returns the bits of its result."""
    arguments = [
        reflection.from_bits(kind, oracle.argument(index))
        for index, kind in enumerate(ctype._argtypes_)
    ]
    result = function(*arguments)
    return reflection.bits_of(ctype._restype_, result) if ctype._restype_ else 0
