"""The checks of a dictionary of the CUDA Array Interface."""

from __future__ import annotations

from typing import Any

from .python_capsules import FindingError


def check_dictionary(value: Any) -> None:
    """Checks the entries of __cuda_array_interface__, version 3."""
    entries = value.__cuda_array_interface__

    def expect(fits: Any, rule: Any, text: Any) -> None:
        if not fits:
            raise FindingError(rule, f"__cuda_array_interface__: {text}")

    expect(isinstance(entries, dict), "cai.entries", f"expected a dict, got {type(entries)}")
    missing = {"shape", "typestr", "data", "version"} - set(entries)
    expect(not missing, "cai.entries", f"expected the entries {sorted(missing)}")
    shape, strides, data = entries["shape"], entries.get("strides"), entries["data"]
    is_shape = isinstance(shape, tuple) and all(isinstance(n, int) and n >= 0 for n in shape)
    expect(is_shape, "cai.shape-tuple", f"expected a tuple of sizes, got {shape!r}")
    typestr = entries["typestr"]
    is_type = isinstance(typestr, str) and len(typestr) > 2 and typestr[0] in "<>|"
    expect(is_type, "cai.typestr", f"expected a type such as '<f4', got {typestr!r}")
    is_pair = isinstance(data, tuple) and len(data) == 2 and isinstance(data[0], int)
    expect(is_pair, "cai.data-pair", f"expected an address and a flag, got {data!r}")
    is_empty = 0 in shape
    expect(not is_empty or data[0] == 0, "cai.zero-size-pointer", "expected 0 as address")
    version = entries["version"]
    expect(isinstance(version, int), "cai.version", f"expected a number, got {version!r}")
    is_strides = strides is None or (isinstance(strides, tuple) and len(strides) == len(shape))
    expect(is_strides, "cai.strides", f"expected a stride for each size, got {strides!r}")
    expect(entries.get("stream") != 0, "cai-stream.not-zero", "expected another stream than 0")
