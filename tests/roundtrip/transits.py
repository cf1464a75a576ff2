"""The way through each language: what `transit.h` describes, from Python."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from fletching.abi import ArrowDeviceArray, ArrowSchema
from libraries import ROOT, declare, load


class Transit(Protocol):
    """Arguments are addresses; send gives the text of an error."""

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
        sys.path.insert(0, str(ROOT / "bindings" / "python" / "roundtrip"))
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
