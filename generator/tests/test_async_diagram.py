"""The diagrams of the async stream show the transitions of the table."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from functools import cache

import pytest
from conftest import REPOSITORY

from fletching_generator.async_stream.table import Side
from fletching_generator.docs import diagram as async_diagram
from fletching_generator.errors import UsageError
from fletching_generator.render import render_module
from fletching_generator.spec.load import load_spec

SVG = "{http://www.w3.org/2000/svg}"
CHARACTER = 0.61  # of a monospaced font, as a share of its size, rounded up
SIDES = load_spec(REPOSITORY).async_table.sides
each_side = pytest.mark.parametrize("side", SIDES, ids=[side.name for side in SIDES])

Point = tuple[float, float]


@dataclass(frozen=True)
class Area:
    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Area) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom

    def touches(self, point: Point) -> bool:
        x, y = point
        return self.left <= x <= self.right and self.top <= y <= self.bottom

    def within(self, other: Area) -> bool:
        return other.touches((self.left, self.top)) and other.touches((self.right, self.bottom))


@dataclass(frozen=True)
class Arrow:
    says: str
    way: list[Point]
    label: str
    texts: list[Area]

    @property
    def segments(self) -> list[Area]:
        pairs = itertools.pairwise(self.way)
        return [Area(min(a, c), min(b, d), max(a, c), max(b, d)) for (a, b), (c, d) in pairs]


@cache
def pictures() -> dict[str, str]:
    return render_module(async_diagram, load_spec(REPOSITORY))


def draw(side: Side) -> ET.Element:
    return ET.fromstring(pictures()[f"docs/reference/async-{side.name}.svg"])


def page(picture: ET.Element) -> Area:
    return Area(0, 0, float(picture.get("width", "")), float(picture.get("height", "")))


def boxes(picture: ET.Element) -> dict[str, Area]:
    found = {}
    for group in picture.findall(f"{SVG}g"):
        for rect in group.findall(f"{SVG}rect"):
            x, y, width, height = (float(rect.get(k, "")) for k in ("x", "y", "width", "height"))
            name = group.findtext(f"{SVG}text") or ""
            assert name not in found
            found[name] = Area(x, y, x + width, y + height)
    return found


def arrows(picture: ET.Element) -> list[Arrow]:
    groups = [
        group for group in picture.findall(f"{SVG}g") if group.find(f"{SVG}title") is not None
    ]
    return [arrow(group) for group in groups]


def arrow(group: ET.Element) -> Arrow:
    texts = group.findall(f"{SVG}text")
    return Arrow(
        group.findtext(f"{SVG}title") or "",
        way(next(p.get("d", "") for p in group.findall(f"{SVG}path") if p.get("class") == "way")),
        " ".join(text.text or "" for text in texts),
        [area(text, 11) for text in texts],
    )


def way(path: str) -> list[Point]:
    """The corners of a path: where a rounding bends, and the two ends."""
    numbers = [float(number) for number in re.findall(r"[\d.]+", path)]
    points = list(zip(numbers[::2], numbers[1::2], strict=True))
    return [points[0], *points[2:-1:3], points[-1]]


def area(text: ET.Element, size: float) -> Area:
    x, y = float(text.get("x", "")), float(text.get("y", ""))
    width = len(text.text or "") * size * CHARACTER
    left = x - width if text.get("text-anchor") == "end" else x
    return Area(left, y - size * 0.8, left + width, y + size * 0.2)


def expected(side: Side) -> dict[tuple[str, str], set[str]]:
    """The transitions between states, from the cells alone."""
    found: dict[tuple[str, str], set[str]] = {}
    for (state, event), cell in side.cells.items():
        for case in cell.cases:
            if case.next != state:
                found.setdefault((state, case.next), set()).add(event)
    return found


def ends(arrow: Arrow, places: dict[str, Area]) -> tuple[str, str]:
    """The states that the way touches where it begins and where it ends."""
    start, end = (
        [state for state, box in places.items() if box.touches(point)]
        for point in (arrow.way[0], arrow.way[-1])
    )
    assert (len(start), len(end)) == (1, 1), arrow.says
    return start[0], end[0]


@each_side
def test_every_state_has_a_place_and_none_is_stale(side: Side) -> None:
    plan = async_diagram.PLANS[side.name]
    assert set(plan.places) == set(side.states) == set(boxes(draw(side)))
    lanes = [*plan.between, *plan.right]
    drawn = [a for a in async_diagram.arrows(side) if not plan.straight(a)]
    assert sorted(lanes) == sorted({arrow.end for arrow in drawn})


@each_side
def test_no_two_states_overlap(side: Side) -> None:
    picture = draw(side)
    places = boxes(picture)
    for (one, box), (other, second) in itertools.combinations(places.items(), 2):
        assert not box.overlaps(second), f"{one} and {other}"
    assert all(box.within(page(picture)) for box in places.values())


@each_side
def test_every_transition_is_drawn_and_labeled(side: Side) -> None:
    picture = draw(side)
    places = boxes(picture)
    drawn = {ends(arrow, places): set(arrow.label.split(", ")) for arrow in arrows(picture)}
    assert drawn == expected(side)
    assert len(arrows(picture)) == len(drawn)
    for arrow in arrows(picture):
        assert arrow.says == "{} to {}: ".format(*ends(arrow, places)) + arrow.label


@each_side
def test_arrows_run_upright_and_through_no_state(side: Side) -> None:
    picture = draw(side)
    places = boxes(picture)
    for arrow in arrows(picture):
        for segment in arrow.segments:
            assert segment.left == segment.right or segment.top == segment.bottom, arrow.says
            assert segment.within(page(picture)), arrow.says
            crossed = [state for state, box in places.items() if segment.overlaps(box)]
            assert not crossed, f"{arrow.says} runs through {crossed}"


@each_side
def test_arrows_share_their_way_only_to_the_same_state(side: Side) -> None:
    picture = draw(side)
    places = boxes(picture)
    for one, other in itertools.combinations(arrows(picture), 2):
        if ends(one, places)[1] != ends(other, places)[1]:
            for a, b in itertools.product(one.segments, other.segments):
                assert not runs_along(a, b), f"{one.says} overlaps {other.says}"


def runs_along(one: Area, other: Area) -> bool:
    upright = one.left == one.right == other.left == other.right
    level = one.top == one.bottom == other.top == other.bottom
    if upright:
        return one.top < other.bottom and other.top < one.bottom
    return level and one.left < other.right and other.left < one.right


@each_side
def test_labels_are_in_the_picture_and_on_nothing(side: Side) -> None:
    picture = draw(side)
    places, drawn = boxes(picture), arrows(picture)
    labels = [(arrow, text) for arrow in drawn for text in arrow.texts]
    for arrow, text in labels:
        assert text.within(page(picture)), arrow.says
        assert not any(text.overlaps(box) for box in places.values()), arrow.says
        for other in drawn:
            assert not any(text.overlaps(segment) for segment in other.segments), (
                f"the label of {arrow.says} overlaps {other.says}"
            )
    for (one, text), (other, second) in itertools.combinations(labels, 2):
        assert not text.overlaps(second), f"{one.says}, {other.says}"


@each_side
def test_the_picture_is_described_in_words(side: Side) -> None:
    picture = draw(side)
    assert side.name in (picture.findtext(f"{SVG}title") or "")
    words = picture.findtext(f"{SVG}desc") or ""
    assert words.startswith(f"It begins in {side.start} and ends in {', '.join(side.terminal)}.")
    assert all(arrow.says in words for arrow in arrows(picture))


def test_light_and_dark_without_script_or_network() -> None:
    for text in pictures().values():
        assert "prefers-color-scheme: dark" in text
        assert "<script" not in text and "href" not in text
        assert text.count("http") == 1, "the SVG namespace alone"


@each_side
def test_a_state_without_a_place_or_a_lane_is_named(side: Side) -> None:
    plan = async_diagram.PLANS[side.name]
    wanting = dict(plan.places)
    del wanting["cancelled"]
    with pytest.raises(UsageError, match=f"{side.name} has no place for cancelled; add it to"):
        async_diagram.diagram(side, replace(plan, places=wanting))
    with pytest.raises(UsageError, match=f"{side.name} has no lane for .*refused"):
        async_diagram.diagram(side, replace(plan, right=()))
