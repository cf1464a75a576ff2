"""Tables, arrays and schemas to the other Arrow libraries and back: a library must treat data from
fletching like the same data from pyarrow."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pyarrow
import pytest

import fletching
from capsules import Given, Produced, ProducedOnDevice
from fletching import Array, ArrayStream, DeviceArray, DeviceArrayStream, Schema
from peers import CASES, PEERS, Peer, peer

REFUSED = "refused"
TABLE = pyarrow.table({"n": [1, None, 3], "t": ["a", "b", None]})


@pytest.fixture(params=PEERS)
def library(request: pytest.FixtureRequest) -> Peer:
    return peer(request.param)


class Wrapper:
    """An object with one method, on the type, where some libraries look it up."""

    def __init__(self, source: Any) -> None:
        self.source = source


class ArrayOnly(Wrapper):
    def __arrow_c_array__(self, requested_schema: object = None) -> Any:
        return self.source.__arrow_c_array__(requested_schema)


class StreamOnly(Wrapper):
    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        return self.source.__arrow_c_stream__(requested_schema)


def outcome(call: Callable[..., object], *arguments: object) -> object:
    """Returns the result or the exception; some libraries raise a BaseException."""
    try:
        return call(*arguments)
    except BaseException as error:
        if isinstance(error, (KeyboardInterrupt, SystemExit, AssertionError)):
            raise
        return REFUSED


def read_by_pyarrow(library: Peer, source: Any) -> object:
    theirs = library.table(source)
    return pyarrow.RecordBatchReader.from_stream(theirs).read_all().column(0).to_pylist()


def read_by_fletching(library: Peer, source: Any) -> object:
    theirs = library.table(source)
    for kind in (ArrayStream, DeviceArrayStream):
        read = pyarrow.table(kind.from_arrow(theirs)).column(0).to_pylist()
        if library.reads_once:
            return read
    return read


# --- Tables --------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_tables_round_trip(library: Peer, case: str) -> None:
    if case in library.crashes:
        pytest.skip(f"{library.name} ends the process, with or without us")
    whole = pyarrow.record_batch({"values": CASES[case]})
    for batch in (whole, whole.slice(1), whole.slice(0, 0)):
        if library.takes_arrays:
            expected = outcome(read_by_pyarrow, library, ArrayOnly(batch))
            for kind in (Array, DeviceArray):
                ours = kind.from_arrow(batch)
                assert outcome(read_by_fletching, library, ours) == expected
        table = pyarrow.Table.from_batches([batch, batch])
        expected = outcome(read_by_pyarrow, library, StreamOnly(table))
        for stream in (ArrayStream, DeviceArrayStream):
            assert outcome(read_by_fletching, library, stream.from_arrow(table)) == expected
        if batch is whole and case not in library.changes:
            values = table.column(0).to_pylist()
            assert expected == (REFUSED if case in library.refuses else values)


@pytest.mark.parametrize("case", ["string", "nested", "dictionary", "timestamp"])
def test_arrays_round_trip(library: Peer, case: str) -> None:
    if library.series is None:
        pytest.skip(f"{library.name} has no arrays outside of tables")
    for source in (CASES[case], CASES[case].slice(1), CASES[case].slice(0, 0)):
        theirs = library.series(DeviceArray.from_arrow(source))
        back = fletching.from_arrow(theirs)
        if isinstance(back, ArrayStream):
            assert pyarrow.chunked_array(back).to_pylist() == source.to_pylist()
        else:
            assert pyarrow.array(back).to_pylist() == source.to_pylist()


def test_column_stream_round_trips(library: Peer) -> None:
    """Batches that are not structs."""
    if library.name not in ("pyarrow", "polars", "pandas"):
        pytest.skip(f"{library.name} has no array of more than one piece")
    makers = {"pyarrow": pyarrow.chunked_array}
    make = makers.get(library.name, library.series)
    assert make is not None
    pieces = pyarrow.chunked_array([[1, None], [], [3]], pyarrow.int64())
    theirs = make(DeviceArrayStream.from_arrow(pieces))
    assert pyarrow.chunked_array(ArrayStream.from_arrow(theirs)).to_pylist() == [1, None, 3]


# --- Schemas -------------------------------------------------------------------------------------


def test_schemas_round_trip(library: Peer) -> None:
    if library.schema is None:
        pytest.skip(f"{library.name} has no schemas")
    field = pyarrow.field("n", pyarrow.int32(), nullable=False, metadata={"c": "d"})
    requested = pyarrow.schema([field, ("t", pyarrow.string_view())], metadata={"a": "b"})
    theirs = library.schema(Schema.from_arrow(requested))
    back = Schema.from_arrow(theirs)
    assert [child.type for child in back.children] == ["int32", "string_view"]
    assert [child.name for child in back.children] == ["n", "t"]
    if library.name == "polars":  # it has neither metadata nor flags
        return
    assert back.metadata == {b"a": b"b"}
    assert back.children[0].metadata == {b"c": b"d"}
    assert not back.children[0].nullable


def test_peer_export_accepts_requested_schema(library: Peer) -> None:
    """The consumer reads the schema of the result, so any result is valid."""
    theirs = library.table(DeviceArrayStream.from_arrow(TABLE))
    requested = pyarrow.schema({"n": pyarrow.int64(), "t": pyarrow.large_string()})
    capsule = outcome(theirs.__arrow_c_stream__, requested.__arrow_c_schema__())
    if capsule == REFUSED:
        assert library.name in ("nanoarrow", "pandas", "duckdb", "datafusion")
        return
    stream = ArrayStream.from_arrow(Given(stream=capsule))
    assert stream.schema.type.startswith("struct<n: int64, t: ")
    assert pyarrow.table(stream).to_pylist() == TABLE.to_pylist()


def test_peer_import_requests_schema() -> None:
    """The request is not binding: pyarrow converts the array or raises."""
    requested = pyarrow.schema({"n": pyarrow.int64(), "t": pyarrow.large_string()})
    for kind in (ArrayStream, DeviceArrayStream):
        reader = pyarrow.RecordBatchReader.from_stream(kind.from_arrow(TABLE), schema=requested)
        assert reader.read_all().to_pylist() == TABLE.to_pylist()
        with pytest.raises(fletching.Error, match="requested_schema does not fit the data"):
            pyarrow.RecordBatchReader.from_stream(
                kind.from_arrow(TABLE), schema=pyarrow.schema({"n": pyarrow.int64()})
            )


# --- Rejected input, single use ------------------------------------------------------------------


def refused(library: Peer, source: object) -> None:
    with pytest.raises(BaseException) as caught:
        theirs = library.table(source)
        theirs.schema  # noqa: B018  nanoarrow reads it on access
    assert not isinstance(caught.value, (KeyboardInterrupt, SystemExit, AssertionError))


@pytest.mark.parametrize("made", [Produced, ProducedOnDevice])
@pytest.mark.parametrize("kind", [DeviceArray, DeviceArrayStream])
def test_rejected_array_is_released_once(library: Peer, made: Any, kind: Any) -> None:
    """A release may run while the library's exception is set."""
    produced = made(format="?")
    array = DeviceArray.from_arrow(produced)
    if kind is DeviceArray and not library.takes_arrays:
        pytest.skip(f"{library.name} takes streams only")
    if kind is DeviceArray:
        refused(library, array)
    else:
        refused(library, DeviceArrayStream.from_batches(array.schema, 1, iter([array])))
    del array
    gc.collect()
    assert sorted(produced.releases) == ["array", "schema"]


