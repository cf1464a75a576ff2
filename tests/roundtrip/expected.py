"""The cells that must arrive, from the oracle, the producer, the suite and the peers' limits."""

from __future__ import annotations

from ctypes import c_char_p, c_int32

from cells import (
    CASE_DIRECTIONS,
    CONSTANTS,
    PEER_DIRECTIONS,
    STRUCT_DIRECTIONS,
    Key,
    case_key,
    corpus_key,
    peer_key,
    struct_key,
)
from corpus import corpus_cases
from devices import device_cells
from libraries import declare, load
from limits import LIMITS


def expected_cells(language: str) -> list[Key]:
    """The cells in the order of the matrix. Raises OSError if a library is missing."""
    return [
        *(struct_key(language, s, d) for s in _struct_names() for d in STRUCT_DIRECTIONS),
        struct_key(language, CONSTANTS, "layout"),
        *(case_key(language, c, d) for c in _case_names() for d in CASE_DIRECTIONS),
        *(
            peer_key(language, peer, c, d)
            for peer in LIMITS
            for c in _case_names()
            for d in PEER_DIRECTIONS
        ),
        *device_cells(language, backend_names()),
        *(corpus_key(language, group, case) for group, case in corpus_cases()),
    ]


def limited_cells(language: str) -> set[Key]:
    """The cells that a peer does not support."""
    return {
        peer_key(language, peer, case, direction)
        for peer, directions in LIMITS.items()
        for direction, cases in directions.items()
        for case in cases
    }


def _struct_names() -> list[str]:
    return _names("libfletching_oracle.so", "FletchingOracleStruct")


def _case_names() -> list[str]:
    return _names("libfletching_producer.so", "FletchingProducerCase")


def backend_names() -> list[str]:
    """The backends of the reference producer. Raises OSError if it is missing."""
    return _names("libfletching_producer.so", "FletchingProducerBackend")


def _names(library: str, prefix: str) -> list[str]:
    loaded = load(library)
    count = declare(loaded, f"{prefix}Count", c_int32)
    name = declare(loaded, f"{prefix}Name", c_char_p, c_int32)
    return [name(i).decode() for i in range(count())]
