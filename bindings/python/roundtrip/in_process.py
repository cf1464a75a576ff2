"""The way through Python for tests/roundtrip/transits.py."""

from __future__ import annotations

import sys
from pathlib import Path

from fletching import abi
from fletching.abi import ArrowDeviceArray, ArrowSchema

sys.path.append(str(Path(__file__).parents[1] / "tests"))  # has the capsules
import reexport


class PythonTransit:
    """Arguments are addresses; send returns the text of an error."""

    def send(self, schema: int, array: int, out_schema: int, out_array: int) -> str:
        source = ArrowSchema.from_address(schema), ArrowDeviceArray.from_address(array)
        try:
            exported = reexport.export_array(reexport.import_array(*source))
        except Exception as error:
            return str(error)
        abi.move(exported[0], ArrowSchema.from_address(out_schema))
        abi.move(exported[1], ArrowDeviceArray.from_address(out_array))
        return ""

    def exported(self) -> int:
        return reexport.counts.hooked

    def released(self) -> int:
        return reexport.counts.released


def load(column: str) -> PythonTransit:
    """`column`: there is only one."""
    return PythonTransit()
