"""The device dimension: which cells there are on each backend, and on what the programs run.

A language has device cells as soon as its language.toml has a command for them, and those of
a direction as soon as the command has that; until then they are absent, with NOT_YET as the reason,
and no failure.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from cells import Key, device_key
from libraries import library_path

NOT_YET = "this language has no such device cells yet"

# One of each layout, as cpp/producer/device_cases.hpp has them.
CASES = (
    *("int32", "utf8", "utf8_view", "list"),
    *("struct", "dictionary", "dense_union", "record_batch"),
)

# The variable that names the vendors whose GPU is in this machine: "cuda", "rocm" or "cuda,rocm".
REAL_GPU = "FLETCHING_REAL_GPU"
VENDORS = {
    "cuda": ("cuda", "cuda_host", "cuda_managed"),
    "rocm": ("rocm", "rocm_host"),
}


def device_cells(language: str, backends: Iterable[str]) -> Iterator[Key]:
    """In the order of the matrix: cpu, with the fewest directions, is last."""
    for backend in sorted(backends, key=lambda name: name == "cpu"):
        for case in CASES:
            for direction in directions(backend):
                yield device_key(language, backend, case, direction)


def directions(backend: str) -> tuple[str, ...]:
    if backend == "cpu":  # no queues: nothing to see too early, and the cases have the rest
        return ("async", "async_failure", "chain")
    gated = ("array", "stream", "stream_failure", "async", "async_failure")
    return (*(name for each in gated for name in (each, f"{each}_control")), "chain")


def environment() -> dict[str, str]:
    """For the programs of the device cells: the stand-ins are preferred, unless a GPU is real.

    Raises ValueError for a variable that names no vendor.
    """
    if real_vendors():
        return {}
    others = os.environ.get("LD_LIBRARY_PATH", "")
    standins = str(library_path("standin").absolute())
    return {"LD_LIBRARY_PATH": f"{standins}:{others}" if others else standins}


def real_vendors() -> set[str]:
    """The vendor in the variable; raises ValueError for another text."""
    named = {part.strip() for part in os.environ.get(REAL_GPU, "").split(",")} - {""}
    if unknown := sorted(named - VENDORS.keys()):
        raise ValueError(f"{REAL_GPU} names {', '.join(unknown)}; known are {', '.join(VENDORS)}")
    return named


def excused(keys: Iterable[Key]) -> set[Key]:
    """The cells that may be absent: a machine with one vendor's GPU need not have another's."""
    named = real_vendors()
    if not named:
        return set()
    others = {b for vendor, backends in VENDORS.items() if vendor not in named for b in backends}
    return {key for key in keys if key.backend in others}
