"""pyarrow as a peer: its device arrays go through one language, and come back equal.

    peers.py LANGUAGE

One language per process: there may be one Go runtime and one JVM in each. Exit codes: 0 all came
back right, 1 something failed, 2 the language's library could not be loaded.
"""

from __future__ import annotations

import ctypes
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from cells import Checks, peer_key, reporting
from fletching.abi import ArrowArray, ArrowDeviceArray, ArrowSchema
from libraries import ROOT, declare, load
from pyarrow_cases import CASES

PEER = "pyarrow"

# --- The way through a language ------------------------------------------------------------------


class Transit(Protocol):
    """What `transit.h` describes. Arguments are addresses; send gives the text of an error."""

    def send(self, schema: int, array: int, out_schema: int, out_array: int) -> str: ...
    def exported(self) -> int: ...
    def released(self) -> int: ...


class NativeTransit:
    """libfletching_transit_LANGUAGE."""

    def __init__(self, language: str) -> None:
        library = load(f"libfletching_transit_{language}.so")
        pointers = [ctypes.c_void_p] * 4
        self._message = ctypes.create_string_buffer(1024)
        self._send = declare(
            library,
            "FletchingTransitArray",
            ctypes.c_int,
            *pointers,
            ctypes.c_char_p,
            ctypes.c_size_t,
        )
        self._exported = declare(library, "FletchingTransitExported", ctypes.c_int64)
        self._released = declare(library, "FletchingTransitReleased", ctypes.c_int64)

    def send(self, schema: int, array: int, out_schema: int, out_array: int) -> str:
        capacity = len(self._message)
        code = self._send(schema, array, out_schema, out_array, self._message, capacity)
        text = self._message.value.decode("utf-8", "backslashreplace")
        return f"errno {code}: {text}" if code != 0 else ""

    def exported(self) -> int:
        return int(self._exported())

    def released(self) -> int:
        return int(self._released())


@dataclass(frozen=True)
class Java:
    jdk: str  # the least version
    classpath: str  # the file that holds it
    java_class: str
    options: tuple[str, ...] = ()


JAVA = {
    "java-jna": Java("17", "build/java/jna.classpath", "io.github.fletching.roundtrip.JnaTransit"),
    "java-ffm": Java(
        "22",
        "build/java/ffm.classpath",
        "io.github.fletching.roundtrip.FfmTransit",
        ("--enable-native-access=ALL-UNNAMED",),
    ),
}


class JavaTransit:
    """A class of static methods, in a JVM inside this process."""

    def __init__(self, language: str) -> None:
        import jpype  # noqa: PLC0415  # only here: it is slow, and only Java needs it

        java = JAVA[language]
        home = subprocess.run(
            [str(ROOT / "tools" / "find-jdk"), java.jdk],
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        ).stdout.strip()
        if not home:
            raise OSError(f"there is no JDK {java.jdk}")
        try:
            classpath = (ROOT / java.classpath).read_text("utf-8").strip()
        except OSError as error:
            raise OSError(f"{error}; run `make build`") from error
        jvm = Path(home) / "lib" / "server" / "libjvm.so"
        crash = f"-XX:ErrorFile={ROOT}/build/logs/jvm-crash-%p.log"
        jpype.startJVM(str(jvm), crash, *java.options, classpath=classpath.split(os.pathsep))
        try:
            self._class = jpype.JClass(java.java_class)
        except Exception as error:  # jpype's own, or a Java exception
            raise OSError(f"{java.classpath} leads to no {java.java_class} ({error})") from error

    def send(self, schema: int, array: int, out_schema: int, out_array: int) -> str:
        text = self._class.transit(schema, array, out_schema, out_array)
        return "" if text is None else str(text)

    def exported(self) -> int:
        return int(self._class.exported())

    def released(self) -> int:
        return int(self._class.released())


class PythonTransit:
    def __init__(self) -> None:
        sys.path.insert(0, str(Path(__file__).parent / "python"))
        import transit  # noqa: PLC0415

        self._transit = transit

    def send(self, schema: int, array: int, out_schema: int, out_array: int) -> str:
        try:
            self._transit.pass_array_on(
                ArrowSchema.from_address(schema),
                ArrowDeviceArray.from_address(array),
                ArrowSchema.from_address(out_schema),
                ArrowDeviceArray.from_address(out_array),
            )
        except Exception as error:
            return str(error)
        return "; ".join(self._transit.counts.problems)

    def exported(self) -> int:
        return int(self._transit.counts.exported)

    def released(self) -> int:
        return int(self._transit.counts.released)


def load_transit(language: str) -> Transit:
    if language in JAVA:
        return JavaTransit(language)
    return PythonTransit() if language == "python" else NativeTransit(language)


# --- The round trip ------------------------------------------------------------------------------

# How pyarrow gives an array out; the second function holds what the addresses belong to.
Export = Callable[[Any], tuple[int, int, Any]]


def export_to_structs(source: Any) -> tuple[int, int, Any]:
    schema, array = ArrowSchema(), ArrowDeviceArray()
    addresses = (ctypes.addressof(schema), ctypes.addressof(array))
    source._export_to_c_device(addresses[1], addresses[0])
    return (*addresses, (schema, array))


def export_to_capsules(source: Any) -> tuple[int, int, Any]:
    capsules = source.__arrow_c_device_array__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    schema = pointer(capsules[0], b"arrow_schema")
    array = pointer(capsules[1], b"arrow_device_array")
    return schema, array, capsules


