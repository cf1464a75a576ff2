"""Data on every backend, behind the producer's gate, through the package (README.md, "Devices").

    devices_main.py [--chain] [BACKEND...]

--chain runs only the chain, for which FLETCHING_CHAIN names the other languages. Prints
progress to stdout and one line per failure to stderr, and writes cells to $FLETCHING_CELLS
(tests/roundtrip/README.md).
Exit codes: 0 all went well, 1 something failed, 2 a library could not be loaded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import reexport
from cells import Cell, Checks, append, device_key, reporting
from chain import Chain, check_releases, run_chain
from device import Device
from devices import CASES, directions
from expected import backend_names
from gated import pass_array, pass_async, pass_stream
from gates import await_async
from main import LANGUAGE, attempt, check_counts
from producer import Producer
from transits import NativeTransit


@dataclass(frozen=True)
class Run:
    """What one cell works with."""

    producer: Producer
    device: Device
    case: str
    checks: Checks
    control: bool  # read without a wait, and see the old data
    fails: bool  # the stream does, midway


WORK: dict[str, Callable[[Run], None]] = {
    "array": pass_array,
    "stream": pass_stream,
    "async": pass_async,
}


def run_cell(producer: Producer, device: Device, case: str, direction: str, checks: Checks) -> None:
    kind = direction.partition("_")[0]
    run = Run(
        producer, device, case, checks, direction.endswith("_control"), "_failure" in direction
    )
    producer.reset_counters()
    attempt(checks, lambda: WORK[kind](run))
    await_async()
    check_counts(producer, checks)


def run_chain_cell(
    chain: Chain, hops: dict[str, NativeTransit], backend: str, case: str, checks: Checks
) -> None:
    before = [hop.exported() for hop in hops.values()]
    checks.asserted += run_chain(chain, hops, backend, case)
    check_releases(hops, before, checks)


def run_backend(
    chain: Chain, hops: dict[str, NativeTransit], backend: str, only_chain: bool
) -> int:
    """How many cells failed."""
    status, description = chain.presence(backend)
    print(f"{backend}: {status}: {description}", flush=True)
    producer = Producer()
    device = Device(backend) if status != "absent" else None
    failed = 0
    for case in CASES:
        for direction in ("chain",) if only_chain else directions(backend):
            key = device_key(LANGUAGE, backend, case, direction)
            if device is None:
                append(Cell(key, status, description, 0, 0, ok=False))
                continue
            with reporting(key, status=status) as checks:
                reexport.counts = reexport.Counts()
                if direction == "chain":
                    run_chain_cell(chain, hops, backend, case, checks)
                else:
                    run_cell(producer, device, case, direction, checks)
            failed += bool(checks.problems)
            for problem in checks.problems:
                print(f"{key}: {problem}", file=sys.stderr)
    return failed


def main(arguments: Sequence[str]) -> int:
    languages = os.environ.get("FLETCHING_CHAIN", "").split()
    if not languages:
        print('FLETCHING_CHAIN: names no language: expected "cpp ..."', file=sys.stderr)
        return 2
    try:
        chain = Chain()
        hops = {language: NativeTransit(language) for language in languages}
    except OSError as error:
        print(error, file=sys.stderr)
        return 2
    backends = [argument for argument in arguments if argument != "--chain"] or backend_names()
    only_chain = "--chain" in arguments
    failed = sum(run_backend(chain, hops, backend, only_chain) for backend in backends)
    print(f"{failed} cells failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
