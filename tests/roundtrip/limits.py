"""The peers' limits by peer, direction and case, with their error messages."""

from __future__ import annotations

from collections.abc import Mapping

Limits = Mapping[str, Mapping[str, str]]  # by direction and case

# Arrow C++ has these types, but pyarrow has no class for their numbers.
_PYARROW = {"interval_months": "KeyError: 21", "interval_day_time": "KeyError: 22"}

# nanoarrow exports a copy of its struct, which has room for at most three buffers. The copy of a
# view array is written past its end.
CRASH = "ended by a signal"
HOLD_VIEWS = (
    *("utf8_view", "binary_view", "utf8_view_slice", "utf8_view_inline"),
    *("zero_length_every_layout", "zero_length_null_buffers"),
)
# nanoarrow requires a validity buffer before it counts the nulls.
_NO_VALIDITY = "Expected int32 array buffer 0 to have size >= 1 bytes but found buffer with 0 bytes"

LIMITS: Mapping[str, Limits] = {
    "pyarrow": {"array": _PYARROW, "import": _PYARROW},
    "nanoarrow": {
        "array": dict.fromkeys(HOLD_VIEWS, CRASH),
        "import": {"nulls_uncounted_without_validity": _NO_VALIDITY},
    },
}
