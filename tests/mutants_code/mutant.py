"""Mechanical changes of a source, as insertions: all of them are in one build, and the environment
chooses one (mutant schemata)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Mutant:
    """`open` goes before bytes `begin` to `end`, and `close` behind them. "@NUMBER@" in `open` is
    the number that chooses it."""

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
    nth: int = 1  # of those that are the same but for their place

    @property
    def key(self) -> str:
        """Without line numbers, so that it stays when other lines move."""
        parts = (self.file, self.function, self.kind, self.before, self.after, str(self.nth))
        return " | ".join(parts)

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def distinct(mutants: Iterable[Mutant]) -> list[Mutant]:
    """In the order of the files, each once, however many translation units have read a header."""
    once = {(m.file, m.begin, m.end, m.kind, m.after): m for m in mutants}
    counts: Counter[str] = Counter()
    numbered = []
    for mutant in sorted(once.values(), key=lambda m: (m.file, m.begin, -m.end, m.kind, m.after)):
        counts[mutant.key] += 1
        numbered.append(replace(mutant, nth=counts[mutant.key]))
    return numbered


@dataclass(frozen=True)
class Placed:
    """Where a mutant is in the text with all of them."""

    begin: int
    end: int
    mutant: Mutant


def insert(text: bytes, chosen: Sequence[tuple[int, Mutant]]) -> tuple[bytes, list[Placed]]:
    """The text with these mutants of one file, each with the number that chooses it. No line of it
    moves."""
    opened: list[tuple[Mutant, int]] = []  # with the place in the new text; the inner ones last
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
        number, mutant = item  # a statement is around the expression that it is made of
        return mutant.begin, -mutant.end, mutant.kind not in ("statement", "exit"), number

    for number, mutant in sorted(chosen, key=nesting):
        advance(mutant.begin)
        opened.append((mutant, written))
        write(mutant.open.replace("@NUMBER@", str(number)).encode())
    advance(len(text))
    return b"".join(pieces), placed
