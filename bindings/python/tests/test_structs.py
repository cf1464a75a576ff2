"""Structs: fields, moves and releases."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

import reflection
from fletching import abi
from fletching.abi import ArrowArray, ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema

STRUCTS = reflection.structs()


@pytest.mark.parametrize("name", STRUCTS)
def test_struct_rejects_misspelled_field(name: str) -> None:
    struct = STRUCTS[name]()
    with pytest.raises(AttributeError, match="lenght"):
        struct.lenght = 1
    with pytest.raises(AttributeError, match="lenght"):
        STRUCTS[name](lenght=1)


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 2**64])
@pytest.mark.parametrize("struct", [ArrowDeviceArray, ArrowDeviceArrayStream, abi.DLDevice])
def test_struct_rejects_device_type_out_of_range(struct: Any, value: int) -> None:
    text = rf"{struct.__name__}.device_type: out of range: expected an int32, got {value}$"
    with pytest.raises(ValueError, match=text):
        struct(device_type=value)
    filled = struct(device_type=7)
    with pytest.raises(ValueError, match=text):
        filled.device_type = value
    assert filled.device_type == 7


@pytest.mark.parametrize("value", [2**31 - 1, -(2**31), 21, abi.DeviceType.CUDA])
def test_struct_keeps_device_type(value: int) -> None:
    array = ArrowDeviceArray(device_type=value)
    assert array.device_type == value
    assert type(array.device_type) is int


def test_struct_device_type_is_number() -> None:
    with pytest.raises(TypeError):
        ArrowDeviceArray(device_type="cuda")
    array = ArrowDeviceArray(device_type=ctypes.c_int32(5))
    assert array.device_type == 5


@pytest.mark.parametrize("value", [256, -1])
def test_struct_rejects_data_type_code_out_of_range(value: int) -> None:
    text = rf"DLDataType.code: out of range: expected a uint8, got {value}$"
    with pytest.raises(ValueError, match=text):
        abi.DLDataType(code=value)


RELEASABLE = [
    ArrowSchema,
    ArrowArray,
    ArrowDeviceArray,
    abi.ArrowArrayStream,
    ArrowDeviceArrayStream,
    abi.ArrowAsyncDeviceStreamHandler,
]


def fill(struct: Any, marks: bool = True) -> list[int]:
    """Fills a struct with a release callback; returns the list of that callback's arguments."""
    owner = struct.array if isinstance(struct, ArrowDeviceArray) else struct
    kind = type(owner.release)
    seen: list[int] = []

    def released(pointer: Any) -> None:
        seen.append(pointer.contents.private_data)
        if marks:
            pointer.contents.release = kind()

    owner.release, owner.private_data = kind(released), 42
    return seen


@pytest.mark.parametrize("kind", RELEASABLE)
@pytest.mark.parametrize("marks", [True, False])
def test_release_is_called_once(kind: Any, marks: bool) -> None:
    struct = kind()
    assert abi.is_released(struct)
    abi.release(struct)
    seen = fill(struct, marks)
    assert not abi.is_released(struct)
    abi.release(struct)
    assert abi.is_released(struct)
    abi.release(struct)
    assert seen == [42]


@pytest.mark.parametrize("kind", RELEASABLE[:-1])
def test_move_releases_source(kind: Any) -> None:
    source, target = kind(), kind()
    seen = fill(source)
    before = bytes(source)
    abi.move(source, target)
    assert bytes(target) == before
    assert abi.is_released(source)
    abi.release(source)
    assert seen == []
    abi.release(target)
    assert seen == [42]


def test_move_rejects_different_structs() -> None:
    with pytest.raises(TypeError, match="move: types differ: expected ArrowSchema, got ArrowArray"):
        abi.move(ArrowSchema(), ArrowArray())
    handler = abi.ArrowAsyncDeviceStreamHandler()
    with pytest.raises(TypeError, match="move: ArrowAsyncDeviceStreamHandler cannot be moved"):
        abi.move(handler, abi.ArrowAsyncDeviceStreamHandler())


def test_move_to_itself_has_no_effect() -> None:
    schema = ArrowSchema()
    seen = fill(schema)
    abi.move(schema, schema)
    assert not abi.is_released(schema)
    abi.release(schema)
    assert seen == [42]


def test_tensor_without_deleter_is_released() -> None:
    abi.release(abi.DLManagedTensor())
    abi.release(abi.DLManagedTensorVersioned())


def test_text_reads_bytes_or_none() -> None:
    text = ctypes.create_string_buffer(b"\xff text")
    assert abi.text(ctypes.addressof(text)) == b"\xff text"
    assert abi.text(None) is None
    assert abi.text(0) is None


def test_values_reads_array() -> None:
    numbers = (ctypes.c_int64 * 3)(1, 2, 3)
    tensor = abi.DLTensor(ndim=3, shape=numbers)
    assert abi.values(tensor.shape, tensor.ndim) == [1, 2, 3]
    assert abi.values(tensor.shape, -1) == []
    assert abi.values(abi.DLTensor().shape, 3) == []
    array = ArrowArray()
    assert abi.values(array.children, 5) == []
