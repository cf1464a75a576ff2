"""The limits of the peers, by peer, direction and case, and their error texts."""

from __future__ import annotations

from collections.abc import Mapping

Limits = Mapping[str, Mapping[str, str]]  # by direction and case

# Its C++ library has these types, and for their numbers pyarrow has no class.
_PYARROW = {"interval_months": "KeyError: 21", "interval_day_time": "KeyError: 22"}

# nanoarrow exports a copy of its struct. The copy of a view array is written past its end: there
# it has room for three buffers at most.
CRASH = "ended by a signal"
HOLD_VIEWS = (
    *("utf8_view", "binary_view", "utf8_view_slice", "utf8_view_inline"),
    *("zero_length_every_layout", "zero_length_null_buffers"),
)
# It requires a validity buffer before it counts the nulls.
_NO_VALIDITY = "Expected int32 array buffer 0 to have size >= 1 bytes but found buffer with 0 bytes"

LIMITS: Mapping[str, Limits] = {
    "pyarrow": {"array": _PYARROW, "import": _PYARROW},
    "nanoarrow": {
        "array": dict.fromkeys(HOLD_VIEWS, CRASH),
        "import": {"nulls_uncounted_without_validity": _NO_VALIDITY},
    },
}