@pytest.mark.parametrize("kind", [ArrayStream, DeviceArrayStream])
def test_stream_error_reaches_peer(library: Peer, kind: Any) -> None:
    def batches() -> Any:
        yield pyarrow.record_batch(TABLE.to_batches()[0])
        raise OSError(5, "no more data")

    schema = Schema.from_arrow(TABLE.schema)
    more = (schema, batches()) if kind is ArrayStream else (schema, 1, batches())
    with pytest.raises(BaseException, match="no more data"):
        read_by_fletching(library, kind.from_batches(*more))


def test_capsules_are_consumed_once(library: Peer) -> None:
    """The library's capsules in fletching, and fletching's in the library."""
    theirs = library.table(DeviceArrayStream.from_arrow(TABLE))
    capsule = Given(stream=theirs.__arrow_c_stream__())
    ArrayStream.from_arrow(capsule)
    with pytest.raises(fletching.Error, match="arrow_array_stream is released"):
        ArrayStream.from_arrow(capsule)
    if not library.takes_arrays or library.name == "nanoarrow":  # it leaves structs in capsules
        return
    ours = DeviceArray.from_arrow(TABLE.to_batches()[0])
    once = ArrayOnly(Given(array=ours.__arrow_c_array__()))
    assert outcome(read_by_fletching, library, once) == TABLE.column(0).to_pylist()
    assert outcome(read_by_fletching, library, once) == REFUSED


def test_peer_rejects_consumed_stream(library: Peer) -> None:
    stream = DeviceArrayStream.from_arrow(TABLE)
    read_by_fletching(library, stream)
    assert outcome(read_by_fletching, library, stream) == REFUSED


def test_dropped_data_is_released(library: Peer) -> None:
    """Data that a library has read and dropped is released."""
    produced = ProducedOnDevice(format="i")
    batch = DeviceArray.from_arrow(produced)
    theirs = library.table(DeviceArrayStream.from_arrow(TABLE))
    del theirs
    if library.series is not None:
        series = library.series(batch)
        del series
    del batch
    gc.collect()
    assert sorted(produced.releases) == ["array", "schema"]
