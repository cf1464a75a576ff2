"""pyarrow and nanoarrow as peers of one language.

    peers.py LANGUAGE

The peers' arrays pass through the language and must return equal. The reference producer's cases
pass through the language to the peers and are compared. An unsupported case must fail with the
message in the peer's limits.
One language per process, which can have only one Go runtime and one JVM. Exit codes: 0 all cells
passed, 1 something failed, 2 a library could not be loaded.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pyarrow as pa

from cells import PEER_DIRECTIONS, Checks, peer_key, reporting
from fletching.abi import ArrowArray, ArrowDeviceArray, ArrowSchema
from limits import Limits
from nanoarrow_peer import NanoarrowPeer
from producer import Producer
from pyarrow_peer import PyarrowPeer
from structs import Export, buffers_of, release_both
from transits import Transit, load_transit


class Peer(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def exports(self) -> Mapping[str, Export]: ...
    @property
    def limits(self) -> Limits:
        """The limits by direction and case, with their error messages."""

    def make(self, case: str) -> Any: ...
    def take(self, case: str, schema: int, array: int) -> Any: ...
    def buffers(self, value: Any) -> list[int]: ...
    def compare(self, value: Any, case: str, checks: Checks) -> None: ...


PEERS: tuple[Peer, ...] = (PyarrowPeer(), NanoarrowPeer())


def through(
    transit: Transit, schema: int, array: int, checks: Checks
) -> tuple[ArrowSchema, ArrowDeviceArray] | None:
    """Sends both structs through the language. Returns None if it rejected them."""
    sent = list(buffers_of(ArrowArray.from_address(array)))
    reserved = list(ArrowDeviceArray.from_address(array).reserved)
    out_schema, out_array = ArrowSchema(), ArrowDeviceArray()
    error = transit.send(schema, array, ctypes.addressof(out_schema), ctypes.addressof(out_array))
    if not checks.expect(not error, f"the language refused it: {error}"):
        release_both(schema, array)
        return None
    checks.expect(not ArrowSchema.from_address(schema).release, "the schema was not moved in")
    checks.expect(not ArrowArray.from_address(array).release, "the array was not moved in")
    checks.equal(out_array.device_type, 1, "device_type")
    checks.equal(out_array.device_id, -1, "device_id")
    left = list(out_array.reserved)
    # Not every peer zeroes it (erratum reserved-not-zeroed), and a move passes it on.
    checks.expect(left in ([0, 0, 0], reserved), f"reserved: expected zeros, got {left}")
    checks.equal(list(buffers_of(out_array.array)), sent, "where the buffers are")
    return out_schema, out_array


def take_and_compare(
    peer: Peer,
    case: str,
    out: tuple[ArrowSchema, ArrowDeviceArray],
    checks: Checks,
) -> None:
    """The peer imports the result without a copy, and compares it."""
    addresses = (ctypes.addressof(out[0]), ctypes.addressof(out[1]))
    given = set(buffers_of(out[1].array))
    try:
        value = peer.take(case, *addresses)
        copied = set(peer.buffers(value)) - given
        checks.equal(copied, set(), "the set of buffers that the peer copied")
        # The memory is shared, so a change there is one of the source too.
        peer.compare(value, case, checks)
        del value
    finally:
        gc.collect()
        release_both(*addresses)  # whatever the peer did not move out


def pass_array(peer: Peer, transit: Transit, case: str, checks: Checks) -> None:
    """Passes the peer's array through the language and back, once for each export of the peer."""
    for export in peer.exports.values():
        source = peer.make(case)
        schema, array, owner = export(source)
        out = through(transit, schema, array, checks)
        if out is not None:
            take_and_compare(peer, case, out, checks)
        del owner


def pass_import(peer: Peer, transit: Transit, case: str, checks: Checks) -> None:
    """Passes the reference producer's case through the language to the peer."""
    producer = Producer()
    producer.reset_counters()
    schema, array = ArrowSchema(), ArrowDeviceArray()
    producer.export_array(case, schema, array)
    try:
        out = through(transit, ctypes.addressof(schema), ctypes.addressof(array), checks)
        if out is not None:
            take_and_compare(peer, case, out, checks)
    finally:
        gc.collect()
        counters = producer.counters()
        live = {name: n for name, n in counters.items() if name.startswith("live_") and n != 0}
        checks.equal(live, {}, "what the producer has alive")
        checks.equal(counters["released"], counters["exported"], "the producer's released")
        checks.equal(counters["double_released"], 0, "the producer's double_released")


Direction = Callable[[Peer, Transit, str, Checks], None]
DIRECTIONS: Mapping[str, Direction] = {"array": pass_array, "import": pass_import}
assert tuple(DIRECTIONS) == PEER_DIRECTIONS


def run(language: str, transit: Transit, peer: Peer, case: str, direction: str) -> list[str]:
    """Runs one cell. Afterwards no struct may be alive on either side."""
    gc.collect()
    bytes_before = pa.total_allocated_bytes()
    given_before, released_before = transit.given, transit.released
    limit = peer.limits.get(direction, {}).get(case, "")
    with reporting(peer_key(language, peer.name, case, direction), limit) as checks:
        if limit:
            meet_limit(peer, transit, case, direction, checks)
        else:
            DIRECTIONS[direction](peer, transit, case, checks)
        gc.collect()
        given = transit.given - given_before
        checks.releases = transit.released - released_before
        checks.expect(given > 0 or bool(limit), "nothing was given to the language")
        checks.equal(checks.releases, given, "the number of structs that the language has released")
        checks.equal(pa.total_allocated_bytes(), bytes_before, "what pyarrow has allocated")
    return checks.problems


def meet_limit(peer: Peer, transit: Transit, case: str, direction: str, checks: Checks) -> None:
    """Checks that the peer reports its limit with the expected text."""
    limit = peer.limits[direction][case]
    try:
        DIRECTIONS[direction](peer, transit, case, checks)
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
        checks.expect(limit in said, f"{peer.name} says '{said}', expected '{limit}'")
    else:
        checks.expect(False, f"{peer.name} can do it now: take it from its limits")


def main() -> int:
    language = sys.argv[1]
    try:
        transit = load_transit(language)
        cases = Producer().cases()
    except OSError as error:
        print(f"peers: {language}: {error}", file=sys.stderr)
        return 2
    problems: list[str] = []
    gc.freeze()  # existing objects need no collection before and after each cell
    for peer in PEERS:
        for case in cases:
            for direction in DIRECTIONS:
                found = run(language, transit, peer, case, direction)
                problems += [f"{peer.name} {case} {direction}: {problem}" for problem in found]
                print(f"{peer.name} {case} {direction}: {'FAILED' if found else 'ok'}", flush=True)
    for problem in problems:
        print(f"{language}: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
