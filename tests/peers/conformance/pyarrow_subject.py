"""pyarrow as a subject of the conformance suite, run by `fletching_conformance --host`."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import subjects
from capsules import GivenStructs, take_tensor
from fletching import abi
from subjects import CPU, Subject, Tensor, hand_out

PROMISES = 1 | 2 | 4 | 8 | 16  # checks schemas, formats, arrays and data; rebuilds arrays
RESULTS = 3  # file descriptor for results to fletching_conformance
NO_SUBJECT = 3

# pyarrow's messages for a valid struct of a kind that it does not support. For a format without a
# class it raises a KeyError with the number of the type.
MISSING = ("is not registered", "with one lane", "unsupported DLPack type")


def reporting_what_is_missing(function: Callable[..., None]) -> Callable[..., None]:
    def call(*arguments: Any) -> None:
        try:
            function(*arguments)
        except Exception as error:
            if isinstance(error, KeyError) or any(text in str(error) for text in MISSING):
                raise NotImplementedError(f"pyarrow does not have it: {error}") from error
            raise

    return call


def address(struct: Any) -> int:
    return ctypes.addressof(struct.contents)


def imported(field: pa.Field, array: Any) -> pa.Array:
    """Imports the array. Reads a CPU array to its last value."""
    on_cpu = array.contents.device_type == CPU
    taken = pa.Array._import_from_c_device(address(array), field.type)
    taken.validate(full=on_cpu)
    return taken


class Pyarrow:
    """Has no legacy tensors: pyarrow requests a version and treats every capsule as versioned."""

    def schema(self, given: Any, out: Any) -> None:
        pa.Field._import_from_c(address(given))._export_to_c(address(out))

    @reporting_what_is_missing
    def array(self, schema: Any, array: Any, out_schema: Any, out: Any) -> None:
        field = pa.Field._import_from_c(address(schema))
        imported(field, array)._export_to_c_device(address(out))
        field._export_to_c(address(out_schema))  # includes the name and the metadata

    def child(self, schema: Any, array: Any, index: int, out: Any) -> None:
        if index < 0:  # in Python, an index from the end
            raise IndexError(f"child: expected an index from 0, got {index}")
        parent = imported(pa.Field._import_from_c(address(schema)), array)
        parent.field(index)._export_to_c_device(address(out))

    def stream(self, given: Any, out: Any) -> None:
        """Uses a ChunkedArray, because a RecordBatchReader accepts only structs."""
        chunked = pa.chunked_array(GivenStructs("stream", given.contents))
        chunked.validate(full=True)
        hand_out(chunked.__arrow_c_stream__(), out)

    @reporting_what_is_missing
    def tensor(self, given: int, out: Any) -> None:
        dimensions = abi.DLManagedTensorVersioned.from_address(given).dl_tensor.ndim
        kind = pa.Array if dimensions == 1 else pa.Tensor
        with Tensor(given, versioned=True) as tensor:
            taken = kind.from_dlpack(tensor)
        out[0] = take_tensor(taken.__dlpack__(max_version=(1, 3)))


def main(index: int, group: str, case: str, skipped: int) -> int:
    """The child process of fletching_conformance (tests/conformance/child.hpp)."""
    if index > 0:
        return NO_SUBJECT
    subject = Subject("pyarrow", Pyarrow(), PROMISES)
    begun = 0

    def write(**line: str) -> None:
        os.write(RESULTS, json.dumps(line).encode() + b"\n")

    def begin(group: bytes, name: bytes) -> bool:
        nonlocal begun
        begun += 1
        if begun > skipped:
            write(begin=f"{group.decode()}/{name.decode()}")
        return begun > skipped

    def report(result: dict[str, str]) -> None:
        write(subject=subject.name, **result)

    write(subject=subject.name)
    subjects.run(subject, group or None, case or None, report, begin)
    return 0


if __name__ == "__main__":
    code = main(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]))
    os._exit(code)  # skips the interpreter's shutdown, so that it cannot affect the result
