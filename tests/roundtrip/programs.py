"""What the round trip runs, language by language: plain data for roundtrip.py.

Commands run in bash, from the folder named, with FLETCHING_LIB_DIR and FLETCHING_CELLS set. The
native libraries are there already (`make build`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cells import Key


@dataclass(frozen=True)
class Command:
    line: str  # "cargo test --offline"
    folder: str = "."  # "bindings/rust", relative to the repository
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Language:
    needs: str  # a command that succeeds when the toolchain is there; it prints nothing then
    mend: str  # what to say when it does not succeed
    abi: Command  # the ABI tests against the oracle
    cases: Command  # the round trip with the reference producer
    peers: Command  # the round trip with pyarrow and nanoarrow
    devices: Command | None = None  # every backend; once set, each of its cells has to be there
    device_directions: Sequence[str] | None = None  # those of the command; None: all that there are

    def has(self, key: Key) -> bool:
        """Whether there is a program for the cell."""
        if not key.is_device:
            return True
        directions = self.device_directions
        return self.devices is not None and (directions is None or key.direction in directions)


_PYTHON = {"PYTHONPATH": "bindings/python/src"}
_RUST = {"CARGO_TARGET_DIR": "../../build/rust"}


def _peers(language: str) -> Command:
    return Command(f".venv/bin/python tests/roundtrip/peers.py {language}", environment=_PYTHON)


def _java(flavor: str, jdk: str, options: str = "") -> Language:
    """`flavor`: "jna" or "ffm"; `jdk`: the least version."""
    java = (
        f'"$(tools/find-jdk {jdk})/bin/java" {options} -cp "$(cat build/java/{flavor}.classpath)"'
    )
    program = f"io.github.fletching.roundtrip.{flavor.capitalize()}Transit"
    return Language(
        needs=f"tools/find-jdk {jdk} >/dev/null && command -v mvn >/dev/null",
        mend=f"a JDK {jdk} or later and Maven are needed",
        abi=Command(
            f"./mvn -B -ntp test -Dtest=AbiTest -pl fletching-{flavor} -am", "bindings/java"
        ),
        cases=Command(f"{java} {program}"),
        peers=_peers(f"java-{flavor}"),
    )


LANGUAGES: dict[str, Language] = {
    "cpp": Language(
        needs="test -x build/cmake/bin/fletching_roundtrip_cpp",
        mend="the C++ programs are not built: run `make build`",
        abi=Command("build/cmake/bin/fletching_abi_test"),
        cases=Command("build/cmake/bin/fletching_roundtrip_cpp"),
        peers=_peers("cpp"),
        devices=Command("build/cmake/bin/fletching_roundtrip_devices_cpp"),
    ),
    "rust": Language(
        needs="command -v cargo >/dev/null",
        mend="cargo is missing: install Rust 1.85 or later",
        abi=Command(
            "cargo test -q --locked -p fletching-testing --test oracle", "bindings/rust", _RUST
        ),
        cases=Command("cargo run -q --locked -p fletching-roundtrip", "bindings/rust", _RUST),
        peers=_peers("rust"),
    ),
    "go": Language(
        needs="command -v go >/dev/null",
        mend="go is missing: install Go 1.26 or later",
        abi=Command("go test -count=1 ./internal/oracle", "bindings/go", {"CGO_ENABLED": "1"}),
        cases=Command("go run .", "bindings/go/roundtrip", {"CGO_ENABLED": "1"}),
        peers=_peers("go"),
    ),
    "java-jna": _java("jna", "17"),
    "java-ffm": _java("ffm", "22", "--enable-native-access=ALL-UNNAMED"),
    "python": Language(
        needs="test -x .venv/bin/pytest",
        mend="the virtual environment .venv is not there: run `make setup`",
        abi=Command("../../.venv/bin/pytest -q tests", "bindings/python"),
        cases=Command(".venv/bin/python bindings/python/roundtrip/main.py", environment=_PYTHON),
        peers=_peers("python"),
        devices=Command(
            ".venv/bin/python bindings/python/roundtrip/devices_main.py", environment=_PYTHON
        ),
        device_directions=("chain",),
    ),
}
