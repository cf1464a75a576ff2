"""Cells: the reports of the round-trip programs, one JSON object per line (README.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

NOT_SUPPORTED = "not-supported"
STATUSES = ("real", "stand-in", "absent", NOT_SUPPORTED)
# The order of the columns in the matrix.
STRUCT_DIRECTIONS = ("layout", "c_writes", "c_verifies", "c_calls", "c_is_called")
CASE_DIRECTIONS = ("array", "stream", "stream_failure")
PEER_DIRECTIONS = ("array", "import")
# Directions that only device cells have.
DEVICE_DIRECTIONS = ("async", "async_control", "async_failure", "async_failure_control", "chain")
# Groups of the conformance suite that play the corpus and the hostile peer.
CORPUS_DIRECTIONS = (
    *("schemas", "arrays", "children", "array-consumers"),
    *("streams", "device-streams", "stream-consumers"),
    *("tensors", "legacy-tensors", "receivers", "senders"),
)
CONSTANTS = "constants"  # the macros, reported like a struct with the direction "layout"


class CellError(ValueError):
    """A line that is not a cell; the message gives the reason."""


@dataclass(frozen=True)
class Key:
    """The subject of a cell; a language reports each at most once."""

    language: str  # "java-ffm"
    backend: str  # "none" for a struct, "cpu" for a case, "opencl" for one on a device
    struct: str  # "ArrowSchema", or empty
    case: str  # "int32", or empty
    peer: str  # "pyarrow", or empty
    direction: str  # "c_writes"

    def __str__(self) -> str:
        on = self.backend if self.is_device else ""
        subject = " ".join(part for part in (on, self.struct, self.peer, self.case) if part)
        return f"{self.language}: {subject} {self.direction}"

    @property
    def is_device(self) -> bool:
        """Whether it is a device cell (devices.py)."""
        return bool(self.case) and (self.backend != "cpu" or self.direction in DEVICE_DIRECTIONS)

    @property
    def is_corpus(self) -> bool:
        """Whether it is a corpus cell (corpus.py)."""
        return self.direction in CORPUS_DIRECTIONS


def struct_key(language: str, struct: str, direction: str) -> Key:
    return Key(language, "none", struct, "", "", direction)


def case_key(language: str, case: str, direction: str) -> Key:
    return Key(language, "cpu", "", case, "", direction)


def corpus_key(language: str, group: str, case: str) -> Key:
    return Key(language, "cpu", "", case, "", group)


def device_key(language: str, backend: str, case: str, direction: str) -> Key:
    return Key(language, backend, "", case, "", direction)


def peer_key(language: str, peer: str, case: str, direction: str) -> Key:
    return Key(language, "cpu", "", case, peer, direction)


@dataclass(frozen=True)
class Cell:
    key: Key
    status: str  # one of STATUSES
    reason: str  # why it is absent or not supported, or the failure; empty otherwise
    asserted: int  # number of comparisons
    releases: int  # number of structs released by the language's callbacks
    ok: bool

    def as_json(self) -> dict[str, Any]:
        """The JSON object described in the README, without empty optional keys."""
        optional = ("struct", "case", "peer")
        subject = {k: v for k, v in asdict(self.key).items() if v or k not in optional}
        rest = {k: v for k, v in asdict(self).items() if k != "key"}
        return subject | rest


_FIELDS: dict[str, type] = {
    "language": str,
    "backend": str,
    "direction": str,
    "status": str,
    "reason": str,
    "asserted": int,
    "releases": int,
    "ok": bool,
}
_SUBJECTS = (("struct",), ("case",), ("case", "peer"))


def parse_cell(line: str) -> Cell:
    """Parses one line of a cells file. Raises CellError."""
    try:
        found = json.loads(line)
    except ValueError as error:
        raise CellError(f"not JSON ({error})") from error
    if not isinstance(found, dict):
        raise CellError("not a JSON object")
    for name, kind in _FIELDS.items():
        if type(found.get(name)) is not kind:
            raise CellError(f"'{name}' is missing or not of type {kind.__name__}")
    subject = tuple(sorted(found.keys() - _FIELDS.keys()))
    if subject not in _SUBJECTS or not all(found[k] and isinstance(found[k], str) for k in subject):
        raise CellError(
            f"names {', '.join(subject) or 'no subject'}, not one of struct, case, peer"
        )
    if found["status"] not in STATUSES:
        raise CellError(f"status '{found['status']}' is none of {', '.join(STATUSES)}")
    if found["asserted"] < 0 or found["releases"] < 0:
        raise CellError("asserted and releases are counts, and may not be negative")
    names = ("struct", "case", "peer")
    struct, case, peer = (found.get(name, "") for name in names)
    key = Key(found["language"], found["backend"], struct, case, peer, found["direction"])
    return Cell(
        key, found["status"], found["reason"], found["asserted"], found["releases"], found["ok"]
    )


# --- Writing -----------------------------------------------------------------------------------


@dataclass
class Checks:
    """The comparisons of one cell."""

    asserted: int = 0
    releases: int = 0
    problems: list[str] = field(default_factory=list)

    def expect(self, right: bool, problem: str | Callable[[], str]) -> bool:
        """Counts a comparison. `problem` describes the difference."""
        self.asserted += 1
        if not right:
            self.problems.append(problem if isinstance(problem, str) else problem())
        return right

    def equal(self, found: object, expected: object, what: str) -> bool:
        return self.expect(found == expected, f"{what} is {found!r}, expected {expected!r}")


@contextmanager
def reporting(key: Key, limit: str = "") -> Iterator[Checks]:
    """Runs the body's checks and reports their cell, even if the body raises.

    `limit`: why the cell is not supported; the checks were about that reason.
    """
    checks = Checks()
    try:
        yield checks
    except Exception as error:
        checks.problems.append(f"{type(error).__name__}: {error}")
    if checks.asserted == 0:
        checks.problems.append("nothing was compared")
    status = "absent" if limit else "real"
    reason = "; ".join(checks.problems) or limit
    append(Cell(key, status, reason, checks.asserted, checks.releases, not checks.problems))


def append(cell: Cell) -> None:
    """Appends the cell to the file in $FLETCHING_CELLS, if that is set."""
    path = os.environ.get("FLETCHING_CELLS")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps(cell.as_json()) + "\n")
