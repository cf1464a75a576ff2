"""nanoarrow as a peer. Its arrays are compared by pyarrow if both support the type."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import nanoarrow as na
import nanoarrow.device
import pyarrow as pa

from cells import Checks
from limits import CRASH, HOLD_VIEWS, LIMITS
from pyarrow_cases import CASES, FORMATS_WITHOUT_CLASS
from pyarrow_peer import compare
from structs import Capsules, Export, export_to_capsules, export_to_device_capsules

_GIVE_OUT = """
import resource
import nanoarrow
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
array = nanoarrow.c_array([{value!r}], nanoarrow.{kind}())
array.__arrow_c_array__()
"""

# Types that nanoarrow imports and exports, but cannot build.
UNBUILDABLE: Mapping[str, str] = {
    "decimal32": "Unsupported Arrow type_id for format conversion: 42",
    "decimal64": "Unsupported Arrow type_id for format conversion: 43",
    "list_view": "ArrowArrayView buffer 2 has size_bytes < 0",
    "large_list_view": "ArrowArrayView buffer 2 has size_bytes < 0",
}

# Types without a class in pyarrow: the buffers, and nanoarrow's values.
_VALID = b"\x0b"  # the third value is null
_INTERVALS: Mapping[str, tuple[Any, list[bytes], list[Any]]] = {
    "interval_months": (
        na.interval_months(),
        [_VALID, struct.pack("=4i", 0, -13, 0, 14)],
        [0, -13, None, 14],
    ),
    "interval_day_time": (
        na.interval_day_time(),
        [b"\x05", struct.pack("=6i", 1, 2, 0, 0, -3, -86399999)],
        [(1, 2), None, (-3, -86_399_999)],
    ),
}


class NanoarrowPeer:
    name = "nanoarrow"
    exports: Mapping[str, Export] = {
        "device capsules": export_to_device_capsules,
        "capsules": export_to_capsules,
    }
    limits = LIMITS["nanoarrow"]

    def make(self, case: str) -> Any:
        """An array built by nanoarrow if it can, otherwise imported from pyarrow."""
        if case in HOLD_VIEWS:
            return _give_out_alone(case)
        if case in _INTERVALS:
            kind, buffers, values = _INTERVALS[case]
            array = na.c_array_from_buffers(kind, len(values), buffers)
        else:
            array = na.c_array(CASES[case]())
        return na.device.c_device_array(build(array) if can_build(array) else array)

    def take(self, case: str, schema: int, array: int) -> Any:
        """Moves the structs in."""
        taken = na.device.c_device_array(Capsules(schema, array))
        for node in _nodes(taken.array):
            node.view()  # checks the sizes of the buffers
        return taken

    def buffers(self, value: Any) -> list[int]:
        return [address for node in _nodes(value.array) for address in node.buffers if address]

    def compare(self, value: Any, case: str, checks: Checks) -> None:
        checks.equal(value.device_type_id, 1, "nanoarrow's device_type")
        checks.equal(value.device_id, -1, "nanoarrow's device_id")
        if case in FORMATS_WITHOUT_CLASS:
            checks.equal(na.Array(value.array).to_pylist(), _INTERVALS[case][2], "values")
            return
        expected = CASES[case]()
        if case in HOLD_VIEWS:
            checks.equal(pa.field(value.schema).type, expected.type, "type")
            checks.equal(viewed(value.array), _as_binary(expected), "values")
        else:
            is_batch = isinstance(expected, pa.RecordBatch)
            compare((pa.record_batch if is_batch else pa.array)(value), expected, checks)


def _as_binary(array: pa.Array) -> Any:
    return array.cast(pa.binary()).to_pylist() if len(array) else []


def _nodes(array: Any) -> Iterator[Any]:
    yield array
    for child in array.children:
        yield from _nodes(child)
    if array.dictionary is not None:
        yield from _nodes(array.dictionary)


def can_build(array: Any) -> bool:
    """nanoarrow cannot set a dictionary."""
    return all(
        node.dictionary is None and node.view().storage_type not in UNBUILDABLE
        for node in _nodes(array)
    )


def build(array: Any) -> Any:
    """A copy of the array in nanoarrow's memory, with nanoarrow's release callbacks."""
    return na.c_array_from_buffers(
        array.schema,
        array.length,
        list(array.view().buffers),
        array.null_count,
        array.offset,
        [build(child) for child in array.children],
    )


def viewed(array: Any) -> list[bytes | None]:
    """The values of a view array, read from its buffers; [] for an empty array."""
    if array.length == 0:
        return []
    validity, views, *data, _ = (bytes(memoryview(buffer)) for buffer in array.view().buffers)
    values: list[bytes | None] = []
    for i in range(array.offset, array.offset + array.length):
        size, _, buffer, offset = struct.unpack_from("=4i", views, 16 * i)
        inline = views[16 * i + 4 : 16 * i + 4 + size]
        value = inline if size <= 12 else data[buffer][offset : offset + size]
        values.append(None if validity and not validity[i // 8] >> i % 8 & 1 else value)
    return values


def _give_out_alone(case: str) -> Any:
    """Runs the crashing export in a separate process."""
    is_text = case.startswith("utf8")
    value = "longer than twelve bytes" if is_text else b"longer than twelve bytes"
    program = _GIVE_OUT.format(value=value, kind="string_view" if is_text else "binary_view")
    ended = subprocess.run(
        [sys.executable, "-c", program],
        # Fills memory, so that garbage read as a buffer address cannot be valid by chance.
        env={**os.environ, "MALLOC_PERTURB_": "165"},
        capture_output=True,
        check=False,
    )
    if ended.returncode < 0:
        raise RuntimeError(CRASH)
    raise AssertionError("nanoarrow exports view arrays now: remove them from the list")
