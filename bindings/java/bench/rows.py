"""What the safe layer of Java is measured against: one entry per row of the table.

Each run of a program is a fork of JMH: warm-up, then the processor's time for a call, the garbage
collector's included. The bytes of the heap are those of compiled code.
"""

from __future__ import annotations

from rows import Limit, Row

_FFM = "Fletching, java.lang.foreign"
_JNA = "Fletching, JNA"
_PAIR = "a bare call of C that calls Java"
_ARROW = "arrow-java, Data"
_PROGRAM = "fletching_bench_java"
_FORKS = 3

_TAKE = "one leaf of C: import, close"
_GIVE = "one leaf of Java: build, move, release in C"
_HANDOFF = "handoff of 1,000 columns"


def _case(engine: str, case: str, name: str, limits: tuple[Limit, ...]) -> Row:
    """Ours, and those that have a limit or are of interest."""
    ours = {"ffm": _FFM, "jna": _JNA}[engine]
    programs = {ours: (_PROGRAM, engine, name)}
    if engine == "ffm" and name != "handoff":
        programs[_PAIR] = (_PROGRAM, "pair", name)
    programs[_ARROW] = (_PROGRAM, "arrow", name)
    return Row(case, "nanoseconds", programs, limits, repeats=_FORKS)


def _flat(name: str, case: str) -> Row:
    """The cost does not depend on the number of values."""
    short = "the same with 64 rows"
    programs = {
        f"{_FFM}, 2^40 rows": (_PROGRAM, "ffm", name, str(1 << 40)),
        short: (_PROGRAM, "ffm", name, "64"),
    }
    return Row(case, "nanoseconds", programs, (Limit(short, 1.25),), repeats=_FORKS)


def _bytes(engine: str, case: str, name: str, at_most: float) -> Row:
    ours = {"ffm": _FFM, "jna": _JNA}[engine]
    return Row(case, "bytes", {ours: (_PROGRAM, engine, name)}, at_most=at_most)


ROWS = (
    _case("ffm", _TAKE, "take", (Limit(_PAIR, 3), Limit(_ARROW, 0.05))),
    _case("jna", _TAKE, "take", (Limit(_ARROW, 0.33),)),
    _case("ffm", _GIVE, "give", (Limit(_ARROW, 0.6),)),
    # JNA's callback alone takes more than arrow-java's of JNI.
    _case("jna", _GIVE, "give", ()),
    _case("ffm", _HANDOFF, "handoff", (Limit(_ARROW, 0.1),)),
    _case("jna", _HANDOFF, "handoff", (Limit(_ARROW, 0.2),)),
    _flat("take", _TAKE),
    _flat("give", _GIVE),
    # The owner alone.
    _bytes("ffm", _TAKE, "take", 24),
    _bytes("jna", _TAKE, "take", 200),
    _bytes("ffm", _GIVE, "give", 450),
)
