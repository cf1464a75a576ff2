"""How each language's probe and its tests of device types run in a scratch tree: plain data.

The commands are bash, from the root of the scratch tree, after the ABI tests of tests/mutants have
been built there. A probe takes numbers, "device:19" or "code:18", and prints a name for each, a
line each.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Commands:
    build: str  # builds the probe; again after the declarations have changed
    probe: str  # runs it; "device:19" and so on follow
    tests: str  # the language's own tests of its device types and codes


_CXX = "g++ -std=c++20 -O0 -Wall -Wextra -Wpedantic -Werror -Icpp/include"
_JDK = 'JDK=$(tools/find-jdk 22) && JNA=$(cat "$ROOT/build/java/jna.classpath")'
_CARGO = "cd bindings/rust && CARGO_TARGET_DIR=$PWD/../../build/rust cargo"


def _java(probe: str) -> Commands:
    classes = "build/java/classes:build/java/probe:$JNA"
    return Commands(
        build=f'{_JDK} && "$JDK/bin/javac" -proc:none --release 22 -cp "{classes}" '
        f"-d build/java/probe bindings/java/probe/{probe}.java",
        probe=f'{_JDK} && "$JDK/bin/java" --enable-native-access=ALL-UNNAMED -cp "{classes}" '
        f"{probe}",
        tests="cd bindings/java && ./mvn -B -ntp test -pl fletching-abi",
    )


COMMANDS = {
    "cpp": Commands(
        build=f"{_CXX} cpp/probe/probe.cpp -o build/probe",
        probe="build/probe",
        tests=f"{_CXX} -Itests/oracle -Icpp/roundtrip cpp/tests/tables_test.cpp "
        "build/{cells,text}.o -o build/tables_test "
        '-L"$FLETCHING_LIB_DIR" -lfletching_oracle -lgtest_main -lgtest -pthread && '
        "build/tables_test --gtest_brief=1",
    ),
    "rust": Commands(
        build=f"{_CARGO} build -q --locked -p fletching-probe",
        probe="build/rust/debug/fletching-probe",
        tests=f"{_CARGO} test -q --locked -p fletching-abi --tests",
    ),
    "go": Commands(
        build="cd bindings/go && go build -o ../../build/probe ./internal/probe",
        probe="build/probe",
        tests="cd bindings/go && go test -count=1 ./abi",
    ),
    "java-jna": _java("JnaProbe"),
    "java-ffm": _java("FfmProbe"),
    "python": Commands(
        build="true",
        probe='cd bindings/python && PYTHONPATH=src "$ROOT/.venv/bin/python" probe/probe.py',
        tests='cd bindings/python && "$ROOT/.venv/bin/pytest" -q -p no:cacheprovider '
        "tests/test_device_types.py tests/test_data_type_codes.py",
    ),
}
