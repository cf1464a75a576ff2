"""The commands that build and run each language's oracle test in a scratch tree.

They come from language.toml and are a subset of the tests in `make test`: bash, in the language's
home in the scratch tree, with FLETCHING_LIB_DIR set to the folder of the good oracle and ROOT to
the repository.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "tools"))

import languages
from languages import Environment, Probe
from mutations import ABI


@dataclass(frozen=True)
class Build:
    prepare: str  # once per scratch tree
    build: str  # after every change; fails if the declarations do not compile
    runs: Mapping[str, str]  # by column; each exits with `failed` if a check fails
    failed: int  # exit code of a test that ran and failed
    kind: str  # kind of mutants to try
    libraries: str  # folder of the vendors' libraries, below the good oracle's
    folder: str  # home of the language
    environment: Environment

    @property
    def name(self) -> str:
        return f"{next(iter(self.runs))}{'' if self.kind == ABI else f'-{self.kind}'}"


def builds(known: Mapping[str, languages.Language]) -> tuple[Build, ...]:
    return tuple(
        Build(
            mutants.prepare,
            mutants.build,
            mutants.runs,
            mutants.failed,
            mutants.kind,
            mutants.libraries,
            home.folder,
            home.environment,
        )
        for home in known.values()
        for mutants in home.mutants
    )


def probes(known: Mapping[str, languages.Language]) -> dict[str, Probe]:
    """The programs that print the names of device types, by column."""
    found = languages.columns(known)
    return {name: column.probe for name, (_, column) in found.items() if column.probe}


def used(known: Mapping[str, languages.Language]) -> list[Path]:
    """Files of the repository that the tests need in order to build."""
    each = (file for home in known.values() for mutants in home.mutants for file in mutants.uses)
    return [languages.ROOT / file for file in dict.fromkeys(each)]


HOMES = languages.load()
BUILDS = builds(HOMES)
LANGUAGES = tuple(name for build in BUILDS if build.kind == ABI for name in build.runs)
