"""The async traces as JSON, one file for each side; made by `fletching traces`, not committed."""

from __future__ import annotations

import json
from typing import Any

from ..render import Filters, Output
from ..spec.model import Spec
from .traces import side_traces


def outputs(spec: Spec) -> list[Output]:
    return [
        Output(
            f"{side.name}.json",
            "traces.json",
            "spec/async.yaml",
            {"side": side.name, "traces": side_traces(spec.async_table, side.name)},
        )
        for side in spec.async_table.sides
    ]


def as_json(value: Any) -> str:
    return json.dumps(value)


FILTERS: Filters = {"json": as_json}
