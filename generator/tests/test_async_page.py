"""The diagrams of the async stream show every transition of the table."""

from __future__ import annotations

import re

import pytest
from conftest import REPOSITORY

from fletching_generator.async_stream.table import Side
from fletching_generator.docs import async_page
from fletching_generator.render import render_module
from fletching_generator.spec.load import load_spec

SPEC = load_spec(REPOSITORY)
PAGE = render_module(async_page, SPEC)["docs/reference/async.md"]
DIAGRAMS = re.findall(r"```mermaid\nstateDiagram-v2\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(
    ("side", "diagram"),
    list(zip(SPEC.async_table.sides, DIAGRAMS, strict=True)),
    ids=["producer", "consumer"],
)
def test_diagram_has_every_transition(side: Side, diagram: str) -> None:
    drawn = re.findall(r"^    (\w+) --> (\w+) : (.*)$", diagram, re.MULTILINE)
    found = {(start, end, event) for start, end, events in drawn for event in events.split(", ")}
    assert found == {
        (state, case.next, event)
        for (state, event), cell in side.cells.items()
        for case in cell.cases
        if case.next != state
    }
    assert len(drawn) == len({(start, end) for start, end, _ in drawn})
    assert f"    [*] --> {side.start}\n" in diagram
    assert re.findall(r"^    (\w+) --> \[\*\]$", diagram, re.MULTILINE) == list(side.terminal)
