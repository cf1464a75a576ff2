"""arrow-java and DuckDB's JDBC driver as Python objects with the Arrow PyCapsule methods.

$JARS is the folder with their jars.
"""

from __future__ import annotations

import ctypes
import functools
import os
import tempfile
from collections.abc import Callable
from typing import Any

import jpype

jpype.startJVM(
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "-XX:ErrorFile=/dev/null",  # of a crash, instead of a file in the working folder
    f"-Djava.io.tmpdir={tempfile.gettempdir()}",  # DuckDB unpacks its library there
    classpath=[f"{os.environ['JARS']}/*"],
)
c = jpype.JPackage("org.apache.arrow.c")
vector = jpype.JPackage("org.apache.arrow.vector")
allocator = jpype.JClass("org.apache.arrow.memory.RootAllocator")()
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)


# --- Producers ---


def capsules(export: Callable[..., None], *names: str) -> tuple[Any, ...]:
    """Returns capsules of the structs that `export` fills."""
    # Here, because the consumers are also called without Fletching.
    from fletching import abi, to_capsule  # noqa: PLC0415

    structs = [getattr(abi, name)() for name in names]
    export(*(getattr(c, type(each).__name__).wrap(ctypes.addressof(each)) for each in structs))
    return tuple(to_capsule(each) for each in structs)


class Vector:
    """A vector of the values, by default of 64-bit integers."""

    def __init__(self, values: list[Any], kind: str = "BigIntVector") -> None:
        self.vector = getattr(vector, kind)("a", allocator)
        self.vector.allocateNew()
        for at, value in enumerate(values):
            if value is None:
                self.vector.setNull(at)
            else:
                self.vector.setSafe(at, value)
        self.vector.setValueCount(len(values))

    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        def export(schema: Any, array: Any) -> None:
            c.Data.exportVector(allocator, self.vector, None, array, schema)
            self.vector.close()

        return capsules(export, "ArrowSchema", "ArrowArray")


class Reader:
    """An ArrowReader."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        def export(stream: Any) -> None:
            c.Data.exportArrayStream(allocator, self.reader, stream)

        return capsules(export, "ArrowArrayStream")[0]


def ipc_reader(*columns: Vector) -> Reader:
    """Returns a reader of one batch in the IPC format."""
    sink = jpype.JClass("java.io.ByteArrayOutputStream")()
    root = vector.VectorSchemaRoot.of(*(column.vector for column in columns))
    writer = vector.ipc.ArrowStreamWriter(root, None, sink)
    writer.writeBatch()
    writer.close()
    root.close()
    source = jpype.JClass("java.io.ByteArrayInputStream")(sink.toByteArray())
    return Reader(vector.ipc.ArrowStreamReader(source, allocator))


@functools.cache
def duckdb() -> Any:
    return jpype.JClass("org.duckdb.DuckDBDriver")().connect("jdbc:duckdb:", None)


def query(text: str) -> Reader:
    """Returns the result of a DuckDB query."""
    result = duckdb().createStatement().executeQuery(text)  # closed by the reader
    return Reader(result.arrowExportStream(allocator, 2048))


# --- Consumers ---


def import_vector(given: Any) -> None:
    schema, array = given.__arrow_c_array__()
    with c.CDataDictionaryProvider() as provider:
        c.Data.importVector(
            allocator,
            c.ArrowArray.wrap(pointer(array, b"arrow_array")),
            c.ArrowSchema.wrap(pointer(schema, b"arrow_schema")),
            provider,
        ).close()


def stream_of(capsule: object) -> Any:
    return c.ArrowArrayStream.wrap(pointer(capsule, b"arrow_array_stream"))


def import_stream(given: Any) -> None:
    capsule = given.__arrow_c_stream__()
    with c.Data.importArrayStream(allocator, stream_of(capsule)) as reader:
        while reader.loadNextBatch():
            pass


def register_stream(given: Any) -> None:
    """Reads the stream in a DuckDB query."""
    capsule = given.__arrow_c_stream__()
    duckdb().registerArrowStream("t", stream_of(capsule))
    with duckdb().createStatement() as statement:
        statement.executeQuery("select * from t")
