"""The round trip of Python: every case of the reference producer, through the package and back.

Prints progress to stdout and one line per failure to stderr, and writes cells to $FLETCHING_CELLS
(tests/roundtrip/README.md).
Exit codes: 0 all went well, 1 something failed, 2 a library could not be loaded.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

import reexport
from cells import Checks, case_key, reporting
from dump import dump
from fletching import abi
from fletching.abi import ArrowDeviceArray, ArrowDeviceArrayStream, ArrowSchema
from producer import Producer

LANGUAGE = "python"
BATCHES = 3
FAIL_AT = 2  # before the third batch


def array_case(producer: Producer, case: str, checks: Checks) -> None:
    schema, array = ArrowSchema(), ArrowDeviceArray()
    producer.export_array(case, schema, array)
    try:
        verify_dump(producer, schema, array, checks)
        out_schema, out_array = reexport.export_array(reexport.import_array(schema, array))
        checks.expect(abi.is_released(schema), "the schema was not moved")
        checks.expect(abi.is_released(array), "the array was not moved")
        try:
            producer.verify_array(case, out_schema, out_array)
            checks.asserted += 1
        finally:
            abi.release(out_schema)
            abi.release(out_array)
    finally:  # what was not moved
        abi.release(schema)
        abi.release(array)


def verify_dump(
    producer: Producer, schema: ArrowSchema, array: ArrowDeviceArray, checks: Checks
) -> None:
    lines = producer.verify_dump(dump(schema, array))
    checks.expect(lines > 0, "the dump compared nothing")
    checks.asserted += lines


def stream_case(producer: Producer, case: str, checks: Checks) -> None:
    _stream(producer, case, checks, fail_at=-1, expected=BATCHES)


def stream_failure_case(producer: Producer, case: str, checks: Checks) -> None:
    _stream(producer, case, checks, fail_at=FAIL_AT, expected=FAIL_AT)


def _stream(producer: Producer, case: str, checks: Checks, fail_at: int, expected: int) -> None:
    stream = ArrowDeviceArrayStream()
    seen = 0

    def observe(schema: ArrowSchema, array: ArrowDeviceArray) -> None:
        nonlocal seen
        seen += 1
        verify_dump(producer, schema, array, checks)

    producer.export_stream(case, BATCHES, fail_at, stream)
    out = reexport.reexport_stream(stream, observe)
    checks.expect(abi.is_released(stream), "the stream was not moved")
    producer.verify_stream(case, BATCHES, fail_at, out)
    checks.asserted += 1
    checks.equal(seen, expected, "the number of batches that were dumped")


DIRECTIONS: dict[str, Callable[[Producer, str, Checks], None]] = {
    "array": array_case,
    "stream": stream_case,
    "stream_failure": stream_failure_case,
}


def attempt(checks: Checks, work: Callable[[], None]) -> None:
    """An exception is a problem. Afterwards no frame of the work holds an array."""
    try:
        work()
    except Exception as error:
        checks.problems.append(f"{type(error).__name__}: {error}")


def check_counts(producer: Producer, checks: Checks) -> None:
    """Nothing is alive on either side, and everything was released once."""
    gc.collect()  # an exception in a cycle may hold an array
    own, counters = reexport.counts, producer.counters()
    checks.releases = own.released
    checks.expect(own.hooked > 0, "Python has hooked nothing")
    checks.equal(own.released, own.hooked, "the number of Python's own releases")
    checks.equal(own.problems, [], "what went wrong inside callbacks")
    for name, value in counters.items():
        if name.startswith("live_"):
            checks.equal(value, 0, f"the producer's {name}")
    checks.expect(counters["exported"] > 0, "the producer exported nothing")
    checks.equal(counters["released"], counters["exported"], "the producer's released")
    checks.equal(counters["double_released"], 0, "the producer's double_released")


def run(producer: Producer, case: str, direction: str) -> list[str]:
    """One cell; the problems that came up."""
    with reporting(case_key(LANGUAGE, case, direction)) as checks:
        reexport.counts = reexport.Counts()
        producer.reset_counters()
        attempt(checks, lambda: DIRECTIONS[direction](producer, case, checks))
        check_counts(producer, checks)
    return checks.problems


def main() -> int:
    try:
        producer = Producer()
    except OSError as error:
        print(error, file=sys.stderr)
        return 2
    failed = 0
    for case in producer.cases():
        for direction in DIRECTIONS:
            problems = run(producer, case, direction)
            failed += bool(problems)
            for problem in problems:
                print(f"{LANGUAGE}: {case} {direction}: {problem}", file=sys.stderr)
        print(f"{case}: {', '.join(DIRECTIONS)}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
