"""NumPy as the reference: type strings, fields and strides as NumPy writes and reads them.

The real peers, Numba and CuPy, need a GPU. NumPy's own interface has the same keys, and the same
definition of type strings, fields and strides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fletching import check_cuda_array_interface as check

PREFIX = "cuda-array-interface."
# f12 and c24 belong to other machines. NumPy itself writes the size of objects as "|O": it takes O4
# for pointers of this machine. It has no bit fields.
ABSENT_HERE = {"f12", "c24", "O4"}
# NumPy's long forms, which are not in the published grammar.
LENIENT = ["i4", "=i4", "<i04", "<i+4", "<i 4", "|S", "<f", "<M8[generic]", "<M8[01s]", "float32"]

TYPES = [
    *np.typecodes["All"],
    *("S5", "S0", "U7", ">U7", "V3", ">i4", ">c16", "M8[ns]", "M8[25s]", ">m8[D]"),
    np.dtype([("a", "<i2"), ("b", "<f8")]),
    np.dtype([("a", "<i2"), ("b", "<f8")], align=True),
    np.dtype([(("title", "a"), "<i2", (2, 3)), ("s", [("x", "u1"), ("y", ">U2")])]),
    np.dtype({"names": ["a"], "formats": ["i1"], "offsets": [5], "itemsize": 16}),
    np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [4, 0]}),
    np.dtype(("i4", [("low", "i2"), ("high", "i2")])),
]


def interface_of(array: np.ndarray[Any, Any]) -> dict[str, object]:
    """Returns the array's dictionary as if it were in CUDA memory."""
    interface: dict[str, object] = dict(array.__array_interface__)
    if array.size == 0:
        # NumPy does not specify the address of an empty array; the CUDA Array Interface does.
        interface["data"] = (0, not array.flags.writeable)
    return interface


def arrays(dtype: Any) -> list[np.ndarray[Any, Any]]:
    whole = np.zeros((4, 6), dtype)
    fixed = whole.copy()
    fixed.flags.writeable = False
    views = [whole, fixed, whole.T, whole[::2], whole[::-1, ::-3], whole[1:2], whole[0, 0:0]]
    views += [
        whole[::2][:1],
        whole[:, 2:3],
        whole[1:2, ::2],
        np.zeros((), dtype),
        np.broadcast_to(whole, (3, 4, 6)),
    ]
    return [*views, np.asfortranarray(whole), np.zeros((2, 0, 3), dtype)]


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_check_accepts_numpy_interface(dtype: Any) -> None:
    for array in arrays(dtype):
        assert check(interface_of(array)) == [], (array.shape, array.strides)


def test_check_reports_numpy_address_of_empty_array() -> None:
    interface = dict(np.zeros(0).__array_interface__)
    assert [v.rule for v in check(interface)] == ["cuda-array-interface.data-zero-size"]


def broken_by(typestr: str, bytes_: int | None = None) -> set[str]:
    """Returns the rules that a type string breaks, for items of the given number of bytes."""
    interface: dict[str, object] = {"shape": (), "typestr": typestr, "version": 3}
    interface["data"] = (4096, False)
    if bytes_ is not None:
        interface["descr"] = [("", f"|V{bytes_}")]
    return {violation.rule.removeprefix(PREFIX) for violation in check(interface)}


@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_check_reads_item_sizes_like_numpy(dtype: Any) -> None:
    dtype = np.dtype(dtype)
    assert broken_by(dtype.str, dtype.itemsize) <= {"data-pointer"}
    assert "descr-size" in broken_by(dtype.str, dtype.itemsize + 1)


@pytest.mark.parametrize("kind", "biufcmMSUV")
def test_check_accepts_same_kind_sizes_as_numpy(kind: str) -> None:
    for size in range(1, 40):
        text = f"<{kind}{size}"
        broken = broken_by(text)
        assert "typestr-grammar" not in broken
        if text[1:] in ABSENT_HERE:
            continue
        try:
            np.dtype(text)
        except TypeError:
            assert "typestr-size" in broken, text
        else:
            assert "typestr-size" not in broken, text


@pytest.mark.parametrize("unit", [u for u in "YMWDhms"] + ["ms", "us", "ns", "ps", "fs", "as"])
def test_check_accepts_numpy_units(unit: str) -> None:
    for text in (f"<M8[{unit}]", f"<m8[7{unit}]"):
        assert text == np.dtype(text).str
        assert broken_by(text, 8) == set()


@pytest.mark.parametrize("text", LENIENT)
def test_check_rejects_typestr_that_numpy_only_reads(text: str) -> None:
    assert broken_by(text) == {"typestr-grammar"}
    written = np.dtype(text).str
    assert written != text
    assert "typestr-grammar" not in broken_by(written)


def test_check_accepts_numpy_integers() -> None:
    interface = interface_of(np.zeros((2, 3)))
    interface["shape"] = (np.int64(2), np.array(3))
    interface["strides"] = (np.uint8(24), np.int32(8))
    interface["version"] = np.int8(3)
    interface["stream"] = np.uint64(2**64 - 1)
    assert check(interface) == []
    interface["stream"] = np.uint64(0)
    assert [v.key for v in check(interface)] == ["stream"]
    interface["stream"] = np.bool_(True)
    assert [v.rule for v in check(interface)] == ["cuda-array-interface.stream-integer"]
    interface["stream"] = np.array([1, 2])
    assert [v.rule for v in check(interface)] == ["cuda-array-interface.stream-integer"]


def test_check_accepts_numpy_bool() -> None:
    interface = interface_of(np.zeros((2, 3)))
    interface.update(data=(4096, np.bool_(False)))
    assert check(interface) == []
    interface.update(data=(4096, np.int8(0)))
    assert "got" not in str(check(interface)[0])
    assert "(4096, a value of type 'numpy.int8')" in str(check(interface)[0])


def test_check_reports_stream_above_64_bits() -> None:
    interface = interface_of(np.zeros((2, 3)))
    for number in (2**64, -1, -(2**63) - 1):
        interface["stream"] = number
        (violation,) = check(interface)
        assert str(violation).startswith(f"stream: {number};")
    interface["stream"] = 10**5000
    (violation,) = check(interface)
    assert str(violation).startswith("stream: a number of more than 64 bits;")
