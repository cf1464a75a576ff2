"""Mechanical changes of a source as insertions. One build contains all of them, and the environment
selects one (mutant schemata)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Mutant:
    """`open` is inserted before the bytes `begin` to `end`, and `close` after them. "@NUMBER@" in
    `open` becomes the mutant's number."""

    file: str  # "cpp/include/fletching/owner.hpp"
    begin: int
    end: int
    line: int
    column: int
    kind: str  # "relation"
    function: str  # "Owner::take_child"
    before: str
    after: str
    open: str
    close: str
    nth: int = 1  # among mutants that differ only in their position

    @property
    def key(self) -> str:
        """Has no line numbers, so that it is stable when other lines move."""
        parts = (self.file, self.function, self.kind, self.before, self.after, str(self.nth))
        return " | ".join(parts)

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def distinct(mutants: Iterable[Mutant]) -> list[Mutant]:
    """Sorts by file and removes duplicates from headers read by several translation units."""
    once = {(m.file, m.begin, m.end, m.kind, m.after): m for m in mutants}
    counts: Counter[str] = Counter()
    numbered = []
    for mutant in sorted(once.values(), key=lambda m: (m.file, m.begin, -m.end, m.kind, m.after)):
        counts[mutant.key] += 1
        numbered.append(replace(mutant, nth=counts[mutant.key]))
    return numbered


@dataclass(frozen=True)
class Placed:
    """The position of a mutant in the text with all mutants."""

    begin: int
    end: int
    mutant: Mutant


def insert(text: bytes, chosen: Sequence[tuple[int, Mutant]]) -> tuple[bytes, list[Placed]]:
    """Inserts these mutants of one file, each with its number. No line moves."""
    opened: list[tuple[Mutant, int]] = []  # with positions in the new text, innermost last
    pieces: list[bytes] = []
    placed: list[Placed] = []
    written = done = 0

    def write(piece: bytes) -> None:
        nonlocal written
        pieces.append(piece)
        written += len(piece)

    def advance(to: int) -> None:
        nonlocal done
        while opened and opened[-1][0].end <= to:
            mutant, begin = opened.pop()
            write(text[done : mutant.end])
            done = mutant.end
            write(mutant.close.encode())
            placed.append(Placed(begin, written, mutant))
        write(text[done:to])
        done = to

    def nesting(item: tuple[int, Mutant]) -> tuple[int, int, bool, int]:
        number, mutant = item  # a statement encloses the expression that it consists of
        return mutant.begin, -mutant.end, mutant.kind not in ("statement", "exit"), number

    for number, mutant in sorted(chosen, key=nesting):
        advance(mutant.begin)
        opened.append((mutant, written))
        write(mutant.open.replace("@NUMBER@", str(number)).encode())
    advance(len(text))
    return b"".join(pieces), placed
