"""Tests that every sensible change of every cell of the async table is detected."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from async_mutants import (
    EXPLAINED,
    NEVER,
    NO_EFFECT,
    NOT_READ,
    SURVIVED,
    Mutant,
    mutants,
    noticed,
    uses,
)

from fletching_generator.async_stream.table import Side
from fletching_generator.spec.model import Spec

NOT_NOTICED = (NEVER, NO_EFFECT, NOT_READ, SURVIVED)


@pytest.fixture(scope="module", params=["producer", "consumer"])
def judged(request: pytest.FixtureRequest, spec: Spec) -> tuple[Side, list[tuple[Mutant, str]]]:
    side: Side = getattr(spec.async_table, request.param)
    used = uses(side)
    return side, [(m, noticed(side, m, used[m.cell.state, m.cell.event])) for m in mutants(side)]


def report(name: str, verdicts: list[tuple[Mutant, str]]) -> str:
    """Returns for each cell the number of mutants, of detected ones, and of equivalent ones."""
    cells: dict[str, Counter[str]] = defaultdict(Counter)
    for mutant, verdict in verdicts:
        row = cells[f"{mutant.cell.event} in {mutant.cell.state}"]
        row["all"] += 1
        row["noticed"] += verdict not in NOT_NOTICED
        row["same"] += verdict in NOT_NOTICED
    lines = [f"{name}: cell, mutants, noticed, the same machine"]
    lines += [
        f"  {cell:36} {r['all']:4} {r['noticed']:4} {r['same']:4}" for cell, r in cells.items()
    ]
    lines += [f"  {count:5} {why}" for why, count in Counter(v for _, v in verdicts).most_common()]
    return "\n".join(lines)


Judged = tuple[Side, list[tuple[Mutant, str]]]


def test_every_mutant_is_detected_or_explained(judged: Judged) -> None:
    side, verdicts = judged
    print(report(side.name, verdicts))
    survivors = {(side.name, mutant.name) for mutant, verdict in verdicts if verdict == SURVIVED}
    assert survivors == {key for key in EXPLAINED if key[0] == side.name}


def test_every_cell_has_mutants(judged: Judged) -> None:
    side, verdicts = judged
    assert {(mutant.cell.state, mutant.cell.event) for mutant, _ in verdicts} == set(side.cells)
    never = [mutant for mutant, verdict in verdicts if verdict == NEVER]
    assert all(mutant.what == "is possible" for mutant in never), "a possible cell is never used"


def test_wrong_next_state_is_always_detected(judged: Judged) -> None:
    """No cell has an equivalent mutant of its next state, so none may be excused."""
    _, verdicts = judged
    excused = [m.name for m, v in verdicts if v in NOT_NOTICED and "next is" in m.what]
    assert excused == []
