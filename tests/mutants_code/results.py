"""The results of a language's mutants, and the selection for a run (README.md, "Languages"). The
`mutants.py` of each language writes them, and language_mutants.py checks them."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

KILLED, SURVIVED, NO_BUILD = "killed", "survived", "does not compile"

Key = tuple[str, str, int]
Result = tuple[str, str]  # one of the above, and the test that detected the mutant


@dataclass(frozen=True)
class Mutant:
    file: str  # "src/owner.rs"
    line: int
    change: str  # in the tool's words: "replace + with - in layout"
    nth: int  # among equal changes in the file

    @property
    def key(self) -> Key:
        """Has no line number, so that it is stable when other lines move."""
        return self.file, self.change, self.nth

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}: {self.change}"


class Ranked(Protocol):
    @property
    def file(self) -> str: ...
    @property
    def key(self) -> Key | str: ...


M = TypeVar("M", bound=Ranked)
Own = TypeVar("Own", bound=Mutant)


def sample(
    mutants: Sequence[M], counts: Mapping[int, int], comes_last: Callable[[M], bool] | None = None
) -> list[M]:
    """Takes up to `counts[seed]` mutants of each file for each seed. A hash of the mutant decides,
    so that changes elsewhere do not affect the sample."""
    taken: set[M] = set()
    for seed, most in counts.items():

        def rank(mutant: M, seed: int = seed) -> tuple[bool, str]:
            digest = hashlib.sha256(f"{seed} {mutant.key}".encode()).hexdigest()
            return comes_last is not None and comes_last(mutant), digest

        of_file: Counter[str] = Counter()
        for mutant in sorted(mutants, key=rank):
            of_file[mutant.file] += 1
            if of_file[mutant.file] <= most:
                taken.add(mutant)
    return [mutant for mutant in mutants if mutant in taken]


def requested(mutants: Sequence[M]) -> list[M]:
    """The mutants of files that match $FILES."""
    return [m for m in mutants if re.search(os.environ.get("FILES", ""), m.file)]


def kept() -> dict[Key, Result]:
    """The earlier results if $KEEP is set."""
    path = Path(os.environ["RESULTS"])
    if not os.environ.get("KEEP") or not path.is_file():
        return {}
    entries = json.loads(path.read_text(encoding="utf-8"))["mutants"]
    return {
        (e["file"], e["change"], e["nth"]): (e["result"], e["text"]) for e in entries if e["result"]
    }


def untried(mutants: Sequence[Own], found: Mapping[Key, Result]) -> list[Own]:
    """The mutants to try: survivors are tried again."""
    return [m for m in mutants if found.get(m.key, (SURVIVED, ""))[0] == SURVIVED]


def write(tool: str, mutants: Iterable[Mutant], found: Mapping[Key, Result]) -> None:
    """Writes every mutant to $RESULTS. Mutants missing in `found` were not tried."""
    entries = []
    for mutant in mutants:
        result, text = found.get(mutant.key, ("", ""))
        own = {name: getattr(mutant, name) for name in ("file", "line", "change", "nth")}
        entries.append({**own, "result": result, "text": text})
    path = Path(os.environ["RESULTS"])
    table = {"tool": tool, "mutants": entries}
    path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
