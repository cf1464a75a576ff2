"""How each language's oracle test is built and run in a scratch tree: plain data for mutants.py.

The commands are the short form of what `make test` runs: bash, from the root of the scratch tree,
with FLETCHING_LIB_DIR set to the folder of the good oracle and ROOT to the repository.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mutations import ABI, EVENTS


@dataclass(frozen=True)
class Build:
    prepare: str  # once per scratch tree
    build: str  # after every change; it fails when the declarations do not compile
    runs: Mapping[str, str]  # by language; FAILED when a check fails
    failed: int = 1  # the exit code of a test that ran and failed
    kind: str = ABI  # of the mutants that it is tried on
    libraries: str = ""  # the folder with the vendors' libraries, below that of the good oracle

    @property
    def name(self) -> str:
        return f"{next(iter(self.runs))}{'' if self.kind == ABI else f'-{self.kind}'}"


_CXX = (
    "g++ -std=c++20 -O0 -Wall -Wextra -Wpedantic -Werror "
    "-Icpp/include -Itests/oracle -Icpp/roundtrip"
)
_JAVA = "build/java"
_JAVAC = (
    "rm -rf build/java/classes && find bindings/java/fletching-{abi,testing,jna,ffm}/src/main "
    'bindings/java/fletching-{jna,ffm}/src/test -name "*.java" '
    r"| grep -v 'Test\.java$' > build/java/sources && "
    '"$JDK/bin/javac" -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC '
    '-proc:none --release 22 -cp "$JNA" -d build/java/classes @build/java/sources'
)
_JNA = "tr ':' '\\n' < \"$ROOT/build/java/jna.classpath\" | grep '/jna-[0-9.]*jar$'"
_SETUP = f"JDK=$(tools/find-jdk 22) && JNA=$({_JNA})"


def _java(flavor: str) -> str:
    return (
        f'{_SETUP} && exec "$JDK/bin/java" -XX:TieredStopAtLevel=1 -XX:+UseSerialGC '
        f'--enable-native-access=ALL-UNNAMED -cp "build/java/classes:$JNA" '
        f"io.github.fletching.{flavor}.abi.AbiMain"
    )


# The quick ones first: two at a time, a run that is stopped has the most to show.
BUILDS: tuple[Build, ...] = (
    Build(
        prepare="mkdir -p build",
        build="cd bindings/go && CGO_ENABLED=1 go test -c -vet=off -o ../../build/oracle.test "
        "./internal/oracle",
        runs={"go": "cd bindings/go/internal/oracle && exec ../../../../build/oracle.test"},
    ),
    Build(
        prepare="mkdir -p build",
        build="cd bindings/rust && export CARGO_TARGET_DIR=$PWD/../../build/rust && "
        "cargo test -q --locked --no-run -p fletching-testing --test oracle && "
        "cargo test --locked --no-run -p fletching-testing --test oracle 2>&1 "
        r"| sed -nE 's/.*Executable.*\((.*)\)$/\1/p' > ../../build/rust-test",
        runs={"rust": 'cd bindings/rust && exec "$(cat ../../build/rust-test)"'},
        failed=101,
    ),
    Build(
        prepare="true",
        build="true",
        runs={
            "python": 'cd bindings/python && exec "$ROOT/.venv/bin/pytest" -q -p no:cacheprovider '
            "tests/test_abi_against_oracle.py"
        },
    ),
    Build(
        prepare=f"mkdir -p {_JAVA}",
        build=f"{_SETUP} && {_JAVAC}",
        runs={"java-jna": _java("jna"), "java-ffm": _java("ffm")},
    ),
    Build(
        prepare=f"mkdir -p build && cd build && {_CXX.replace('-I', '-I../')} "
        "-c ../cpp/roundtrip/{cells,text}.cpp",
        build=f"{_CXX} cpp/tests/abi_test.cpp build/{{cells,text}}.o "
        '-o build/abi_test -L"$FLETCHING_LIB_DIR" -lfletching_oracle -lgtest_main -lgtest -pthread',
        runs={"cpp": "exec build/abi_test --gtest_brief=1"},
    ),
    Build(
        prepare="mkdir -p build",
        build=f"{_CXX} -Icpp/producer cpp/tests/event_table.cpp -o build/event_table "
        '-L"$FLETCHING_LIB_DIR" -lfletching_producer -ldl',
        runs={"cpp": "exec build/event_table"},
        kind=EVENTS,
        libraries="standin",
    ),
)

LANGUAGES = ("cpp", "rust", "go", "java-jna", "java-ffm", "python")
