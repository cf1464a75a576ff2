"""The async traces as JSON, one file per side, written by `fletching traces` and not committed."""

from __future__ import annotations

import json
from typing import Any

from ..render import Filters, Output
from .table import AsyncTable
from .traces import side_traces


def outputs(table: AsyncTable) -> list[Output]:
    return [
        Output(
            f"{side.name}.json",
            "traces.json",
            "spec/async.yaml",
            {"side": side.name, "traces": side_traces(table, side.name)},
        )
        for side in table.sides
    ]


def as_json(value: Any) -> str:
    return json.dumps(value)


FILTERS: Filters = {"json": as_json}
