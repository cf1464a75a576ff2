"""The programs of the round trip by column, from the language.toml of each home.

Commands run in bash in their folder, with FLETCHING_LIB_DIR, FLETCHING_CELLS, FLETCHING_CHAIN,
FLETCHING_COLUMN and CORPUS set. The native libraries are already built (`make build`).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cells import CORPUS_DIRECTIONS, Key
from libraries import ROOT

sys.path.append(str(ROOT / "tools"))

import languages

# Groups without cells, whose results belong to the program.
PAIRS = ("random-tensors",)
# The peers are Python libraries and access their structs with the package of this repository.
_PEERS = {"PYTHONPATH": "bindings/python/src:tools"}


@dataclass(frozen=True)
class Command:
    line: str  # "cargo test --offline"
    folder: str = "."  # "bindings/rust", relative to the repository
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Language:
    needs: str  # a command that succeeds, without output, if the toolchain exists
    hint: str  # the message if it fails
    abi: Command | None  # the ABI tests against the oracle
    cases: Command | None  # the round trip with the reference producer
    peers: Command | None  # the round trip with pyarrow and nanoarrow
    devices: Command | None = None  # every backend; if set, all its cells must arrive
    device_directions: Sequence[str] | None = None  # directions of the command; None: all
    corpus: Command | None = None  # the groups that play the corpus; if set, all of them
    not_played: Sequence[str] = ()  # groups without a supported case
    folder: str = "."  # working directory of `needs`

    def has(self, key: Key) -> bool:
        """Whether there is a program for the cell."""
        if key.is_corpus:
            return self.corpus is not None
        if not key.is_device:
            return True
        directions = self.device_directions
        return self.devices is not None and (directions is None or key.direction in directions)

    def steps(self) -> dict[str, Command]:
        """The existing commands in the order in which they run."""
        named = {
            "abi": self.abi,
            "cases": self.cases,
            "corpus": self.corpus,
            "peers": self.peers,
            "devices": self.devices,
        }
        return {name: command for name, command in named.items() if command is not None}


def chain(known: Mapping[str, languages.Language]) -> list[str]:
    """The columns that a host can pass an array through inside its process."""
    columns = languages.columns(known)
    return [
        name
        for name, (_, column) in columns.items()
        if column.subject == languages.NATIVE and column.devices
    ]


def programs(known: Mapping[str, languages.Language]) -> dict[str, Language]:
    """The programs by column."""
    shared = {
        "FLETCHING_CHAIN": " ".join(chain(known)),
        "CORPUS": " ".join(f"--group {group}" for group in (*CORPUS_DIRECTIONS, *PAIRS)),
    }

    def entry(home: languages.Language, column: languages.Column) -> Language:
        environment = {**languages.environment(home), **shared, "FLETCHING_COLUMN": column.name}

        def command(line: str) -> Command | None:
            return Command(line, home.folder, environment) if line else None

        peers = Command(f".venv/bin/python tests/roundtrip/peers.py {column.name}", ".", _PEERS)
        return Language(
            needs=column.needs or home.toolchain.check,
            hint=column.hint or home.toolchain.hint,
            abi=command(column.oracle),
            cases=command(column.cases),
            peers=peers if column.subject else None,
            devices=command(column.devices),
            device_directions=column.device_directions or None,
            corpus=command(column.corpus),
            not_played=(home.rules.not_played or ()) if home.rules else (),
            folder=home.folder,
        )

    return {name: entry(*found) for name, found in languages.columns(known).items()}


LANGUAGES = programs(languages.load())
