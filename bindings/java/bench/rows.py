"""The comparisons for the safe layer of Java: one entry per row of the table.

Each run of a program is a JMH fork: warm-up, then the CPU time per call, including the garbage
collector's. Heap bytes are measured in compiled code.
"""

from __future__ import annotations

from rows import BY_HAND, WITHOUT, Limit, Peer, Row, locked

_FFM = "Fletching, java.lang.foreign"
_JNA = "Fletching, JNA"
_PAIR = "a bare call of C, which calls Java"
_BY_HAND = "hand-written C in one call, without checks"
_ARROW = "arrow-java"
_PROGRAM = "fletching_bench_java"
_FORKS = 3

_TAKE = "one leaf of C: import, close"
_GIVE = "one leaf of Java: build, move, release in C"
_TENSOR = "one leaf of C: to DLPack and back, close"
_HANDOFF = "handoff of 1,000 columns"
_ASYNC = "async stream of 1,000 batches, on one thread"
_TOPICS = {_TENSOR: "DLPack", _HANDOFF: "Handoff of columns", _ASYNC: "Async streams"}

PEERS = (
    Peer(_PAIR, "", "The least that a release in C and a callback into Java cost.", WITHOUT),
    Peer(_BY_HAND, "", "Checks neither the structs nor the type.", BY_HAND),
    Peer(
        _ARROW,
        locked("bindings/java/pom.xml", r"<arrow.version>(.*)</arrow.version>"),
        "Its package `arrow-c-data` makes typed vectors. It has no device array.",
    ),
)

# About a tenth of a second each, because the CPU clock has a resolution of 10 ms.
_ROUNDS = {
    "ffm take": 4_000_000,
    "jna take": 1_000_000,
    "pair take": 4_000_000,
    "arrow take": 200_000,
    "ffm give": 800_000,
    "pair give": 4_000_000,
    "arrow give": 300_000,
    "ffm handoff": 3_000,
    "arrow handoff": 80,
    "ffm tensor": 200_000,
    "pair tensor": 2_000_000,
    "ffm async": 200,
    "jna async": 20,
}


def _program(who: str, case: str, *length: str) -> tuple[str, ...]:
    return (_PROGRAM, who, case, str(_ROUNDS[f"{who} {case}"]), *length)


def _case(
    engine: str,
    case: str,
    name: str,
    limits: tuple[Limit, ...],
    *,
    goal: float | None = None,
    reason: str = "",
) -> Row:
    """Returns the row of Fletching and the programs that it is compared with."""
    ours = {"ffm": _FFM, "jna": _JNA}[engine]
    programs = {ours: _program(engine, name)}
    if f"pair {name}" in _ROUNDS and engine == "ffm":
        programs[_BY_HAND if case == _TENSOR else _PAIR] = _program("pair", name)
    if f"arrow {name}" in _ROUNDS:
        programs[_ARROW] = _program("arrow", name)
    topic = _TOPICS.get(case, "Ownership")
    return Row(
        topic,
        case,
        "nanoseconds",
        programs,
        limits,
        goal=goal,
        reason=reason,
        repeats=_FORKS,
    )


def _flat(name: str, case: str) -> Row:
    """Returns a row which shows that the cost does not depend on the number of values."""
    short = "the same with 64 rows"
    programs = {
        f"{_FFM}, 2^40 rows": _program("ffm", name, str(1 << 40)),
        short: _program("ffm", name, "64"),
    }
    limits = (Limit(short, 1.25, reason="the spread of the measurement"),)
    return Row("Ownership", case, "nanoseconds", programs, limits, repeats=_FORKS)


def _bytes(engine: str, case: str, name: str, at_most: float) -> Row:
    ours = {"ffm": _FFM, "jna": _JNA}[engine]
    return Row("Memory", case, "bytes", {ours: _program(engine, name)}, at_most=at_most)


ROWS = (
    _case(
        "ffm",
        _TAKE,
        "take",
        (
            Limit(
                _PAIR,
                2,
                1.05,
                "a fifth of the time is the call of `release`, three quarters are one compiled "
                "method: it copies the struct twice, once to make it and once to move it, makes "
                "the owner and checks the struct; the bare call copies nothing",
            ),
            Limit(_ARROW, 0.05),
        ),
    ),
    _case(
        "jna",
        _TAKE,
        "take",
        (Limit(_ARROW, 0.33),),
        goal=80,
        reason="57 % to copy the struct and read its fields, each a JNI call of JNA, 18 % to call "
        "`release` through libffi, 21 % in compiled Java",
    ),
    _case(
        "ffm",
        _GIVE,
        "give",
        (
            Limit(
                _PAIR,
                None,
                4,
                "35 % in a compiled method that fills the structs, 17 % in the map of exported "
                "objects, 16 % in calls between Java and C, 8 % each in the callback that closes "
                "the object and in the builder, 7 % in calloc and free. The calls and the "
                "allocation alone would be 2",
            ),
            Limit(_ARROW, 0.6),
        ),
    ),
    _case("ffm", _HANDOFF, "handoff", (Limit(_ARROW, 0.1),)),
    _case(
        "ffm",
        _TENSOR,
        "tensor",
        (Limit(_BY_HAND, 50, reason="checks both structs and the type, and allocates in Java"),),
    ),
    _case("ffm", _ASYNC, "async", ()),
    _case(
        "jna",
        _ASYNC,
        "async",
        (),
        goal=4_000_000,
        reason="the JVM still compiles in so short a run: after 1.5 million batches it is 4.2 us, "
        "half of it in compiled Java, two fifths in the JVM's functions that JNA calls for each "
        "access, call and callback",
    ),
    _flat("take", _TAKE),
    # Only the owner.
    _bytes("ffm", _TAKE, "take", 24),
    _bytes("jna", _TAKE, "take", 200),
    _bytes("ffm", _GIVE, "give", 480),
)
