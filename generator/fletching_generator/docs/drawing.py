"""The geometry of a state diagram: boxes, and arrows that run along the page and up and down.

Two columns of states: the way that goes well, and beside it what may come between. An arrow to the
next state of the same column goes straight down. Every other one leaves its state sideways, at a
height of its own, and joins the lane of the state that it points to.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

# Pixels. A character of the monospaced font is about 0.6 of its size wide.
BOX = 104
TOP = 92
MARGIN = 20
ROW_GAP = 34
LANE = 15
TEXT = 13
CHARACTER = 6.6
LABEL = 25  # characters in a line of a label

Kind = Literal["main", "cancel", "failure", "refusal", "release"]
Point = tuple[int, int]


@dataclass(frozen=True)
class Place:
    column: Literal[0, 1]
    row: int  # a row with an arrow that passes through the other column is its own
    kind: Kind  # the color of the state, and of the arrows to it


@dataclass(frozen=True)
class Arrow:
    start: str  # "streaming"
    end: str  # "error_pending"
    events: tuple[str, ...]  # ("request_invalid", "extract_fails", "failure")

    @property
    def says(self) -> str:
        return f"{self.start} to {self.end}: {', '.join(self.events)}"

    @property
    def text(self) -> list[str]:
        return textwrap.wrap(", ".join(self.events), LABEL, break_long_words=False)


@dataclass(frozen=True)
class Plan:
    """The manual layout: the states, and the lanes from left to right."""

    places: Mapping[str, Place]
    between: tuple[str, ...]  # the states whose lane is between the columns
    right: tuple[str, ...]  # the states whose lane is right of both

    def straight(self, arrow: Arrow) -> bool:
        """Whether the arrow points to the next state of the same column."""
        start, end = self.places.get(arrow.start), self.places.get(arrow.end)
        if start is None or end is None or start.column != end.column:
            return False
        rows = [place.row for place in self.places.values() if place.column == start.column]
        return end.row == min((row for row in rows if row > start.row), default=None)

    def leftward(self, arrow: Arrow) -> bool:
        """Whether the arrow leaves its state on the left."""
        return self.places[arrow.start].column == 1 and arrow.end in self.between


@dataclass(frozen=True)
class Box:
    state: str
    kind: Kind
    x: int
    y: int
    height: int


@dataclass(frozen=True)
class Line:
    """An arrow with its way, and where its label begins or, on the left of its state, ends."""

    arrow: Arrow
    kind: Kind
    way: tuple[Point, ...]
    label: Point  # the baseline of the first line
    anchor: Literal["start", "end"] = "start"


@dataclass(frozen=True)
class Picture:
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: int
    height: int


def draw(plan: Plan, arrows: list[Arrow]) -> Picture:
    grid = Grid(plan, arrows)
    boxes = tuple(grid.box(state) for state in plan.places)
    return Picture(boxes, tuple(grid.line(arrow) for arrow in arrows), grid.width, grid.height)


class Grid:
    """Where things are: the columns, the lanes, and a height for each line that runs sideways."""

    def __init__(self, plan: Plan, arrows: list[Arrow]) -> None:
        self.plan = plan
        self.sideways = [arrow for arrow in arrows if not plan.straight(arrow)]
        out = int(LABEL * CHARACTER) + 12  # room for the labels on the right of a state
        left = [len(a.text[0]) for a in self.sideways if plan.leftward(a)]
        back = int(max(left, default=0) * CHARACTER) + 12
        self.columns = MARGIN, MARGIN + BOX + out + len(plan.between) * LANE + back
        self.lanes = {
            state: x + BOX + out + index * LANE
            for x, states in zip(self.columns, (plan.between, plan.right), strict=True)
            for index, state in enumerate(states)
        }
        self.levels: dict[Arrow | str, int] = {}  # of an arrow's way out, of all ways into a state
        self.rows: list[tuple[int, int]] = []  # top and height
        top = TOP
        for row in range(1 + max(place.row for place in plan.places.values())):
            height = self._row(row, top)
            self.rows.append((top, height))
            top += height + ROW_GAP
        self.width = max(self.lanes.values()) + MARGIN
        self.height = top - ROW_GAP + MARGIN

    def _row(self, row: int, top: int) -> int:
        """Assigns a height to each line that begins or ends in the row; returns its height."""
        places = self.plan.places
        out = [arrow for arrow in self.sideways if places[arrow.start].row == row]
        # The nearest lane takes the lowest line, so that the ways down do not cross.
        out.sort(key=lambda a: self.lanes[a.end] * (1 if self.plan.leftward(a) else -1))
        into = {a.end: a.start for a in self.sideways if places[a.end].row == row}
        from_above = [end for end, start in into.items() if places[start].row < row]
        from_below = [end for end in into if end not in from_above]
        keys: list[Arrow | str] = [*from_above, *out, *from_below]
        level = top + 4
        for key in keys:
            level += 8 + TEXT * (len(key.text) if isinstance(key, Arrow) else 1)
            self.levels[key] = level
        return max(level + 12 - top, ROW_GAP)

    def box(self, state: str) -> Box:
        place = self.plan.places[state]
        top, height = self.rows[place.row]
        return Box(state, place.kind, self.columns[place.column], top, height)

    def line(self, arrow: Arrow) -> Line:
        start, end = self.box(arrow.start), self.box(arrow.end)
        if arrow not in self.sideways:
            x, y = start.x + BOX // 2, start.y + start.height
            return Line(arrow, end.kind, ((x, y), (x, end.y)), (x + 8, y + 19))
        lane, leave, enter = self.lanes[arrow.end], self.levels[arrow], self.levels[arrow.end]
        out = start.x + (BOX if lane > start.x else 0)
        into = end.x + (BOX if lane > end.x else 0)
        way = ((out, leave), (lane, leave), (lane, enter), (into, enter))
        first = leave - 5 - TEXT * (len(arrow.text) - 1)
        if self.plan.leftward(arrow):
            return Line(arrow, end.kind, way, (out - 7, first), "end")
        return Line(arrow, end.kind, way, (out + 7, first))


def path(way: tuple[Point, ...]) -> str:
    """The way as an SVG path with rounded corners."""
    text = "M{} {}".format(*way[0])
    for before, corner, after in zip(way, way[1:], way[2:], strict=False):
        bend = (*_toward(corner, before), *corner, *_toward(corner, after))
        text += "L{} {}Q{} {} {} {}".format(*bend)
    return text + "L{} {}".format(*way[-1])


def head(way: tuple[Point, ...]) -> str:
    """The arrowhead at the end of the way, as an SVG path."""
    (before, _), (x, y) = way[-2:]
    if x == before:
        return f"M{x} {y}l-4.5 -8h9z"
    return f"M{x} {y}l{8 if x < before else -8} -4.5v9z"


def _toward(start: Point, end: Point) -> Point:
    """Where the rounding of the corner `start` ends on the way to `end`."""
    (x, y), (x1, y1) = start, end
    distance = abs(x1 - x) + abs(y1 - y)
    reach = min(7, distance // 2)
    return x + (x1 - x) * reach // distance, y + (y1 - y) * reach // distance
