"""The same data through the package `fletching`, in and out by the protocols of Python.

Every struct that the package imports is under a release of this program, which is counted and
releases what the producer has exported.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from capsules import capsule_of, struct_in
from fletching import DeviceArray, DeviceArrayStream, Schema, abi
from fletching.abi import ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema

# Sees a batch with its schema before its release is replaced.
Observe = Callable[[ArrowSchema, ArrowDeviceArray], None]


@dataclass
class Counts:
    """Structs that were hooked, releases of them, and what went wrong inside callbacks."""

    hooked: int = 0
    released: int = 0
    problems: list[str] = field(default_factory=list)


counts = Counts()
_lock = threading.Lock()


class _Hook:
    """Releases what a struct was before, and counts."""

    def __init__(self, source: abi.ArrowSchema | abi.ArrowArray) -> None:
        self._source = source
        with _lock:
            counts.hooked += 1

    def release(self, _: object) -> None:
        abi.release(self._source)
        with _lock:
            counts.released += 1


def hook(struct: ArrowSchema | ArrowDeviceArray) -> None:
    """Puts the struct under a release of this program; what it points to stays the same."""
    owner = struct.array if isinstance(struct, ArrowDeviceArray) else struct
    source = type(owner)()
    ctypes.memmove(ctypes.byref(source), ctypes.byref(owner), ctypes.sizeof(owner))
    abi.implement(owner, _Hook(source))


class Exported:
    """What a producer has exported, as an object with the protocol."""

    def __init__(self, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
        self._schema, self._array = schema, array

    def __arrow_c_schema__(self) -> object:
        return capsule_of(self._schema)

    def __arrow_c_device_array__(
        self, requested_schema: object = None, **_: object
    ) -> tuple[object, object]:
        return capsule_of(self._schema), capsule_of(self._array)


def import_array(schema: ArrowSchema, array: ArrowDeviceArray) -> DeviceArray:
    """Hooks both, and moves them into the package."""
    if abi.is_released(schema) or abi.is_released(array):
        raise ValueError("schema or array is released")
    if schema.format is None:
        raise ValueError("schema.format: NULL: expected a format")
    hook(schema)
    hook(array)
    return DeviceArray.from_arrow(Exported(schema, array))


def export_array(array: DeviceArray) -> tuple[ArrowSchema, ArrowDeviceArray]:
    """Structs of the package for the data; the caller releases them."""
    schema_capsule, array_capsule = array.__arrow_c_device_array__()
    schema, struct = ArrowSchema(), ArrowDeviceArray()
    abi.move(struct_in(ArrowSchema, schema_capsule), schema)
    abi.move(struct_in(ArrowDeviceArray, array_capsule), struct)
    return schema, struct


class _Tap:
    """A stream in front of a producer's: every struct of it is observed and hooked."""

    def __init__(self, source: ArrowDeviceArrayStream, observe: Observe) -> None:
        self._source, self._observe = ArrowDeviceArrayStream(), observe
        abi.move(source, self._source)
        self._schema = ArrowSchema()
        with _lock:
            counts.hooked += 1

    def get_schema(self, _: object, out: Any) -> int:
        code: int = self._source.get_schema(self._source, out)
        if code == 0:
            hook(out.contents)
        return code

    def get_next(self, _: object, out: Any) -> int:
        code: int = self._source.get_next(self._source, out)
        if code != 0 or abi.is_released(out.contents):
            return code
        try:
            self._observe(self._known_schema(), out.contents)
        except Exception as error:  # the stream has no text for it
            counts.problems.append(f"{type(error).__name__}: {error}")
        hook(out.contents)
        return 0

    def get_last_error(self, _: object) -> int | None:
        address: int | None = self._source.get_last_error(self._source)
        return address

    def release(self, _: object) -> None:
        abi.release(self._schema)
        abi.release(self._source)
        with _lock:
            counts.released += 1

    def _known_schema(self) -> ArrowSchema:
        if abi.is_released(self._schema):
            self._source.get_schema(self._source, self._schema)
        return self._schema


class _ExportedStream:
    def __init__(self, stream: ArrowDeviceArrayStream) -> None:
        self._stream = stream

    def __arrow_c_device_stream__(self, requested_schema: object = None, **_: object) -> object:
        return capsule_of(self._stream)


def import_stream(source: ArrowDeviceArrayStream, observe: Observe) -> DeviceArrayStream:
    """Moves the stream into the package, behind a tap."""
    tapped = ArrowDeviceArrayStream(device_type=source.device_type)
    abi.implement(tapped, _Tap(source, observe))
    return DeviceArrayStream.from_arrow(_ExportedStream(tapped))


def export_stream(stream: DeviceArrayStream) -> ArrowDeviceArrayStream:
    """A struct of the package for the stream; the caller releases it."""
    out = ArrowDeviceArrayStream()
    capsule = stream.__arrow_c_device_stream__()
    abi.move(struct_in(ArrowDeviceArrayStream, capsule), out)
    return out


def reexport_stream(source: ArrowDeviceArrayStream, observe: Observe) -> ArrowDeviceArrayStream:
    """A stream of a Python iterator over the batches of another. An error passes on."""
    stream = import_stream(source, observe)
    schema: Schema = stream.schema

    def batches() -> Iterator[DeviceArray]:
        yield from stream

    return export_stream(DeviceArrayStream.from_batches(schema, stream.device_type, batches()))
