"""Tensors of Fletching read by other libraries, and the reverse."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tvm_ffi

from peer import Exported, PeerError, imported, pointer_of

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]
NUMBERS = INTEGERS + FLOATS


def numbers(dtype: str, count: int = 24) -> Any:
    return np.arange(count).astype(dtype)


def tensors(dtype: str = "int32") -> Any:
    """Two tensors of 3 x 4, transposed to 4 x 3."""
    cells = numbers(dtype).reshape(2, 3, 4).transpose(0, 2, 1)
    return pa.FixedShapeTensorArray.from_numpy_ndarray(cells)


def address(array: Any) -> int:
    """The address of the first value of an Arrow array, including its offset."""
    while isinstance(array, pa.ExtensionArray | pa.FixedSizeListArray):
        array = array.storage if isinstance(array, pa.ExtensionArray) else array.flatten()
    start: int = array.buffers()[1].address + array.offset * array.type.bit_width // 8
    return start


# --- Tensors of Fletching, read by NumPy ----------------------------------------------------------


class OldExported(Exported):
    """Accepts no keywords, as before DLPack 1.0."""

    def __dlpack__(self) -> Any:  # type: ignore[override]
        return super().__dlpack__()


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("exporter", [Exported, OldExported])
def test_numpy_reads_numbers(dtype: str, exporter: type[Exported]) -> None:
    values = numbers(dtype)
    array = pa.array(values)
    ours = exporter(array.slice(5, 7), read_only=False)
    read = np.from_dlpack(ours)
    assert ours.names == [b"dltensor" if exporter is OldExported else b"dltensor_versioned"]
    assert ours.consumed
    assert read.dtype == values.dtype
    np.testing.assert_array_equal(read, values[5:12])
    assert read.ctypes.data == address(array.slice(5, 7))


def test_numpy_reads_nested_lists() -> None:
    values = numbers("float32").reshape(4, 2, 3)
    array = pa.array(values.tolist(), pa.list_(pa.list_(pa.float32(), 3), 2)).slice(1, 2)
    read = np.from_dlpack(Exported(array))
    np.testing.assert_array_equal(read, values[1:3])


def test_numpy_reads_permuted_tensors() -> None:
    array = tensors()
    read = np.from_dlpack(Exported(array))
    np.testing.assert_array_equal(read, array.to_numpy_ndarray())
    assert read.strides == array.to_numpy_ndarray().strides


def test_numpy_reads_bool8() -> None:
    array = pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, 1], pa.int8()))
    read = np.from_dlpack(Exported(array))
    assert read.dtype == np.bool_
    assert read.tolist() == [True, False, True]


def test_numpy_reads_empty_array() -> None:
    read = np.from_dlpack(Exported(pa.array([], pa.int16())))
    assert read.shape == (0,)


def test_numpy_array_is_writable_only_if_allowed() -> None:
    array = pa.array(numbers("int32"))
    assert not np.from_dlpack(Exported(array)).flags.writeable
    assert np.from_dlpack(Exported(array, read_only=False)).flags.writeable


def test_numpy_array_keeps_memory() -> None:
    before = pa.total_allocated_bytes()
    read = np.from_dlpack(Exported(pa.array(numbers("int64").tolist(), pa.int64())))
    assert pa.total_allocated_bytes() > before
    assert read.tolist() == list(range(24))
    del read
    assert pa.total_allocated_bytes() == before


def test_numpy_reads_times_as_storage() -> None:
    array = pa.array([1, 2, 3], pa.timestamp("us"))
    assert np.from_dlpack(Exported(array, as_storage=True)).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (pa.array([True, False]), "arrow.bool8"),
        (pa.array([1, None]), "nulls"),
        (pa.array(["a"]), "not contiguous in one buffer"),
        (pa.array([1], pa.timestamp("us")), "as_storage"),
        (pa.array([{"a": 1}]), "columns"),
        (pa.array(["a", "b"]).dictionary_encode(), "dictionary"),
    ],
)
def test_export_rejects_unsupported_array(array: Any, words: str) -> None:
    before = pa.total_allocated_bytes()
    with pytest.raises(PeerError, match=words):
        np.from_dlpack(Exported(array))
    assert pa.total_allocated_bytes() == before


# --- Tensors of Fletching, read by pyarrow and apache-tvm-ffi -------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS)
def test_tvm_ffi_reads_numbers(dtype: str) -> None:
    array = pa.array(numbers(dtype))
    ours = Exported(array.slice(3), read_only=False)
    read = tvm_ffi.from_dlpack(ours)
    assert ours.consumed
    assert str(read.dtype) == dtype
    assert tuple(read.shape) == (21,)
    np.testing.assert_array_equal(np.from_dlpack(read), numbers(dtype)[3:])


def test_tvm_ffi_reads_permuted_tensors() -> None:
    array = tensors()
    read = tvm_ffi.from_dlpack(Exported(array, read_only=False))
    assert tuple(read.shape) == (2, 4, 3)
    np.testing.assert_array_equal(np.from_dlpack(read), array.to_numpy_ndarray())


@pytest.mark.parametrize("dtype", NUMBERS)
def test_pyarrow_reads_numbers(dtype: str) -> None:
    array = pa.array(numbers(dtype)).slice(3)
    ours = Exported(array, read_only=False)
    read = pa.Array.from_dlpack(ours)
    assert ours.consumed
    assert read.equals(array)
    assert address(read) == address(array)


def test_pyarrow_reads_permuted_tensors() -> None:
    array = tensors()
    read = pa.Tensor.from_dlpack(Exported(array, read_only=False))
    assert read.equals(array.to_tensor())


# --- Tensors of other libraries -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("version", [None, (1, 3)])
def test_import_numpy_numbers(dtype: str, version: tuple[int, int] | None) -> None:
    values = numbers(dtype)[2:]
    read, read_only, copied = imported(values.__dlpack__(max_version=version))
    assert read.equals(pa.array(values))
    assert address(read) == values.ctypes.data
    assert read_only == (version is None)
    assert not copied


def as_published(array: Any) -> Any:
    """A tensor array as documented: dimension i is dimension permutation[i] in memory.

    pyarrow 26 reads it this way only if the permutation is its own inverse.
    """
    memory = array.storage.flatten().to_numpy().reshape(len(array), *array.type.shape)
    order = array.type.permutation or range(len(array.type.shape))
    return memory.transpose(0, *(axis + 1 for axis in order))


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (0, 3, 1, 2)])
def test_import_numpy_permuted_tensors(order: tuple[int, ...]) -> None:
    memory = np.arange(2 * 3 * 4 * 5, dtype=np.int16).reshape(2, 3, 4, 5)
    values = memory.transpose(order)
    read, _, _ = imported(values.__dlpack__(max_version=(1, 3)))
    assert isinstance(read, pa.FixedShapeTensorArray)
    np.testing.assert_array_equal(as_published(read), values)
    assert address(read) == memory.ctypes.data
    again = np.from_dlpack(Exported(read))
    np.testing.assert_array_equal(again, values)


def test_import_numpy_as_lists() -> None:
    values = numbers("int64").reshape(2, 3, 4)
    read, _, _ = imported(values.__dlpack__(max_version=(1, 3)), lists=True)
    assert read.type == pa.list_(pa.list_(pa.int64(), 4), 3)
    assert read.to_pylist() == values.tolist()


@pytest.mark.parametrize("view", [np.s_[::2], np.s_[::-1], np.s_[:, ::2], np.s_[..., 1:3]])
def test_import_numpy_rejects_or_copies_gaps(view: Any) -> None:
    values = numbers("int32").reshape(4, 3, 2)[view]
    with pytest.raises(PeerError, match="hint: copy the tensor"):
        imported(values.__dlpack__(max_version=(1, 3)))
    read, read_only, copied = imported(values.__dlpack__(max_version=(1, 3)), copy=True)
    np.testing.assert_array_equal(read.to_numpy_ndarray(), values)
    assert copied
    assert not read_only


def test_import_numpy_booleans() -> None:
    read, _, _ = imported(np.array([True, False]).__dlpack__(max_version=(1, 3)))
    assert read.type == pa.bool8()
    assert read.to_pylist() == [True, False]


def test_import_numpy_complex_numbers() -> None:
    values = np.array([1 + 2j, 3 - 4j], np.complex64)
    read, _, _ = imported(values.__dlpack__(max_version=(1, 3)))
    assert read.type == pa.opaque(pa.list_(pa.float32(), 2), "complex64", "DLPack")
    np.testing.assert_array_equal(np.from_dlpack(Exported(read)), values)
    read, _, _ = imported(values.__dlpack__(max_version=(1, 3)), as_storage=True, lists=True)
    assert read.to_pylist() == [[1, 2], [3, -4]]


def test_import_numpy_read_only_memory() -> None:
    values = numbers("int32")
    values.flags.writeable = False
    _, read_only, _ = imported(values.__dlpack__(max_version=(1, 3)))
    assert read_only


def test_import_numpy_copy_is_marked() -> None:
    _, _, copied = imported(numbers("int32").__dlpack__(max_version=(1, 3), copy=True))
    assert copied


def test_import_numpy_scalars_and_empty_tensors() -> None:
    read, _, _ = imported(np.array(7).__dlpack__(max_version=(1, 3)))
    assert read.to_pylist() == [7]
    read, _, _ = imported(np.zeros((0, 3), np.float32).__dlpack__(max_version=(1, 3)))
    assert len(read) == 0


def test_import_pyarrow_arrays() -> None:
    array = pa.array(numbers("uint16")).slice(4)
    read, _, _ = imported(array.__dlpack__(max_version=(1, 3)))
    assert read.equals(array)
    assert address(read) == address(array)


def test_import_tvm_ffi_tensors() -> None:
    values = numbers("float32").reshape(2, 3, 4)
    read, _, _ = imported(tvm_ffi.from_dlpack(values).__dlpack__(max_version=(1, 3)))
    np.testing.assert_array_equal(read.to_numpy_ndarray(), values)


def test_import_releases_numpy_memory() -> None:
    values = numbers("int32")
    view = values.view()
    read, _, _ = imported(view.__dlpack__(max_version=(1, 3)))
    held = sys.getrefcount(view)
    del read
    assert sys.getrefcount(view) == held - 1


# --- Alignment of the data pointers (erratum dlpack-data-alignment) -------------------------------


@pytest.mark.parametrize("offset", range(4))
def test_numpy_and_pyarrow_point_at_first_element(offset: int) -> None:
    values = numbers("int32")[offset:]
    array = pa.array(numbers("int32")).slice(offset)
    assert pointer_of(values.__dlpack__()) == (values.ctypes.data, 0)
    assert pointer_of(values.__dlpack__(max_version=(1, 3))) == (values.ctypes.data, 0)
    assert pointer_of(array.__dlpack__(max_version=(1, 3))) == (address(array), 0)
    assert pointer_of(tvm_ffi.from_dlpack(values).__dlpack__()) == (values.ctypes.data, 0)


@pytest.mark.parametrize("offset", range(4))
def test_export_points_at_first_element(offset: int) -> None:
    array = pa.array(numbers("int32")).slice(offset)
    assert pointer_of(Exported(array).__dlpack__(max_version=(1, 3))) == (address(array), 0)
