"""Data passes through Python: structs are moved in, and new ones given out with the same data.

What is given out has release callbacks of Python's own, one per struct; they release what was moved
in. The objects that a given-out struct needs are held in `_live` under the number in its
private_data, until it is released.
"""

from __future__ import annotations

import ctypes
import errno
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Generic

from fletching import abi
from fletching.abi import (
    ArrowArray,
    ArrowDeviceArray,
    ArrowDeviceArrayStream,
    ArrowSchema,
    move,
    release,
)
from foreign import ForeignError, Tree, read_tree


@dataclass
class Counts:
    exported: int = 0
    released: int = 0
    unknown: int = 0  # releases of a struct that is not, or no longer, alive
    problems: list[str] = field(default_factory=list)  # what went wrong inside a callback


@dataclass
class _Held(Generic[Tree]):
    """What one given-out schema or array needs."""

    source: Tree  # moved in
    children: list[Tree]  # given out below it
    pointers: Any  # the array that the field children points to
    dictionary: Tree | None


counts = Counts()
_live: dict[int, Any] = {}
_numbers = itertools.count(1)
_lock = threading.Lock()


def _hold(held: object) -> int:
    with _lock:
        counts.exported += 1
        number = next(_numbers)
        _live[number] = held
        return number


def _let_go(number: int | None) -> Any:
    """What was held under the number; None for a struct that is not alive."""
    with _lock:
        held = _live.pop(number or 0, None)
        if held is None:
            counts.unknown += 1
        else:
            counts.released += 1
        return held


# --- Arrays --------------------------------------------------------------------------------------


def pass_array_on(
    schema: ArrowSchema,
    array: ArrowDeviceArray,
    out_schema: ArrowSchema,
    out_array: ArrowDeviceArray,
) -> None:
    """Moves schema and array in, and fills the others with the same data.

    Raises ForeignError when something is wrong with them; then nothing was moved.
    """
    read_tree(schema, array.array)
    source = ArrowDeviceArray()
    move(array, source)
    _give_array_out(source, out_array)
    _give_schema_out(schema, out_schema)


def _give_array_out(source: ArrowDeviceArray, out: ArrowDeviceArray) -> None:
    """Takes over the source, whose event lives as long as its array."""
    _clear(out)
    _give_out(source.array, out.array, _ARRAY_DATA, _release_array)
    out.device_id = source.device_id
    out.device_type = source.device_type
    out.sync_event = source.sync_event


def _give_schema_out(schema: ArrowSchema, out: ArrowSchema) -> None:
    _give_out(schema, out, _SCHEMA_DATA, _release_schema)


_SCHEMA_DATA = ("format", "name", "metadata", "flags", "n_children")
_ARRAY_DATA = ("length", "null_count", "offset", "n_buffers", "n_children", "buffers")


def _give_out(moved: Tree, out: Tree, data: tuple[str, ...], callback: Any) -> None:
    """Moves a struct with everything below it in, and fills `out` in its place."""
    kind = type(moved)
    source = kind()
    move(moved, source)
    children = [kind() for _ in range(source.n_children)]
    for i, child in enumerate(children):
        _give_out(source.children[i].contents, child, data, callback)
    dictionary = None
    if source.dictionary:
        dictionary = kind()
        _give_out(source.dictionary.contents, dictionary, data, callback)
    pointers = (ctypes.POINTER(kind) * len(children))(*map(ctypes.pointer, children))

    _clear(out)
    for name in data:
        setattr(out, name, getattr(source, name))
    if children:
        out.children = ctypes.cast(pointers, ctypes.POINTER(ctypes.POINTER(kind)))
    if dictionary is not None:
        out.dictionary = ctypes.pointer(dictionary)
    out.private_data = _hold(_Held(source, children, pointers, dictionary))
    out.release = callback


def _clear(struct: ctypes.Structure) -> None:
    ctypes.memset(ctypes.byref(struct), 0, ctypes.sizeof(struct))


def _release_tree(pointer: Any) -> None:
    """The release callback of a given-out schema or array."""
    try:
        struct = pointer.contents
        held = _let_go(struct.private_data)
        struct.release = type(struct.release)()
        if held is None:
            return
        for below in (*held.children, held.dictionary, held.source):
            if below is not None:
                release(below)
    except Exception as error:  # must not leave the callback
        counts.problems.append(f"release: {type(error).__name__}: {error}")


