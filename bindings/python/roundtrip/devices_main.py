"""Python as the host of the chain, on every backend.

    devices_main.py [BACKEND...]

FLETCHING_CHAIN names the languages that the array passes before Python, and the first of which it
passes again afterwards: "cpp go rust". The array is behind a closed gate, and is compared at the
end (tests/roundtrip/chain.h). Progress goes to stdout, one line per failure to stderr, cells to
$FLETCHING_CELLS (tests/roundtrip/README.md).
Exit codes: 0 all went well, 1 something failed, 2 a library could not be loaded.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_void_p

import transit
from cells import Cell, Checks, append, device_key, reporting
from devices import CASES
from expected import backend_names
from fletching.abi import ArrowDeviceArray, ArrowSchema, move
from libraries import declare, load
from producer import Message
from transits import NativeTransit

LANGUAGE = "python"
STATUSES = ("real", "stand-in", "absent")  # by the numbers of FletchingProducerBackendPresence


class ChainError(Exception):
    """What a library answered."""


class Chain:
    """libfletching_chain, and what the producer says of its backends."""

    def __init__(self) -> None:
        library, producer = load("libfletching_chain.so"), load("libfletching_producer.so")
        structs = (POINTER(ArrowSchema), POINTER(ArrowDeviceArray))
        self._begin = declare(
            library,
            "FletchingChainBegin",
            c_int,
            c_char_p,
            c_char_p,
            POINTER(c_void_p),
            *structs,
            POINTER(Message),
        )
        self._end = declare(
            library,
            "FletchingChainEnd",
            c_int,
            c_void_p,
            *structs,
            POINTER(c_int64),
            POINTER(Message),
        )
        self._presence = declare(
            producer,
            "FletchingProducerBackendPresence",
            c_int,
            c_char_p,
            POINTER(c_int32),
            POINTER(Message),
        )

    def presence(self, backend: str) -> tuple[str, str]:
        """One of STATUSES, and the device's name or why it is absent."""
        number, message = c_int32(), Message()
        _require(self._presence(backend.encode(), byref(number), message), message)
        return STATUSES[number.value], _text(message)

    def begin(self, backend: str, case: str, schema: ArrowSchema, array: ArrowDeviceArray) -> int:
        chain, message = c_void_p(), Message()
        names = (backend.encode(), case.encode())
        _require(self._begin(*names, byref(chain), schema, array, message), message)
        assert chain.value is not None
        return chain.value

    def end(self, chain: int, schema: ArrowSchema, array: ArrowDeviceArray) -> int:
        """Moves the structs in; the number of comparisons."""
        asserted, message = c_int64(), Message()
        _require(self._end(chain, schema, array, byref(asserted), message), message)
        return asserted.value


def _text(message: Message) -> str:
    return message.text.decode("utf-8", "backslashreplace")


def _require(code: int, message: Message) -> None:
    if code != 0:
        raise ChainError(f"errno {code}: {_text(message)}")


def send(language: str, hop: NativeTransit, schema: ArrowSchema, array: ArrowDeviceArray) -> None:
    """Through a language of this process, and back into the same structs."""
    out_schema, out_array = ArrowSchema(), ArrowDeviceArray()
    structs = (schema, array, out_schema, out_array)
    problem = hop.send(*map(ctypes.addressof, structs))
    if problem:
        raise ChainError(f"{language}: {problem}")
    _move_back(out_schema, out_array, schema, array)


def send_through_python(schema: ArrowSchema, array: ArrowDeviceArray) -> None:
    out_schema, out_array = ArrowSchema(), ArrowDeviceArray()
    transit.pass_array_on(schema, array, out_schema, out_array)
    _move_back(out_schema, out_array, schema, array)


def _move_back(
    from_schema: ArrowSchema,
    from_array: ArrowDeviceArray,
    to_schema: ArrowSchema,
    to_array: ArrowDeviceArray,
) -> None:
    move(from_schema, to_schema)
    move(from_array, to_array)


def run_chain(chain: Chain, hops: dict[str, NativeTransit], backend: str, case: str) -> int:
    """The number of comparisons. Whatever goes wrong, the chain is ended."""
    schema, array = ArrowSchema(), ArrowDeviceArray()
    begun = chain.begin(backend, case, schema, array)
    try:
        for language, hop in hops.items():
            send(language, hop, schema, array)
        send_through_python(schema, array)
        first = next(iter(hops))
        send(first, hops[first], schema, array)
    except Exception:
        with suppress(ChainError):  # the first error is the one to tell
            chain.end(begun, schema, array)
        raise
    return chain.end(begun, schema, array)


def check_releases(hops: dict[str, NativeTransit], before: Sequence[int], checks: Checks) -> None:
    """Each language has released as often as it has exported."""
    own = transit.counts
    checks.releases = own.released
    checks.expect(own.exported > 0, "Python exported nothing")
    checks.equal(own.released, own.exported, "the number of Python's own releases")
    checks.equal(own.unknown, 0, "the number of releases of something not alive")
    checks.equal(own.problems, [], "what went wrong inside callbacks")
    for (language, hop), exported in zip(hops.items(), before, strict=True):
        checks.expect(hop.exported() > exported, f"{language} exported nothing")
        checks.equal(hop.released(), hop.exported(), f"the number of releases in {language}")


def run_backend(chain: Chain, hops: dict[str, NativeTransit], backend: str) -> int:
    """How many cells failed."""
    status, description = chain.presence(backend)
    print(f"{backend}: {status}: {description}", flush=True)
    failed = 0
    for case in CASES:
        key = device_key(LANGUAGE, backend, case, "chain")
        if status == "absent":
            append(Cell(key, status, description, 0, 0, ok=False))
            continue
        with reporting(key, status=status) as checks:
            transit.counts = transit.Counts()
            before = [hop.exported() for hop in hops.values()]
            checks.asserted += run_chain(chain, hops, backend, case)
            check_releases(hops, before, checks)
        failed += bool(checks.problems)
        for problem in checks.problems:
            print(f"{key}: {problem}", file=sys.stderr)
    return failed


def main() -> int:
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
    failed = sum(run_backend(chain, hops, name) for name in sys.argv[1:] or backend_names())
    print(f"{failed} cells failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
