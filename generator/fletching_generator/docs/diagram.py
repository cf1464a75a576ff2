"""The state diagrams of the async stream: one picture per side, as SVG.

The positions of states and lanes are set here; the arrows are from the table.
"""

from __future__ import annotations

from ..async_stream.table import Side, SideName
from ..errors import UsageError
from ..render import Filters, Output
from ..spec.model import Spec
from .drawing import BOX, TEXT, Arrow, Picture, Place, Plan, draw, head, path

PLANS: dict[SideName, Plan] = {
    "producer": Plan(
        places={
            "created": Place(0, 0, "main"),
            "schema": Place(0, 1, "main"),
            "in_schema": Place(0, 2, "main"),
            "streaming": Place(0, 3, "main"),
            "in_task": Place(1, 4, "main"),
            "in_end": Place(0, 5, "main"),
            "stopping": Place(1, 6, "cancel"),
            "cancelled": Place(1, 7, "cancel"),
            "error_in_call": Place(1, 8, "failure"),
            "error_pending": Place(1, 9, "failure"),
            "in_error": Place(1, 10, "failure"),
            "failed": Place(1, 11, "failure"),
            "refused": Place(1, 12, "refusal"),
            "ended": Place(0, 12, "main"),
            "in_release": Place(0, 13, "release"),
            "released": Place(0, 14, "release"),
        },
        between=("in_release", "error_pending", "cancelled", "streaming", "in_task"),
        right=("stopping", "error_in_call", "refused"),
    ),
    "consumer": Plan(
        places={
            "created": Place(0, 0, "main"),
            "streaming": Place(0, 1, "main"),
            "cancelled_early": Place(1, 2, "cancel"),
            "cancelled": Place(1, 3, "cancel"),
            "broken": Place(1, 4, "failure"),
            "ended": Place(0, 5, "main"),
            "failed": Place(1, 6, "failure"),
            "refused": Place(1, 7, "refusal"),
            "releasing": Place(1, 8, "release"),
            "released": Place(0, 9, "release"),
        },
        between=("broken", "cancelled", "cancelled_early", "ended"),
        right=("failed", "refused", "releasing", "released"),
    ),
}


def outputs(spec: Spec) -> list[Output]:
    return [
        Output(
            f"docs/reference/{diagram_name(side)}",
            "state_diagram.svg",
            "spec/async.yaml",
            {
                "side": side,
                "picture": diagram(side, PLANS[side.name]),
                "box_width": BOX,
                "text_height": TEXT,
            },
        )
        for side in spec.async_table.sides
    ]


def diagram_name(side: Side) -> str:
    return f"async-{side.name}.svg"


def diagram(side: Side, plan: Plan) -> Picture:
    all_arrows = arrows(side)
    sideways = {a.end for a in all_arrows if not plan.straight(a)}
    _demand(side, "place", side.states.keys() - plan.places.keys())
    _demand(side, "lane", sideways - {*plan.between, *plan.right})
    return draw(plan, all_arrows)


def arrows(side: Side) -> list[Arrow]:
    """The transitions from one state to another, without those that keep the state."""
    events: dict[tuple[str, str], list[str]] = {}
    for cell in side.possible:
        for case in cell.cases:
            names = events.setdefault((cell.state, case.next), [])
            if cell.event not in names:
                names.append(cell.event)
    return [Arrow(*ends, tuple(names)) for ends, names in events.items() if ends[0] != ends[1]]


def _demand(side: Side, what: str, missing: set[str]) -> None:
    if missing:
        raise UsageError(
            f"the diagram of the {side.name} has no {what} for {', '.join(sorted(missing))};"
            f" add it to PLANS in generator/fletching_generator/docs/diagram.py"
        )


FILTERS: Filters = {"head": head, "path": path}
