"""The device cells of each backend, and the libraries that their programs run on.

A language has device cells if its language.toml has a command for them, in the directions of that
command. Others are absent with the reason NOT_YET, and are not failures.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from cells import Key, device_key
from libraries import library_path

NOT_YET = "this language has no such device cells yet"

# One case of each layout, as in cpp/producer/device_cases.hpp.
CASES = (
    *("int32", "utf8", "utf8_view", "list"),
    *("struct", "dictionary", "dense_union", "record_batch"),
)

# The variable with the vendors of this machine's GPUs: "cuda", "rocm" or "cuda,rocm".
REAL_GPU = "FLETCHING_REAL_GPU"
VENDORS = {
    "cuda": ("cuda", "cuda_host", "cuda_managed"),
    "rocm": ("rocm", "rocm_host"),
}


def device_cells(language: str, backends: Iterable[str]) -> Iterator[Key]:
    """Yields in the order of the matrix: cpu, with the fewest directions, is last."""
    for backend in sorted(backends, key=lambda name: name == "cpu"):
        for case in CASES:
            for direction in directions(backend):
                yield device_key(language, backend, case, direction)


def directions(backend: str) -> tuple[str, ...]:
    if backend == "cpu":  # without queues no read can be too early; the case cells cover the rest
        return ("async", "async_failure", "chain")
    gated = ("array", "stream", "stream_failure", "async", "async_failure")
    return (*(name for each in gated for name in (each, f"{each}_control")), "chain")


def environment() -> dict[str, str]:
    """The environment of device programs, which prefers the stand-ins unless a GPU is real.

    Raises ValueError if the variable names an unknown vendor.
    """
    if real_vendors():
        return {}
    others = os.environ.get("LD_LIBRARY_PATH", "")
    standins = str(library_path("standin").absolute())
    return {"LD_LIBRARY_PATH": f"{standins}:{others}" if others else standins}


def real_vendors() -> set[str]:
    """The vendors in the variable. Raises ValueError for any other text."""
    named = {part.strip() for part in os.environ.get(REAL_GPU, "").split(",")} - {""}
    if unknown := sorted(named - VENDORS.keys()):
        raise ValueError(f"{REAL_GPU} names {', '.join(unknown)}; known are {', '.join(VENDORS)}")
    return named


def excused(keys: Iterable[Key]) -> set[Key]:
    """The cells that may be absent: a machine with one vendor's GPU may lack another's."""
    named = real_vendors()
    if not named:
        return set()
    others = {b for vendor, backends in VENDORS.items() if vendor not in named for b in backends}
    return {key for key in keys if key.backend in others}
