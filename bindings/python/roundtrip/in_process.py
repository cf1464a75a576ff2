"""The way through Python for tests/roundtrip/transits.py."""

from __future__ import annotations

import transit
from fletching.abi import ArrowDeviceArray, ArrowSchema


class PythonTransit:
    """Arguments are addresses; send gives the text of an error."""

    def send(self, schema: int, array: int, out_schema: int, out_array: int) -> str:
        try:
            transit.pass_array_on(
                ArrowSchema.from_address(schema),
                ArrowDeviceArray.from_address(array),
                ArrowSchema.from_address(out_schema),
                ArrowDeviceArray.from_address(out_array),
            )
        except Exception as error:
            return str(error)
        return "; ".join(transit.counts.problems)

    def exported(self) -> int:
        return transit.counts.exported

    def released(self) -> int:
        return transit.counts.released


def load(column: str) -> PythonTransit:
    """`column`: there is only one."""
    return PythonTransit()
