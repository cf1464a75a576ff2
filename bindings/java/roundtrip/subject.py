"""Java's subject for tests/roundtrip/transits.py: a JVM inside the process of the peers."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import jpype

HOME = Path(__file__).resolve().parents[1]
BUILD = HOME.parents[1] / "build"


CLASSPATH = BUILD / "java" / "roundtrip.classpath"
PROGRAM = "io.github.fletching.roundtrip.Program"


@dataclass(frozen=True)
class Engine:
    name: str  # value of the system property that selects the engine
    jdk: str  # the minimum version
    options: tuple[str, ...] = ()


ENGINES = {
    "java-jna": Engine("jna", "17"),
    "java-ffm": Engine("ffm", "22", ("--enable-native-access=ALL-UNNAMED",)),
}


def load(column: str) -> int:
    """Returns the address of the subject in a new JVM, or raises OSError."""
    engine = ENGINES[column]
    home = subprocess.run(
        [str(HOME / "find-jdk"), engine.jdk], stdout=subprocess.PIPE, text=True, check=False
    ).stdout.strip()
    if not home:
        raise OSError(f"there is no JDK {engine.jdk}")
    try:
        classpath = CLASSPATH.read_text("utf-8").strip()
    except OSError as error:
        raise OSError(f"{error}; run `make build`") from error
    jvm = Path(home) / "lib" / "server" / "libjvm.so"
    crash = f"-XX:ErrorFile={BUILD}/logs/jvm-crash-%p.log"
    chosen = f"-Dio.github.fletching.engine={engine.name}"
    jpype.startJVM(str(jvm), crash, chosen, *engine.options, classpath=classpath.split(os.pathsep))
    try:
        return int(jpype.JClass(PROGRAM).subject())
    except Exception as error:  # jpype's own exception, or a Java exception
        raise OSError(f"{CLASSPATH}: no subject in {PROGRAM} ({error})") from error