# Callback objects live as long as the module: a struct may be released at any time.
_release_schema = abi.ArrowSchemaRelease(_release_tree)
_release_array = abi.ArrowArrayRelease(_release_tree)


# --- Streams -------------------------------------------------------------------------------------


@dataclass
class _Stream:
    """What one given-out stream needs."""

    source: ArrowDeviceArrayStream  # moved in
    look: Callable[[ArrowSchema, ArrowArray], None]
    schema: ArrowSchema  # of the source, for `look`
    error: ctypes.Array[ctypes.c_char] | None = None  # the text of the last error


def pass_stream_on(
    stream: ArrowDeviceArrayStream,
    out: ArrowDeviceArrayStream,
    look: Callable[[ArrowSchema, ArrowArray], None],
) -> None:
    """Moves a stream in, and fills `out` with one that gives the same schema, batches and errors.

    `look` sees every batch as it passes. Raises ForeignError when the stream is released or gives
    no schema; then it was not moved.
    """
    if not stream.release:
        raise ForeignError("the stream is released")
    schema = ArrowSchema()
    _ask(stream, "get_schema", schema)
    source = ArrowDeviceArrayStream()
    move(stream, source)

    _clear(out)
    out.device_type = source.device_type
    out.get_schema = _get_schema_callback
    out.get_next = _get_next_callback
    out.get_last_error = _get_last_error_callback
    out.private_data = _hold(_Stream(source, look, schema))
    out.release = _release_stream_callback


def _ask(stream: ArrowDeviceArrayStream, callback: str, out: ctypes.Structure) -> None:
    """Calls get_schema or get_next; raises ForeignError with the stream's own errno and text."""
    function = getattr(stream, callback)
    if not function:
        raise ForeignError(f"{callback} is NULL")
    code = function(stream, out)
    if code == 0:
        return
    address = stream.get_last_error(stream) if stream.get_last_error else None
    raise ForeignError(None if address is None else ctypes.string_at(address), code)


def _get_schema(state: _Stream, out: ArrowSchema) -> None:
    schema = ArrowSchema()
    _ask(state.source, "get_schema", schema)
    _give_schema_out(schema, out)


def _get_next(state: _Stream, out: ArrowDeviceArray) -> None:
    array = ArrowDeviceArray()
    _clear(out)
    _ask(state.source, "get_next", array)
    if not array.array.release:
        return  # the end
    try:
        read_tree(state.schema, array.array)
        state.look(state.schema, array.array)
        _give_array_out(array, out)
    finally:
        release(array.array)  # does nothing when it was given out


def _answer(step: Callable[[_Stream, Any], None], stream: Any, out: Any) -> int:
    """Runs one step of a stream; what it raises becomes an errno value and a text."""
    try:
        state: _Stream = _live[stream.contents.private_data]
        state.error = None
        try:
            step(state, out.contents)
            return 0
        except ForeignError as error:
            state.error = None if error.text is None else ctypes.create_string_buffer(error.text)
            return error.code or errno.EINVAL
    except Exception as error:  # must not leave the callback
        counts.problems.append(f"{step.__name__}: {type(error).__name__}: {error}")
        return errno.EINVAL


def _get_last_error(stream: Any) -> int | None:
    try:
        state: _Stream = _live[stream.contents.private_data]
        return None if state.error is None else ctypes.addressof(state.error)
    except Exception as error:  # must not leave the callback
        counts.problems.append(f"get_last_error: {type(error).__name__}: {error}")
        return None


def _release_stream(stream: Any) -> None:
    try:
        state = _let_go(stream.contents.private_data)
        stream.contents.release = abi.ArrowDeviceArrayStreamRelease()
        if state is not None:
            release(state.schema)
            release(state.source)
    except Exception as error:  # must not leave the callback
        counts.problems.append(f"release: {type(error).__name__}: {error}")


_get_schema_callback = abi.ArrowDeviceArrayStreamGetSchema(
    lambda stream, out: _answer(_get_schema, stream, out)
)
_get_next_callback = abi.ArrowDeviceArrayStreamGetNext(
    lambda stream, out: _answer(_get_next, stream, out)
)
_get_last_error_callback = abi.ArrowDeviceArrayStreamGetLastError(_get_last_error)
_release_stream_callback = abi.ArrowDeviceArrayStreamRelease(_release_stream)
