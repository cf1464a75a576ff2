"""The expected findings of `fletching check-header` for each published header, as test data.

Found by running it, and confirmed by reading the header. Every other difference is a failure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

AGREES, REMARKS = "agrees", "agrees, with remarks"


@dataclass(frozen=True)
class Header:
    file: str  # "pyarrow-13.0.0/abi.h": below build/published/; or a name in test_published.PLACES
    interfaces: Mapping[str, str]  # the answer for each declared interface; others are undeclared
    lags: tuple[str, ...] = ()  # macros that it lacks
    exit_code: int = 0
    includes: tuple[str, ...] = ()  # include folders that it needs
    dlpack: str = ""  # version of DLPack, such as "1.3"; the spec may have a later one
    notes: tuple[tuple[str, str], ...] = ()  # subject and text of other findings


# Added to upstream's abi.h between 17 and 21. A header without them is older, not wrong.
_STATISTICS = tuple(
    f"ARROW_STATISTICS_KEY_{key}_{how}"
    for key in (
        "AVERAGE_BYTE_WIDTH",
        "DISTINCT_COUNT",
        "MAX_BYTE_WIDTH",
        "MAX_VALUE",
        "MIN_VALUE",
        "NULL_COUNT",
        "ROW_COUNT",
    )
    for how in ("EXACT", "APPROXIMATE")
)

_ALL = {
    "c-data": AGREES,
    "c-device-data": AGREES,
    "c-stream": AGREES,
    "c-device-stream": AGREES,
    "c-async-stream": AGREES,
}
_DLPACK = {"dlpack": AGREES}
_LAGGING = {**_ALL, "c-data": REMARKS}
_WITHOUT_ASYNC = {name: said for name, said in _LAGGING.items() if name != "c-async-stream"}

HEADERS = {
    "pyarrow 13": Header("pyarrow-13.0.0/abi.h", _WITHOUT_ASYNC, _STATISTICS),
    "pyarrow 17": Header("pyarrow-17.0.0/abi.h", _WITHOUT_ASYNC, _STATISTICS),
    "pyarrow 21": Header("pyarrow-21.0.0/abi.h", _ALL),
    "pyarrow installed": Header("pyarrow/abi.h", _ALL),
    "pyarrow installed, DLPack": Header("pyarrow/dlpack_abi.h", _DLPACK, dlpack="1.3"),
    "apache-tvm-ffi installed": Header("tvm_ffi/dlpack.h", _DLPACK, dlpack="1.3"),
    "arrow-go": Header("arrow-go-v18.8.0/abi.h", _LAGGING, _STATISTICS),
    # It includes a copy of the interfaces.
    "nanoarrow": Header(
        "nanoarrow-0.9.0/nanoarrow/nanoarrow_device.h",
        _WITHOUT_ASYNC,
        _STATISTICS,
        includes=("nanoarrow-0.9.0", "nanoarrow_config"),
    ),
    "fletching": Header("fletching/abi.h", _ALL),
    "fletching, DLPack": Header("fletching/dlpack.h", _DLPACK),
}
