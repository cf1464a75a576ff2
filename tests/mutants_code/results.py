"""The results of the mutants of a language, and which of them a run tries (README.md,
"Languages"). The `mutants.py` of each language writes them, language_mutants.py judges them."""

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
Result = tuple[str, str]  # one of the above, and the test that noticed


@dataclass(frozen=True)
class Mutant:
    file: str  # "src/owner.rs"
    line: int
    change: str  # as the tool says it: "replace + with - in layout"
    nth: int  # of the same change in the file

    @property
    def key(self) -> Key:
        """Without the line, so that it stays when other lines move."""
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
    """By each seed of `counts` at most so many of each file. A hash of what a mutant is decides, so
    that a change elsewhere leaves the sample as it was."""
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
    """Those of the files that $FILES names."""
    return [m for m in mutants if re.search(os.environ.get("FILES", ""), m.file)]


def kept() -> dict[Key, Result]:
    """The earlier results, when $KEEP is set."""
    path = Path(os.environ["RESULTS"])
    if not os.environ.get("KEEP") or not path.is_file():
        return {}
    entries = json.loads(path.read_text(encoding="utf-8"))["mutants"]
    return {
        (e["file"], e["change"], e["nth"]): (e["result"], e["text"]) for e in entries if e["result"]
    }


def untried(mutants: Sequence[Own], found: Mapping[Key, Result]) -> list[Own]:
    """What survived is tried again."""
    return [m for m in mutants if found.get(m.key, (SURVIVED, ""))[0] == SURVIVED]


def write(tool: str, mutants: Iterable[Mutant], found: Mapping[Key, Result]) -> None:
    """Writes every mutant to $RESULTS; what `found` lacks was not tried."""
    entries = []
    for mutant in mutants:
        result, text = found.get(mutant.key, ("", ""))
        own = {name: getattr(mutant, name) for name in ("file", "line", "change", "nth")}
        entries.append({**own, "result": result, "text": text})
    path = Path(os.environ["RESULTS"])
    table = {"tool": tool, "mutants": entries}
    path.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
