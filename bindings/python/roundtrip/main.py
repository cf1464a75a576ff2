"""The round trip of Python: every case of the reference producer, through fletching.abi and back.

Progress goes to stdout, one line per failure to stderr, cells to $FLETCHING_CELLS
(tests/roundtrip/README.md).
Exit codes: 0 all went well, 1 something failed, 2 a library could not be loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import transit
from cells import Checks, case_key, reporting
from describe import describe
from fletching.abi import (
    ArrowArray,
    ArrowDeviceArray,
    ArrowDeviceArrayStream,
    ArrowSchema,
    release,
)
from producer import Producer

LANGUAGE = "python"
BATCHES = 3
FAIL_AT = 2  # before the third batch


def array_case(producer: Producer, case: str, checks: Checks) -> None:
    schema, array = ArrowSchema(), ArrowDeviceArray()
    out_schema, out_array = ArrowSchema(), ArrowDeviceArray()
    producer.export_array(case, schema, array)
    checks.equal(describe(schema, array.array), producer.describe(case), "the text")
    transit.pass_array_on(schema, array, out_schema, out_array)
    checks.expect(not schema.release, "the schema was not moved")
    checks.expect(not array.array.release, "the array was not moved")
    producer.verify_array(case, out_schema, out_array)
    checks.asserted += 1
    release(out_array.array)
    release(out_schema)
    checks.expect(not out_schema.release, "release of the schema is not NULL afterwards")
    checks.expect(not out_array.array.release, "release of the array is not NULL afterwards")


def stream_case(producer: Producer, case: str, checks: Checks) -> None:
    _stream(producer, case, checks, fail_at=-1, given=BATCHES)


def stream_failure_case(producer: Producer, case: str, checks: Checks) -> None:
    _stream(producer, case, checks, fail_at=FAIL_AT, given=FAIL_AT)


def _stream(producer: Producer, case: str, checks: Checks, fail_at: int, given: int) -> None:
    stream, out = ArrowDeviceArrayStream(), ArrowDeviceArrayStream()
    expected = producer.describe(case)
    seen = 0

    def look(schema: ArrowSchema, array: ArrowArray) -> None:
        nonlocal seen
        checks.equal(describe(schema, array), expected, f"the text of batch {seen}")
        seen += 1

    producer.export_stream(case, BATCHES, fail_at, stream)
    transit.pass_stream_on(stream, out, look)
    checks.expect(not stream.release, "the stream was not moved")
    producer.verify_stream(case, BATCHES, fail_at, out)
    checks.asserted += 1
    checks.equal(seen, given, "the number of batches that passed")


DIRECTIONS: dict[str, Callable[[Producer, str, Checks], None]] = {
    "array": array_case,
    "stream": stream_case,
    "stream_failure": stream_failure_case,
}


def check_counts(producer: Producer, checks: Checks) -> None:
    """Nothing is alive on either side, and everything was released once."""
    own, counters = transit.counts, producer.counters()
    checks.releases = own.released
    checks.expect(own.exported > 0, "Python gave nothing out")
    checks.equal(own.released, own.exported, "the number of Python's own releases")
    checks.equal(own.unknown, 0, "the number of releases of something not alive")
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
        transit.counts = transit.Counts()
        producer.reset_counters()
        try:
            DIRECTIONS[direction](producer, case, checks)
        finally:
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
