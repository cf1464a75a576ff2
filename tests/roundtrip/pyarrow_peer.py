"""pyarrow as a peer."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from cells import Checks
from fletching.abi import ArrowSchema
from limits import LIMITS
from pyarrow_cases import CASES, FORMATS_WITHOUT_CLASS
from structs import Export, export_to_device_capsules, export_to_structs


class PyarrowPeer:
    name = "pyarrow"
    exports: Mapping[str, Export] = {
        "structs": export_to_structs,
        "capsules": export_to_device_capsules,
    }
    limits = LIMITS["pyarrow"]

    def make(self, case: str) -> Any:
        if case in FORMATS_WITHOUT_CLASS:
            return pa.nulls(0, _type_of(FORMATS_WITHOUT_CLASS[case]))
        return CASES[case]()

    def take(self, case: str, schema: int, array: int) -> Any:
        """Moves the structs in."""
        if case in FORMATS_WITHOUT_CLASS:
            # Without the array: pyarrow would release it with its exception set, and then no
            # callback written in Python can run.
            return pa.nulls(0, pa.DataType._import_from_c(schema))
        is_batch = case in CASES and isinstance(CASES[case](), pa.RecordBatch)
        return (pa.RecordBatch if is_batch else pa.Array)._import_from_c_device(array, schema)

    def buffers(self, value: Any) -> list[int]:
        """The addresses of all non-empty buffers that pyarrow exposes."""
        if len(value) == 0:
            return []
        columns = value.columns if isinstance(value, pa.RecordBatch) else [value]
        buffers = (buffer for column in columns for buffer in column.buffers())
        return [buffer.address for buffer in buffers if buffer is not None and buffer.size > 0]

    def compare(self, value: Any, case: str, checks: Checks) -> None:
        compare(value, CASES[case](), checks)
        if isinstance(value, pa.Array):
            checks.equal(value.offset, CASES[case]().offset, "offset")


def compare(value: Any, expected: Any, checks: Checks) -> None:
    """Compares by pyarrow's rules, including metadata."""
    try:
        value.validate(full=True)
        checks.asserted += 1
    except pa.ArrowInvalid as error:
        checks.expect(False, f"pyarrow finds it invalid: {error}")
        return

    def described() -> str:
        return f"pyarrow sees {value!r}, expected {expected!r}"

    if isinstance(expected, pa.RecordBatch):
        checks.expect(value.equals(expected, check_metadata=True), described)
        checks.expect(value.schema.equals(expected.schema, check_metadata=True), described)
    else:
        checks.expect(value.equals(expected), described)
        checks.expect(value.type.equals(expected.type, check_metadata=True), described)


def _type_of(text: bytes) -> Any:
    """The pyarrow type of a format string. pyarrow cannot construct these types otherwise."""

    def release(schema: Any) -> None:
        schema.contents.release = type(schema.contents.release)()

    held = ctypes.create_string_buffer(text)
    schema = ArrowSchema(format=ctypes.addressof(held), flags=2)
    schema.release = type(schema.release)(release)
    return pa.DataType._import_from_c(ctypes.addressof(schema))
