"""Selects the mutants that a run tries."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from mutant import Mutant

SEED = 18


@dataclass(frozen=True)
class Stratum:
    name: str
    files: str  # regular expression for the whole path
    count: int
    may_survive: bool = True  # within the limit's share


_HEADERS = r"cpp/include/fletching/(?:detail/ownership/)?"
# The first match counts. Code that frees memory, waits or reads foreign structs allows no survivor.
STRATA = (
    Stratum("owner", _HEADERS + r"owner\.hpp", 16, False),
    Stratum("hook", _HEADERS + r"hook\.hpp", 12, False),
    Stratum("event", _HEADERS + r"(?:event_\w+|export_event|release_after)\.hpp", 20, False),
    Stratum("tensors", r"cpp/core/tensor_.*", 24),
    Stratum("core", r"cpp/core/.*", 40),
    Stratum("headers", r"cpp/include/(?!.*/async[_/]).*", 66),
    Stratum("libfletching", r"cpp/src/.*", 12),
    Stratum("generator", r"generator/.*", 32),
    Stratum("async", r"cpp/include/fletching/(?:async_|detail/async/)\w+\.hpp", 40, False),
)


def stratum_of(mutant: Mutant) -> Stratum:
    return next(stratum for stratum in STRATA if re.fullmatch(stratum.files, mutant.file))


def rank(mutant: Mutant) -> str:
    """A hash of the mutant and the seed, so that changes elsewhere do not affect the sample."""
    return hashlib.sha256(f"{SEED} {mutant.key}".encode()).hexdigest()


def sample(mutants: Sequence[Mutant]) -> list[Mutant]:
    """The sample of each stratum, in the order of the strata."""
    ranked = sorted(mutants, key=rank)
    chosen = []
    for stratum in STRATA:
        own = [mutant for mutant in ranked if stratum_of(mutant) is stratum]
        chosen += own[: stratum.count]
    return chosen


def few(mutants: Sequence[Mutant], count: int) -> list[Mutant]:
    """Interleaves the strata of a sample: the first of each, then the second of each."""
    columns: dict[str, int] = {}
    places: list[tuple[int, int, Mutant]] = []
    for mutant in mutants:
        name = stratum_of(mutant).name
        places.append((columns.setdefault(name, 0), len(places), mutant))
        columns[name] += 1
    return [mutant for _, _, mutant in sorted(places, key=lambda p: p[:2])[:count]]
