"""Python as the host of the chain.

FLETCHING_CHAIN names the languages that the array passes before Python, and the first of which it
passes again afterwards: "cpp go rust". The array is behind a closed gate, and is compared at the
end (tests/roundtrip/chain.h).
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from contextlib import suppress
from ctypes import POINTER, byref, c_char_p, c_int, c_int32, c_int64, c_void_p

import reexport
from cells import Checks
from fletching.abi import ArrowDeviceArray, ArrowSchema, move
from libraries import declare, load
from producer import Message
from transits import NativeTransit

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
    _move_back(*reexport.export_array(reexport.import_array(schema, array)), schema, array)


def _move_back(
    from_schema: ArrowSchema,
    from_array: ArrowDeviceArray,
    to_schema: ArrowSchema,
    to_array: ArrowDeviceArray,
) -> None:
    move(from_schema, to_schema)
    move(from_array, to_array)


def run_chain(chain: Chain, hops: dict[str, NativeTransit], backend: str, case: str) -> int:
    """The number of comparisons. The chain is ended after an error, too."""
    schema, array = ArrowSchema(), ArrowDeviceArray()
    begun = chain.begin(backend, case, schema, array)
    try:
        for language, hop in hops.items():
            send(language, hop, schema, array)
        send_through_python(schema, array)
        first = next(iter(hops))
        send(first, hops[first], schema, array)
    except Exception:
        with suppress(ChainError):  # the first error is reported
            chain.end(begun, schema, array)
        raise
    return chain.end(begun, schema, array)


def check_releases(hops: dict[str, NativeTransit], before: Sequence[int], checks: Checks) -> None:
    """Each language has released as often as it has exported."""
    own = reexport.counts
    checks.releases = own.released
    checks.expect(own.hooked > 0, "Python has hooked nothing")
    checks.equal(own.released, own.hooked, "the number of Python's own releases")
    checks.equal(own.problems, [], "what went wrong inside callbacks")
    for (language, hop), exported in zip(hops.items(), before, strict=True):
        checks.expect(hop.exported() > exported, f"{language} exported nothing")
        checks.equal(hop.released(), hop.exported(), f"the number of releases in {language}")