EXPORTS: dict[str, Export] = {"structs": export_to_structs, "capsules": export_to_capsules}


def pass_through(transit: Transit, case: str, export: Export, checks: Checks) -> None:
    """Sends a case through the language and compares what comes back."""
    source = CASES[case]()
    out_schema, out_array = ArrowSchema(), ArrowDeviceArray()
    out = (ctypes.addressof(out_schema), ctypes.addressof(out_array))
    schema, array, owner = export(source)
    error = transit.send(schema, array, *out)
    if not checks.expect(not error, f"the language refused it: {error}"):
        release_both(schema, array)
        return
    checks.expect(not ArrowSchema.from_address(schema).release, "the schema was not moved in")
    checks.expect(not ArrowArray.from_address(array).release, "the array was not moved in")
    checks.equal(out_array.device_type, 1, "device_type")
    checks.equal(out_array.device_id, -1, "device_id")
    checks.equal(list(out_array.reserved), [0, 0, 0], "reserved")
    kind = pa.RecordBatch if isinstance(source, pa.RecordBatch) else pa.Array
    result = kind._import_from_c_device(out[1], out[0])
    checks.equal(buffer_addresses(result), buffer_addresses(source), "where the buffers are")
    # The memory is shared, so what was changed there has changed in `source` too.
    compare(result, CASES[case](), checks)
    del owner


def release_both(schema: int, array: int) -> None:
    for struct in (ArrowSchema.from_address(schema), ArrowArray.from_address(array)):
        if struct.release:
            struct.release(struct)


def buffer_addresses(data: Any) -> list[int]:
    """Of all buffers that hold something: the way back copies nothing."""
    if len(data) == 0:
        return []  # pyarrow does not take over what nobody can see
    columns = data.columns if isinstance(data, pa.RecordBatch) else [data]
    buffers = (buffer for column in columns for buffer in column.buffers())
    return [buffer.address for buffer in buffers if buffer is not None and buffer.size > 0]


def compare(result: Any, expected: Any, checks: Checks) -> None:
    """Equal by pyarrow's own rules, metadata included."""
    try:
        result.validate(full=True)
        checks.asserted += 1
    except pa.ArrowInvalid as error:
        checks.expect(False, f"pyarrow finds it invalid: {error}")
        return
    described = f"pyarrow sees {result!r}, expected {expected!r}"
    if isinstance(expected, pa.RecordBatch):
        checks.expect(result.equals(expected, check_metadata=True), described)
        checks.expect(result.schema.equals(expected.schema, check_metadata=True), described)
    else:
        checks.expect(result.equals(expected), described)
        checks.expect(result.type.equals(expected.type, check_metadata=True), described)
        checks.equal(result.offset, expected.offset, "offset")


def run(language: str, transit: Transit, case: str) -> list[str]:
    """One cell: both ways out of pyarrow; then nothing may be alive on either side."""
    gc.collect()
    bytes_before = pa.total_allocated_bytes()
    exported_before, released_before = transit.exported(), transit.released()
    with reporting(peer_key(language, PEER, case)) as checks:
        for export in EXPORTS.values():
            pass_through(transit, case, export, checks)
        gc.collect()
        exported = transit.exported() - exported_before
        checks.releases = transit.released() - released_before
        checks.expect(exported > 0, "the language gave nothing out")
        checks.equal(checks.releases, exported, "the number of the language's releases")
        checks.equal(pa.total_allocated_bytes(), bytes_before, "what pyarrow has allocated")
    return checks.problems


def _release_schema(schema: ArrowSchema, array: ArrowDeviceArray) -> None:
    schema.release(schema)


def _release_array(schema: ArrowSchema, array: ArrowDeviceArray) -> None:
    array.array.release(array.array)


def _forget_format(schema: ArrowSchema, array: ArrowDeviceArray) -> None:
    schema.format = None


SPOILERS = {
    "a released schema": _release_schema,
    "a released array": _release_array,
    "a schema without a format": _forget_format,
}


def accepted(transit: Transit) -> list[str]:
    """What the language should have refused: with a text, and leaving everything as it was."""
    problems = []
    for what, spoil in SPOILERS.items():
        schema, array, (owned_schema, owned_array) = export_to_structs(CASES["int32"]())
        spoil(owned_schema, owned_array)
        alive = (bool(owned_schema.release), bool(owned_array.array.release))
        out_schema, out_array = ArrowSchema(), ArrowDeviceArray()
        given_out = transit.exported()
        error = transit.send(
            schema, array, ctypes.addressof(out_schema), ctypes.addressof(out_array)
        )
        if not error:
            problems.append(f"{what} was accepted")
        if (bool(owned_schema.release), bool(owned_array.array.release)) != alive:
            problems.append(f"{what} was refused, but what the caller owns was moved or released")
        if transit.exported() != given_out or out_schema.release or out_array.array.release:
            problems.append(f"{what} was refused, but something was given out")
        release_both(schema, array)
    return problems


def main() -> int:
    language = sys.argv[1]
    try:
        transit = load_transit(language)
    except OSError as error:
        print(f"peers: {language}: {error}", file=sys.stderr)
        return 2
    problems = [f"{PEER}: {problem}" for problem in accepted(transit)]
    for case in CASES:
        found = run(language, transit, case)
        problems += [f"{PEER} {case}: {problem}" for problem in found]
        print(f"{PEER} {case}: {'FAILED' if found else 'ok'}", flush=True)
    for problem in problems:
        print(f"{language}: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
